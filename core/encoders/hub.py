"""Whether a model can be had, asked once and quickly before any heavy library is imported.

The libraries that load models ask the hub again and again: without a network, and for every
misspelt name, that takes about a minute.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from core.errors import CoreError, ModelUnavailableError
from core.store import read_record

__all__ = ["fetched_revision", "must_be_local"]

SECONDS = 2.5
"""That the hub has to answer; looking up its address is included, which no time-out covers."""

_PART = r"[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?"
_HUB_ID = re.compile(rf"(?:{_PART}/)?{_PART}", re.ASCII)
_INDEX, _MODULES = "model.safetensors.index.json", "modules.json"
_REMEDY = "or give a local folder; `minilm` always works offline."


def must_be_local(name: str, source: str, *, owner: str = "") -> bool:
    """Return whether a model must be loaded without asking the hub; it is here or on the hub.

    A model that was fetched whole is loaded as it lies here: what is measured today is measured
    tomorrow. Who wants a newer state removes it from the hub's cache (`hf cache`).

    Parameters
    ----------
    name : str
        How the user called the encoder, for the message.
    source : str
        A folder, or an id of the hub.
    owner : str
        Whose models may be called by their name alone.

    Raises
    ------
    ModelUnavailableError
        Neither here nor on the hub, or the hub does not answer; within SECONDS.
    """
    if Path(source).is_dir():
        return True
    if not _HUB_ID.fullmatch(source) or "--" in source or ".." in source:
        raise ModelUnavailableError(
            f"Encoder {name!r}: {source!r} is neither a folder that exists nor an id of the model "
            "hub, which is OWNER/NAME of letters, digits, '-', '_' and '.'. Check the spelling, "
            + _REMEDY
        )
    ids = [f"{owner}/{source}", source] if owner and "/" not in source else [source]
    if any(fetched_revision(model, has_modules=bool(owner)) for model in ids):
        return True
    is_here = any(_find(model, "config.json") for model in ids)
    problem, remedy = _problem(ids)
    if problem and not is_here:
        raise ModelUnavailableError(
            f"Encoder {name!r} was not found: {source} is no folder here, it was not fetched "
            f"before, and {problem}. Check the spelling, {remedy}, {_REMEDY}"
        )
    return bool(problem)


def fetched_revision(model: str, *, has_modules: bool = False) -> str:
    """Return which state of a model of the hub lies here as a whole; "" where none does.

    Parameters
    ----------
    model : str
        OWNER/NAME.
    has_modules : bool
        Its modules count as well: sentence encoders say in a file of their own how they pool.
    """
    config, index = _find(model, "config.json"), _find(model, _INDEX)
    if config is None:
        return ""
    needed = ["tokenizer_config.json"]
    needed += ["model.safetensors"] if index is None else _shards(index)
    if has_modules:
        modules = _find(model, _MODULES)
        needed += [_MODULES, *(_module_files(modules) if modules else [])]
    return config.parent.name if all(_is_known(model, file) for file in needed) else ""


def _find(model: str, file: str) -> Path | None:
    """Return where a file of a model lies in the cache of earlier downloads."""
    found = _looked_up(model, file)
    return Path(found) if isinstance(found, str) else None


def _is_known(model: str, file: str) -> bool:
    """Return whether a file was fetched, or the hub has said that there is none."""
    return _looked_up(model, file) is not None


def _looked_up(model: str, file: str) -> object:
    from huggingface_hub import try_to_load_from_cache

    with suppress(ValueError):  # no id of the hub
        return try_to_load_from_cache(model, file)
    return None


def _shards(index: Path) -> list[str]:
    """Return the files that weights in several parts lie in."""
    with suppress(CoreError):
        found = read_record(index, weight_map=dict)["weight_map"]
        return sorted({str(file) for file in found.values()})
    return ["model.safetensors"]


def _module_files(modules: Path) -> list[str]:
    """Return the settings of the modules that lie in folders of their own."""
    with suppress(CoreError, AttributeError, TypeError):
        listed: Any = json.loads(modules.read_text())
        return [f"{each['path']}/config.json" for each in listed if each.get("path")]
    return []


def _problem(ids: list[str]) -> tuple[str, str]:
    """Return why none of these can be fetched, and what helps; nothing where one can be."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE forbids asking the model hub", "unset HF_HUB_OFFLINE when online"
    answers: list[str] = []
    for model in ids:
        status = _ask_in_time(model)
        if isinstance(status, int) and status < 400:
            return "", ""
        if isinstance(status, str):
            return f"the model hub could not be reached ({status})", "connect to the network"
        answers.append(str(status))
    if set(answers) <= {"401", "403", "404"}:
        return ("the model hub knows no such model that is open to you",
                "log in (`hf auth login`) if it is yours or gated")  # fmt: skip
    return f"the model hub answered {', '.join(answers)}", "try again later"


def _ask_in_time(model: str) -> int | str:
    """Return the hub's HTTP status for a model, or why there was none within SECONDS."""
    answers: list[int | str] = [f"no answer within {SECONDS:g} s"]

    def ask() -> None:
        try:
            answers.append(_ask_hub(model))
        except Exception as error:  # of whichever HTTP library the hub's client uses
            answers.append(type(error).__name__)

    asking = Thread(target=ask, daemon=True)  # a daemon, so that nothing waits for it at the end
    asking.start()
    asking.join(SECONDS)
    return answers[-1]


def _ask_hub(model: str) -> int:
    """Ask the hub once for the head of a model's configuration; return the HTTP status."""
    from huggingface_hub import get_session, get_token, hf_hub_url

    token = get_token()  # the client's own headers ask the hub for more, and wait for it
    headers = {"authorization": f"Bearer {token}"} if token else {}
    url = hf_hub_url(model, "config.json")
    return int(get_session().head(url, headers=headers, timeout=SECONDS).status_code)
