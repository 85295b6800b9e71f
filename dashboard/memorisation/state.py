"""The visitor's choices and cached results on the memorisation page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from leakscope.core.attacks.membership.memorisation.memorise import MemoriseRequest
from leakscope.core.attacks.membership.memorisation.settings import (
    MODEL_NAMES,
    MemorisationSettings,
)
from leakscope.core.attacks.membership.memorisation.tokens import TOKENS
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.dashboard.address import Address, Parameter
from leakscope.dashboard.server.reader_processes import run_reader
from leakscope.dashboard.ui.session_results import SessionCache

if TYPE_CHECKING:
    from leakscope.core.attacks.membership.memorisation.memorise import CanaryMemorisation

UPLOAD = "upload"
CORPORA = {
    "bundled": "News and encyclopaedia",
    "lee": "News (Lee)",
    "wikipedia": "Wikipedia extract",
    UPLOAD: "Your own file",
}
COUNTS = (200, 500, 1000, 2000, 5000)
INSERTIONS = (0, 1, 2, 4, 8, 16, 32, 64, 128)
EPOCHS = range(1, 51)
DRAWN = (0, 100, 400, 1000)
_SEEDS = range(1, 6)
_DEFAULTS: dict[str, Any] = {
    "canary": "My card number is {digits:4}",
    "insertions": 16,
    "epochs": 10,
    "model": "lstm",
    "corpus": "bundled",
    "n": 1000,
    "tokens": "bytes",
    "draw": 400,
    "models": 1,
}
_RESULTS: SessionCache[MemoriseRequest, CanaryMemorisation] = SessionCache("_memorised", 6)
result_of = _RESULTS.get
remember = _RESULTS.add
_TEXTS: SessionCache[tuple[str, str, int], list[str]] = SessionCache("_memorise_texts", 1)


def key_of(name: str) -> str:
    """Return the session key of a named control."""
    return f"memorise_{name}"


def choice(name: str) -> Any:
    """Return the current value of a named control from the session."""
    return st.session_state.get(key_of(name), _DEFAULTS[name])


def address() -> Address:
    """Build the page's address: `?canary=…&insertions=16&epochs=10&model=lstm`.

    A link opens only bundled corpora: it must not read other files.
    """
    options: dict[str, Sequence[Any] | None] = {
        "canary": None,
        "insertions": INSERTIONS,
        "epochs": EPOCHS,
        "model": MODEL_NAMES,
        "corpus": [name for name in CORPORA if name != UPLOAD],
        "n": COUNTS,
        "tokens": TOKENS,
        "draw": DRAWN,
        "models": _SEEDS,
    }
    hints = {"epochs": f"epochs runs from {EPOCHS[0]} to {EPOCHS[-1]}."}
    return Address(
        "memorisation",
        tuple(
            Parameter(
                name=name,
                key=key_of(name),
                default=_DEFAULTS[name],
                options=allowed,
                hint=hints.get(name, ""),
                write=lambda value: None if value == UPLOAD else str(value),
            )
            for name, allowed in options.items()
        ),
    )


def chosen_request(corpus: str) -> MemoriseRequest:
    """Build the request from the controls, for a corpus or an upload's identifier."""
    settings = MemorisationSettings(
        model=str(choice("model")),
        tokens=str(choice("tokens")),
        insertions=int(choice("insertions")),
        epochs=int(choice("epochs")),
        n_texts=int(choice("n")),
        n_generated=int(choice("draw")),
    )
    seeds = tuple(range(int(choice("models"))))
    canary = str(choice("canary"))
    return MemoriseRequest(corpus=corpus, canary=canary, settings=settings, seeds=seeds)


def restore_request(request: MemoriseRequest) -> None:
    """Set the page's controls to a job's request, after a reload."""
    settings = request.settings
    values = {
        "canary": request.canary,
        "insertions": settings.insertions,
        "epochs": settings.epochs,
        "model": settings.model,
        "corpus": UPLOAD if is_upload(request.corpus) else request.corpus,
        "n": settings.n_texts,
        "tokens": settings.tokens,
        "draw": settings.n_generated,
        "models": len(request.seeds),
    }
    for name, value in values.items():
        st.session_state[key_of(name)] = value
    if is_upload(request.corpus):
        st.session_state["_memorised_upload"] = request.corpus


def plant_text(text: str) -> None:
    """Set the canary's control to a text, as a callback."""
    st.session_state[key_of("canary")] = text


def is_upload(corpus: str) -> bool:
    """Return whether a corpus identifier is that of an upload."""
    return corpus.startswith(f"{UPLOAD} ")


def upload_corpus(digest: str | None, column: str | None) -> str | None:
    """Build an upload's identifier; without a file, return that of a job after a reload."""
    if digest is None:
        found: str | None = st.session_state.get("_memorised_upload")
        return found
    st.session_state.pop("_memorised_upload", None)  # replaced by the new file
    return f"{UPLOAD} {digest} {column or ''}"


def remember_corpus(corpus: str | None) -> None:
    """Store the identifier of the chosen texts for the presentation mode."""
    st.session_state["_memorise_corpus"] = corpus


def presented_corpus() -> str | None:
    """Return the identifier of the texts for the presentation mode, from the session."""
    corpus = str(choice("corpus"))
    found: str | None = st.session_state.get("_memorise_corpus")
    return found if corpus == UPLOAD else corpus


def upload_sentences(file: MemoryFile, corpus: str, column: str | None, n: int) -> list[str]:
    """Read an upload's sentences in another process; cached for the file and the choices.

    Raises
    ------
    InvalidInputError
        The file cannot be used; the message states the remedy.
    """
    from leakscope.core.attacks.membership.memorisation.texts import upload_texts

    return _TEXTS.once((file.name, corpus, n), partial(run_reader, upload_texts, file, n, column))


def live_exposures(job_id: str, reported: list[float]) -> list[float]:
    """Return a job's new exposures, or its last reported ones if a message has none."""
    last = st.session_state.get("_memorise_live")
    if reported or last is None or last[0] != job_id:
        last = (job_id, reported)
        st.session_state["_memorise_live"] = last
    found: list[float] = last[1]
    return found
