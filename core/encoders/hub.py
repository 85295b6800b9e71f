"""Check that a model is available, locally or on the hub, before any heavy import.

The libraries that load models retry the hub. Without a network, or with a misspelt name, that takes
about a minute.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from leakscope.core.errors import CoreError, ModelUnavailableError
from leakscope.core.storage.artifacts import read_record

SECONDS = 2.5
"""Time limit for the hub's answer, including the DNS look-up, which HTTP time-outs do not cover."""

_PART = r"[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?"
_HUB_ID = re.compile(rf"(?:{_PART}/)?{_PART}", re.ASCII)
_INDEX, _MODULES = "model.safetensors.index.json", "modules.json"
_REMEDY = "or use a local folder; `minilm` always works offline."


def must_be_local(name: str, source: str, *, owner: str = "") -> bool:
    """Return whether a model must be loaded without the hub; raise if it is nowhere available.

    A completely downloaded model is loaded from the local cache, so that measurements are
    repeatable. To get a newer revision, remove it from the hub's cache (`hf cache`).

    Parameters
    ----------
    name : str
        The encoder's name as the user typed it, for the message.
    source : str
        A folder, or a hub id.
    owner : str
        The owner assumed for an id without one.

    Raises
    ------
    ModelUnavailableError
        Neither local nor on the hub, or the hub does not answer within SECONDS.
    """
    if Path(source).is_dir():
        return True
    if not _HUB_ID.fullmatch(source) or "--" in source or ".." in source:
        raise ModelUnavailableError(
            f"Encoder {name!r}: {source!r} is neither an existing folder nor a model id of the hub "
            "(OWNER/NAME with letters, digits, '-', '_' and '.'). Check the spelling, " + _REMEDY
        )
    ids = [f"{owner}/{source}", source] if owner and "/" not in source else [source]
    if any(fetched_revision(model, has_modules=bool(owner)) for model in ids):
        return True
    is_here = any(_find_in_cache(model, "config.json") for model in ids)
    problem, remedy = _why_unavailable(ids)
    if problem and not is_here:
        raise ModelUnavailableError(
            f"Encoder {name!r} was not found: {source} is not a folder here, was not downloaded "
            f"before, and {problem}. Check the spelling, {remedy}, {_REMEDY}"
        )
    return bool(problem)


def fetched_revision(model: str, *, has_modules: bool = False) -> str:
    """Return the revision of a hub model if it is completely downloaded, else "".

    Parameters
    ----------
    model : str
        OWNER/NAME.
    has_modules : bool
        Require its modules as well: sentence encoders store their pooling in separate files.
    """
    config, index = _find_in_cache(model, "config.json"), _find_in_cache(model, _INDEX)
    if config is None:
        return ""
    needed = ["tokenizer_config.json"]
    needed += ["model.safetensors"] if index is None else _read_weight_files(index)
    if has_modules:
        modules = _find_in_cache(model, _MODULES)
        needed += [_MODULES, *(_read_module_configs(modules) if modules else [])]
    # A file that is recorded as absent on the hub counts as known.
    is_whole = all(_cache_entry(model, file) is not None for file in needed)
    return config.parent.name if is_whole else ""


def _find_in_cache(model: str, file: str) -> Path | None:
    """Return the path of a model's file in the hub's local cache; None if it is not there."""
    found = _cache_entry(model, file)
    return Path(found) if isinstance(found, str) else None


def _cache_entry(model: str, file: str) -> object:
    """Look up a model's file in the hub's local cache: its path, a mark of absence, or None."""
    from huggingface_hub import try_to_load_from_cache

    with suppress(ValueError):  # not a hub id
        return try_to_load_from_cache(model, file)
    return None


def _read_weight_files(index: Path) -> list[str]:
    """Read the file names of a model's weights from its weight index."""
    with suppress(CoreError):
        found = read_record(index, weight_map=dict)["weight_map"]
        return sorted({str(file) for file in found.values()})
    return ["model.safetensors"]


def _read_module_configs(modules: Path) -> list[str]:
    """Read which configuration files a sentence encoder's modules have; [] if unreadable."""
    with suppress(CoreError, AttributeError, TypeError):
        listed: Any = json.loads(modules.read_text())
        return [f"{each['path']}/config.json" for each in listed if each.get("path")]
    return []


def _why_unavailable(ids: list[str]) -> tuple[str, str]:
    """Ask the hub for each model id; return why none can be fetched and a remedy, else ("", "")."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE forbids access to the model hub", "unset HF_HUB_OFFLINE"
    answers: list[str] = []
    for model in ids:
        status = _ask_in_time(model)
        if isinstance(status, int) and status < 400:
            return "", ""
        if isinstance(status, str):
            return f"the model hub could not be reached ({status})", "connect to the network"
        answers.append(str(status))
    if set(answers) <= {"401", "403", "404"}:
        return (
            "the model hub has no such model that you can access",
            "log in (`hf auth login`) if it is private or gated",
        )
    return f"the model hub answered {', '.join(answers)}", "try again later"


def _ask_in_time(model: str) -> int | str:
    """Request a model from the hub; return the HTTP status, or why there is none after SECONDS."""
    answers: list[int | str] = [f"no answer within {SECONDS:g} s"]

    def ask() -> None:
        """Request the model; record the HTTP status or the name of the error."""
        try:
            answers.append(_ask_hub(model))
        except Exception as error:  # depends on the HTTP library of the hub's client
            answers.append(type(error).__name__)

    asking = Thread(target=ask, daemon=True)  # a daemon, so that nothing waits for it at the end
    asking.start()
    asking.join(SECONDS)
    return answers[-1]


def _ask_hub(model: str) -> int:
    """Request the head of a model's configuration from the hub; return the HTTP status."""
    from huggingface_hub import get_session, get_token, hf_hub_url

    token = get_token()  # the client's own headers cause further requests
    headers = {"authorization": f"Bearer {token}"} if token else {}
    url = hf_hub_url(model, "config.json")
    return int(get_session().head(url, headers=headers, timeout=SECONDS).status_code)
