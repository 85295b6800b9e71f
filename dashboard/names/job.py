"""Run the name experiment: from the cache, from the shipped files, or in a background job."""

from __future__ import annotations

from leakscope.core.errors import ArtifactError
from leakscope.core.names.experiment import NameExperiment, check_size, compare_names
from leakscope.core.names.person import PersonName, parse_names
from leakscope.core.names.sentences import NamedSentence, read_sentences
from leakscope.core.names.shipped import find_example
from leakscope.core.specs import AttackSpec
from leakscope.core.text import MAX_CHARACTERS, check_text
from leakscope.dashboard import cache
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.names import controls
from leakscope.dashboard.names import state as names_state
from leakscope.dashboard.names.state import NamesRequest
from leakscope.dashboard.ui import work


def result_or_controls(request: NamesRequest) -> NameExperiment | None:
    """Return the experiment's result, or start its job, draw its controls and return None.

    Raises
    ------
    InvalidInputError
        The sentences or names cannot be used.
    """
    work.drop_others(NamesRequest, lambda other: other == request)
    known = names_state.experiment_of(request) or _find_shipped(request)
    if known is not None:
        return known
    if not work.is_known(request):
        _start(request)
    offer = work.Offer(
        label="Compute",
        key="names-compute",
        on_click=_start,
        failed="The names could not be compared",
        is_primary=True,
    )
    done = work.draw_job(request, offer)
    return names_state.remember_experiment(request, done.result) if done else None


def _find_shipped(request: NamesRequest) -> NameExperiment | None:
    """Load and cache the shipped result if the request is the example; else return None."""
    if request != controls.sample_request():
        return None
    try:
        found = find_example(request.attack, cache.encoder(ENCODER), *_parse_request(request))
    except ArtifactError:  # damaged: compute it again
        return None
    return names_state.remember_experiment(request, found) if found else None


def _parse_request(request: NamesRequest) -> tuple[list[NamedSentence], tuple[PersonName, ...]]:
    """Parse a request's sentences and names; raise InvalidInputError if they are too long."""
    if len(request.names) > MAX_CHARACTERS:
        check_text(request.names, name="the list of names")
    return read_sentences(request.sentences, parse_names(request.names.splitlines()))


def _start(request: NamesRequest) -> None:
    """Check the typed sentences and names, and start the background job that compares them."""
    # Parsed here, so that a mistake is reported at once.
    sentences, names = _parse_request(request)
    check_size(len(sentences), len(names))
    attack = AttackSpec(name=request.attack)
    work.start(request, compare_names, attack, ENCODER, sentences, names)


def adopt_names_job() -> None:
    """Restore the controls from a names job that the URL names, after a reload."""
    for request in work.adopt_jobs(NamesRequest):
        names_state.restore_request(request)
