"""Run the attack that a request names: a fast one at once, a slow one in a job."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.job import read_text
from leakscope.core.attacks.inversion.reading import Reading, mark_recovery, read_vector
from leakscope.core.jobs import JobState
from leakscope.core.protocols import Access, Vectors
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import AttackSpec, EncoderSpec, settings_of
from leakscope.core.text import word_set
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import sentence_progress, state
from leakscope.dashboard.inversion.state import Request
from leakscope.dashboard.ui import work

ENCODER = EncoderSpec(name="minilm")
"""The encoder under attack."""

_OPENS_FIRST = (
    "Encodes its vocabulary or its sentences first: about a minute, once on this computer. "
    "Then it answers as you type."
)
_SLOW = "Takes seconds to a minute, so you start it yourself."


def base_settings(name: str) -> dict[str, Any]:
    """Return a named attack's settings before the visitor's changes.

    These are the settings of the shipped weights. Without weights they are the paper's, except
    where some were tuned for the bundled encoder.
    """
    kind = INVERSION_ATTACKS[name].kind
    papers = {key: declared.default for key, declared in settings_of(kind).items()}
    return papers | (cache.shipped_settings(name, ENCODER) or _tuned_settings(name))


def _tuned_settings(name: str) -> dict[str, Any]:
    """Return a named attack's settings tuned for the bundled encoder; {} if it has none."""
    module = import_module(INVERSION_ATTACKS[name].path.partition(":")[0])
    return dict(getattr(module, "TUNED", {}))


def settings_for(name: str) -> dict[str, Any]:
    """Return the settings of a named attack that differ from its defaults."""
    tuned = {} if cache.shipped_settings(name, ENCODER) else _tuned_settings(name)
    return tuned | state.settings_of_attack(name)


def request_for(name: str, text: str) -> Request:
    """Build the request for a named attack on a text, with the visitor's settings."""
    stop_words = state.counts_stop_words()
    settings = settings_for(name)
    if stop_words and INVERSION_ATTACKS[name].access is Access.WHITE_BOX:
        settings = {**settings, "keep_stop_words": True}
    return Request(text=text, spec=AttackSpec.of(name, settings), counts_stop_words=stop_words)


def reading_or_controls(request: Request, vector: Vectors) -> Reading | None:
    """Return the reading of a fast attack at once; of a slow one after its job, until then None."""
    is_live = INVERSION_ATTACKS[request.spec.name].is_live
    if is_live and cache.opens_fast(request.spec.name, ENCODER):
        return live_reading(request, vector)
    return _slow_reading(request, vector)


def live_reading(request: Request, vector: Vectors) -> Reading:
    """Run a fast attack on a vector and return its reading, cached in the session."""
    known = state.reading_of(request)
    return known or state.remember_reading(request, _run_attack(request, vector))


def uncached_reading(name: str, text: str, vector: Vectors) -> Reading:
    """Run a fast attack on another vector of the text; return the reading, not cached."""
    return _run_attack(request_for(name, text), vector)


def reading_from_text(name: str, text: str, known: str) -> Reading:
    """Build the reading of an attacker who knows another text, such as a released one.

    This attacker is not limited to a vocabulary: all words of the known text count.

    Parameters
    ----------
    name : str
        The attack that defines the vocabulary and the prior-only baseline.
    """
    request = request_for(name, text)
    attack, encoder = cache.attack(request.spec, ENCODER), cache.encoder(ENCODER)
    answer = Recovery(tuple(RecoveredWord(word, 1.0) for word in sorted(word_set(known))))
    prior = cache.prior_answer(name, ENCODER, request.counts_stop_words)
    return mark_recovery(
        name, attack, encoder, text, answer, prior, counts_stop_words=request.counts_stop_words
    )


def _slow_reading(request: Request, vector: Vectors) -> Reading | None:
    """Return a slow attack's cached or finished reading, else draw its job and return None."""
    known = state.reading_of(request)
    if known is not None:
        return known
    name = request.spec.name
    run = f"Run {INVERSION_ATTACKS[name].title.lower()}"
    offer = work.Offer(
        label=run,
        restart_label=f"{run} again",
        key=f"run-{name}",
        on_click=partial(_start, vector),
        failed=f"{INVERSION_ATTACKS[name].title} did not finish",
        note=_OPENS_FIRST if INVERSION_ATTACKS[name].is_live else _SLOW,
        accepts_best=INVERSION_ATTACKS[name].writes_sentences,
        format_message=sentence_progress.step_summary,
        draw_progress=partial(sentence_progress.show_current_sentence, request.text),
    )
    done = work.draw_job(request, offer)
    if done is None:
        return None
    cache.opened_attacks().add((name, ENCODER))  # its encoded words are on disk now
    if done.state is JobState.STOPPED:  # not cached, so that it can be run to its end
        unfinished: Reading = done.result[0]
        return unfinished
    reading: Reading = done.result
    return state.remember_reading(request, reading)


def _start(vector: Vectors, request: Request) -> None:
    """Start the background job of a slow attack on a vector."""
    known = (request.spec, ENCODER, request.text, vector, request.counts_stop_words)
    work.start(request, read_text, *known)


def _run_attack(request: Request, vector: Vectors) -> Reading:
    """Run an attack on a vector and compare its answer with the true text; return the reading."""
    spec = request.spec
    return read_vector(
        spec.name,
        cache.attack(spec, ENCODER),
        cache.encoder(ENCODER),
        request.text,
        vector,
        cache.prior_answer(spec.name, ENCODER, request.counts_stop_words),
        counts_stop_words=request.counts_stop_words,
    )


def adopt_jobs() -> None:
    """Restore the controls from the attack jobs that the URL names, after a reload."""
    for request in work.adopt_jobs(Request):
        state.restore(request)


def stop_old_jobs(text: str) -> None:
    """Stop the jobs that attack another sentence than the one now shown."""
    work.drop_others(Request, lambda request: request.text == text)
