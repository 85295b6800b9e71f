"""From a request to a reading: at once for a fast attack, as a job for a slow one."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.job import read_text
from core.attacks.inversion.reading import Reading, mark_recovery, read_vector
from core.jobs import JobState
from core.protocols import Access, Vectors
from core.results import RecoveredWord, Recovery
from core.specs import AttackSpec, EncoderSpec, settings_of
from core.text import word_set
from dashboard import cache, work
from dashboard.inversion import growing, state
from dashboard.inversion.request import Request

__all__ = [
    "ENCODER",
    "adopt_jobs",
    "base_settings",
    "live_reading",
    "reading",
    "request_for",
    "settings_for",
    "stop_old_jobs",
    "told_reading",
    "unprepared_reading",
]

ENCODER = EncoderSpec(name="minilm")
"""The encoder under attack."""

_OPENS_FIRST = (
    "Encodes its word list or its sentences first: a minute or so, once on this computer. "
    "After that it answers as you type."
)
_SLOW = "Takes seconds to a minute, so it runs when you ask for it."


def base_settings(name: str) -> dict[str, Any]:
    """Return the settings in force unless the visitor changes them.

    Those of the weights that ship; else those found to serve this encoder, over the paper's.
    """
    kind = INVERSION_ATTACKS[name].kind
    papers = {key: declared.default for key, declared in settings_of(kind).items()}
    return papers | (cache.shipped_settings(name, ENCODER) or _tuned(name))


def _tuned(name: str) -> dict[str, Any]:
    module = import_module(INVERSION_ATTACKS[name].path.partition(":")[0])
    return dict(getattr(module, "TUNED", {}))


def settings_for(name: str) -> dict[str, Any]:
    """Return the settings to open an attack with, those alone that it would not take by itself."""
    by_itself = {} if cache.shipped_settings(name, ENCODER) else _tuned(name)
    return by_itself | state.settings_of_attack(name)


def request_for(name: str, text: str) -> Request:
    """Return the request for an attack on a text, with the visitor's settings."""
    stop_words = state.counts_stop_words()
    settings = settings_for(name)
    if stop_words and INVERSION_ATTACKS[name].access is Access.WHITE_BOX:
        settings = {**settings, "keep_stop_words": True}
    return Request(text=text, spec=AttackSpec.of(name, settings), counts_stop_words=stop_words)


def reading(request: Request, vector: Vectors) -> Reading | None:
    """Return the reading, or draw what starts and follows an attack that takes its time."""
    is_live = INVERSION_ATTACKS[request.spec.name].is_live
    if is_live and cache.opens_at_once(request.spec.name, ENCODER):
        return live_reading(request, vector)
    return _slow_reading(request, vector)


def live_reading(request: Request, vector: Vectors) -> Reading:
    """Return the reading of a fast attack, kept for this session alone."""
    known = state.reading_of(request)
    return known or state.remember_reading(request, _read(request, vector))


def unprepared_reading(name: str, text: str, vector: Vectors) -> Reading:
    """Return what a fast attack reads from a vector that is not the text's own, not kept."""
    return _read(request_for(name, text), vector)


def told_reading(name: str, text: str, told: str) -> Reading:
    """Return what is read of a text by whoever has another, such as the one that was released.

    Words count that no attack knows: who reads a text needs no list of words.

    Parameters
    ----------
    name : str
        The attack whose words count beside them, and whose guess it is held against.
    """
    request = request_for(name, text)
    attack, encoder = cache.attack(request.spec, ENCODER), cache.encoder(ENCODER)
    answer = Recovery(tuple(RecoveredWord(word, 1.0) for word in sorted(word_set(told))))
    prior = cache.guess(name, ENCODER, request.counts_stop_words)
    return mark_recovery(name, attack, encoder, text, answer, prior,
                         counts_stop_words=request.counts_stop_words)  # fmt: skip


def _slow_reading(request: Request, vector: Vectors) -> Reading | None:
    known = state.reading_of(request)
    if known is not None:
        return known
    name = request.spec.name
    run = f"Run {INVERSION_ATTACKS[name].title.lower()}"
    offer = work.Offer(
        label=run,
        again=f"{run} again",
        key=f"run-{name}",
        on_click=partial(_start, vector),
        failed=f"{INVERSION_ATTACKS[name].title} did not finish",
        note=_OPENS_FIRST if INVERSION_ATTACKS[name].is_live else _SLOW,
        takes_best=INVERSION_ATTACKS[name].writes_sentences,
        tells=growing.head,
        shows=partial(growing.shown, request.text),
    )
    done = work.take(request, offer)
    if done is None:
        return None
    cache.open_names().add((name, ENCODER))  # what it encoded first is on disk now
    if done.state is JobState.STOPPED:  # not remembered: it can be run to its end
        unfinished: Reading = done.result[0]
        return unfinished
    reading: Reading = done.result
    return state.remember_reading(request, reading)


def _start(vector: Vectors, request: Request) -> None:
    known = (request.spec, ENCODER, request.text, vector, request.counts_stop_words)
    work.start(request, read_text, *known)


def _read(request: Request, vector: Vectors) -> Reading:
    spec = request.spec
    return read_vector(
        spec.name,
        cache.attack(spec, ENCODER),
        cache.encoder(ENCODER),
        request.text,
        vector,
        cache.guess(spec.name, ENCODER, request.counts_stop_words),
        counts_stop_words=request.counts_stop_words,
    )


def adopt_jobs() -> None:
    """Take up the jobs that the address names, after the page was reloaded."""
    for request in work.adopt(Request):
        state.restore(request)


def stop_old_jobs(text: str) -> None:
    """Stop the attacks on a sentence that is no longer shown."""
    work.drop_others(Request, lambda request: request.text == text)
