"""From sentences and names to their heat map: known from before, or as a job with progress."""

from __future__ import annotations

from core.errors import ArtifactError
from core.names.experiment import NameExperiment, check_size
from core.names.job import compare_names
from core.names.person import PersonName, parse_names
from core.names.sentences import NamedSentence, read_sentences
from core.names.shipped import find_example
from core.specs import AttackSpec
from core.text import MAX_CHARACTERS, check_text
from dashboard import cache, work
from dashboard.inversion.answers import ENCODER
from dashboard.names import controls
from dashboard.names import state as names_state
from dashboard.names.state import NamesRequest

__all__ = ["adopt_names_job", "experiment"]


def experiment(request: NamesRequest) -> NameExperiment | None:
    """Return what came of a request, or draw what starts, follows and stops its job.

    Raises
    ------
    InvalidInputError
        Sentences or names that cannot be used.
    """
    work.drop_others(NamesRequest, lambda other: other == request)
    known = names_state.experiment_of(request) or _shipped(request)
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
    done = work.take(request, offer)
    return names_state.remember_experiment(request, done.result) if done else None


def _shipped(request: NamesRequest) -> NameExperiment | None:
    """Return the result that ships, where this is the example: nobody asked for slow work yet."""
    if request != controls.samples():
        return None
    try:
        found = find_example(request.attack, cache.encoder(ENCODER), *_read(request))
    except ArtifactError:  # damaged: it can be computed anew
        return None
    return names_state.remember_experiment(request, found) if found else None


def _read(request: NamesRequest) -> tuple[list[NamedSentence], tuple[PersonName, ...]]:
    """Return the sentences and the names that were typed."""
    if len(request.names) > MAX_CHARACTERS:
        check_text(request.names, name="the list of names")
    return read_sentences(request.sentences, parse_names(request.names.splitlines()))


def _start(request: NamesRequest) -> None:
    # Read here, so that what was mistyped is told at once.
    sentences, names = _read(request)
    check_size(len(sentences), len(names))
    attack = AttackSpec(name=request.attack)
    work.start(request, compare_names, attack, ENCODER, sentences, names)


def adopt_names_job() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for request in work.adopt(NamesRequest):
        names_state.restore_request(request)
