"""What one visitor has chosen on the page of memorisation, and what came of it, for them alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.attacks.membership.memorisation.memorise import MemoriseRequest
from core.attacks.membership.memorisation.settings import MODEL_NAMES, MemorisationSettings
from core.attacks.membership.memorisation.tokens import TOKENS
from core.corpora.memory_file import MemoryFile
from dashboard.address import Address, Parameter
from dashboard.apart import parsed
from dashboard.kept import Kept

if TYPE_CHECKING:
    from core.attacks.membership.memorisation.memorise import Memorised

__all__ = [
    "CORPORA",
    "COUNTS",
    "DRAWN",
    "EPOCHS",
    "INSERTIONS",
    "UPLOAD",
    "address",
    "chosen",
    "chosen_request",
    "is_upload",
    "key_of",
    "live_exposures",
    "plant_text",
    "presented_corpus",
    "remember",
    "restore_request",
    "result_of",
    "stand_at",
    "upload_corpus",
    "upload_sentences",
]

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
_RESULTS: Kept[MemoriseRequest, Memorised] = Kept("_memorised", 6)
result_of = _RESULTS.get
remember = _RESULTS.add
_TEXTS: Kept[tuple[str, str, int], list[str]] = Kept("_memorise_texts", 1)


def key_of(name: str) -> str:
    """Return the key of a control of the page."""
    return f"memorise_{name}"


def chosen(name: str) -> Any:
    """Return what a control of the page stands at."""
    return st.session_state.get(key_of(name), _DEFAULTS[name])


def address() -> Address:
    """Return what an address may ask for: `?canary=…&insertions=16&epochs=10&model=lstm`.

    It opens the bundled corpora alone: following a link must not read other files.
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
    """Return what the controls stand at; `corpus` is a name, or what recognises an upload."""
    settings = MemorisationSettings(
        model=str(chosen("model")),
        tokens=str(chosen("tokens")),
        insertions=int(chosen("insertions")),
        epochs=int(chosen("epochs")),
        n_texts=int(chosen("n")),
        n_generated=int(chosen("draw")),
    )
    seeds = tuple(range(int(chosen("models"))))
    canary = str(chosen("canary"))
    return MemoriseRequest(corpus=corpus, canary=canary, settings=settings, seeds=seeds)


def restore_request(request: MemoriseRequest) -> None:
    """Set the controls to what a job was asked for: the page was reloaded meanwhile."""
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
    """Set the canary, from a callback."""
    st.session_state[key_of("canary")] = text


def is_upload(corpus: str) -> bool:
    """Return whether a request's corpus is a file of the visitor's own."""
    return corpus.startswith(f"{UPLOAD} ")


def upload_corpus(digest: str | None, column: str | None) -> str | None:
    """Return what recognises an upload; without one, that of a job found after a reload."""
    if digest is None:
        found: str | None = st.session_state.get("_memorised_upload")
        return found
    st.session_state.pop("_memorised_upload", None)  # another may have taken its place
    return f"{UPLOAD} {digest} {column or ''}"


def stand_at(corpus: str | None) -> None:
    """Note which texts are asked about, for the presentation, which draws no controls."""
    st.session_state["_memorise_corpus"] = corpus


def presented_corpus() -> str | None:
    """Return which texts were asked about before the presentation began, or by the address."""
    corpus = str(chosen("corpus"))
    found: str | None = st.session_state.get("_memorise_corpus")
    return found if corpus == UPLOAD else corpus


def upload_sentences(file: MemoryFile, corpus: str, column: str | None, n: int) -> list[str]:
    """Return the sentences of an upload, read once while nothing changes.

    Raises
    ------
    InvalidInputError
        The file cannot be used; the message names the remedy.
    """
    from core.attacks.membership.memorisation.texts import upload_texts

    return _TEXTS.once((file.name, corpus, n), partial(parsed, upload_texts, file, n, column))


def live_exposures(job_id: str, told: list[float]) -> list[float]:
    """Return the longest list of exposures that a job has told, since later steps tell none."""
    kept = st.session_state.get("_memorise_live")
    if told or kept is None or kept[0] != job_id:
        kept = (job_id, told)
        st.session_state["_memorise_live"] = kept
    found: list[float] = kept[1]
    return found
