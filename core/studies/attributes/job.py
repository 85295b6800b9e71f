"""Attribute inference on a user's labelled texts, as a background job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.attributes.draw import Draw, Plan, draw
from leakscope.core.attacks.attributes.examples import Examples
from leakscope.core.attacks.attributes.experiment import (
    Case,
    SharedVectors,
    encode_draws,
    run_cases,
)
from leakscope.core.attacks.attributes.parts import TopicMap
from leakscope.core.attacks.attributes.registry import make_attribute_attack
from leakscope.core.attacks.attributes.sources import load_examples
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.results.rows import Row
from leakscope.core.studies.attributes.request import (
    MOST_LABELS,
    MOST_PER_LABEL,
    AttributeRequest,
    InferenceResult,
)
from leakscope.core.studies.attributes.rows import rows_from_cases

_MOST_TARGETS, _FEWEST, _MOST = 1000, 10, 100
"""The total number of targets, and the fewest and most per label."""

_SIZES = (2, 5, 10, 20, 50)
_N_UNSEEN = 60


def infer_attribute(
    request: AttributeRequest, examples: Examples | None, on_progress: OnProgress = no_progress
) -> InferenceResult:
    """Run the linear probe and bag-of-words baseline on texts of a request, at every size.

    Parameters
    ----------
    examples : Examples or None
        Of an upload; a corpus is read here.

    Raises
    ------
    InvalidInputError
        Fewer than two labels have enough texts.
    """
    on_progress(0.0, "Reading the texts")
    examples = examples or load_examples(request.source)
    on_progress(0.02, "Drawing labelled texts and targets")
    drawn = _draw_texts(request, examples)
    encoder = shared_encoder(request.on)
    if not request.is_upload:  # no vectors of uploads are stored on disk
        encoder = CachedEncoder(encoder)
    draws = {request.seed: drawn}
    encoding = _scaled_progress(on_progress, 0.05, 0.7, "Encoding")
    shared = encode_draws(examples, draws, encoder, encoding)
    cases = _list_cases(request, drawn)
    training = _scaled_progress(on_progress, 0.7, 0.8, "Training the probe")
    probe = run_cases(make_attribute_attack("linear"), cases, examples, draws, shared, training)
    *plain, largest = (case for case in cases if not case.is_shuffled)
    # Only cases with the most labels or the most texts per label: each takes seconds.
    slow = [
        case
        for case in [*plain, largest]
        if case.n_labels == largest.n_labels or case.n_per_label == largest.n_per_label
    ]
    training = _scaled_progress(on_progress, 0.8, 0.95, "Training the bag of words")
    words = run_cases(make_attribute_attack("words"), slow, examples, draws, on_progress=training)
    on_progress(0.95, "Separating topic and rest")
    rows = [
        *_with_cell(request, "linear", rows_from_cases(probe, examples, draws, shared)),
        *_with_cell(request, "words", rows_from_cases(words, examples, draws)),
    ]
    (linear,) = (each.linear for each in probe if each.case == largest)
    assert linear is not None
    unseen = _draw_unseen_texts(examples, drawn, request)
    return InferenceResult(
        rows=tuple(rows),
        labels=drawn.labels,
        linear=linear,
        topic=_fit_topic_map(examples, shared, unseen, request.split),
        unseen=tuple((examples.texts[i], examples.labels[i]) for i in unseen),
    )


def _scaled_progress(on_progress: OnProgress, start: float, end: float, told: str) -> OnProgress:
    """Return a progress callback that maps [0, 1] to [start, end] with a fixed message."""
    return lambda done, _: on_progress(start + (end - start) * done, told)


def _draw_texts(request: AttributeRequest, examples: Examples) -> Draw:
    """Draw labelled texts and targets of n labels, or of all usable labels if those are fewer."""
    n_labels = min(request.n_labels, len(set(examples.labels)), MOST_LABELS)
    plan = Plan(
        n_labels=n_labels,
        n_per_label=min(request.n_per_label, MOST_PER_LABEL),
        n_targets=int(np.clip(_MOST_TARGETS // n_labels, _FEWEST, _MOST)),
        split=request.split,
        seed=request.seed,
    )
    try:
        return draw(examples, plan)
    except InvalidInputError:
        return draw(examples, replace(plan, n_labels=0))


def _list_cases(request: AttributeRequest, drawn: Draw) -> list[Case]:
    """List the cases to run: one per size, and a control with shuffled labels at the largest."""
    ((source, known),) = drawn.known.items()
    n_labels, n_known = known.shape
    labels = sorted({max(2, n_labels // 4), max(2, n_labels // 2), n_labels})
    sizes = sorted({*(size for size in _SIZES if size < n_known), n_known})
    plain = [Case(request.seed, source, n, size) for n in labels for size in sizes]
    return [*plain, replace(plain[-1], is_shuffled=True)]


def _with_cell(request: AttributeRequest, attack: str, rows: Sequence[Row]) -> list[Row]:
    """Return copies of rows with the cell entries that rows of the study have."""
    cell = {"attribute_attack": attack, "split": request.split, "label": request.attribute}
    if attack == "linear":
        cell["encoder"] = request.on.name
    return [replace(row, cell=dict(cell)) for row in rows]


def _draw_unseen_texts(
    examples: Examples, drawn: Draw, request: AttributeRequest
) -> NDArray[np.int64]:
    """Draw a few targets per label as text indices, of one group each if groups are split."""
    rng = np.random.default_rng([request.seed, 14])
    most = max(1, _N_UNSEEN // len(drawn.labels))
    found: list[int] = []
    for i in range(len(drawn.labels)):
        own = rng.permutation(drawn.targets[drawn.truth == i]).tolist()
        if request.split == "group" and examples.groups is not None and own:
            group = examples.groups[own[0]]
            own = [row for row in own if examples.groups[row] == group]
        found += own[:most]
    return np.array(found, np.int64)


def _fit_topic_map(
    examples: Examples, shared: SharedVectors, unseen: NDArray[np.int64], split: str
) -> TopicMap | None:
    """Fit a map from content words to vectors, without the unseen texts; None if too few remain."""
    of = examples.groups
    if split == "group" and of is not None:
        aside = {of[i] for i in unseen}
        is_known = np.array([of[i] not in aside for i in shared.rows])
    else:
        is_known = ~np.isin(shared.rows, unseen)
    rows = shared.rows[is_known]
    groups = None if of is None else [of[i] for i in rows]
    try:
        texts = [examples.texts[i] for i in rows]
        return TopicMap().fit(texts, shared.vectors[is_known], groups)
    except InvalidInputError:  # too few texts, or no word that occurs in two of them
        return None
