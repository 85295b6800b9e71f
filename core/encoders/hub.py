"""Whether a model can be had, asked once and quickly before any heavy library is imported.

The libraries that load models ask the hub again and again: without a network, and for every
misspelt name, that takes about a minute.
"""

from __future__ import annotations

import re
from pathlib import Path
from threading import Thread

from core.errors import ModelUnavailableError

__all__ = ["must_be_local"]

SECONDS = 2.5
"""That the hub has to answer; looking up its address is included, which no time-out covers."""

_PART = r"[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?"
_HUB_ID = re.compile(rf"(?:{_PART}/)?{_PART}", re.ASCII)
_REMEDY = "or give a local folder; `minilm` always works offline."


def must_be_local(name: str, source: str, *, owner: str = "") -> bool:
    """Return whether a model must be loaded without asking the hub; it is here or on the hub.

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
    is_here = any(_is_fetched(model) for model in ids)
    problem, remedy = _problem(ids)
    if problem and not is_here:
        raise ModelUnavailableError(
            f"Encoder {name!r} was not found: {source} is no folder here, it was not fetched "
            f"before, and {problem}. Check the spelling, {remedy}, {_REMEDY}"
        )
    return bool(problem)


def _is_fetched(model: str) -> bool:
    """Return whether a model of the hub lies in the cache of earlier downloads."""
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(model, "config.json"), str)


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
