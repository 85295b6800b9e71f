"""Inferring an attribute of one's own texts, from a few labelled ones: work for a process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.attributes.draw import Draw, Plan, draw
from core.attacks.attributes.examples import Examples
from core.attacks.attributes.experiment import Case, Found, Shared, answer_all, share_vectors
from core.attacks.attributes.parts import TopicMap
from core.attacks.attributes.program import Linear
from core.attacks.attributes.registry import make_attribute_attack
from core.attacks.attributes.sources import open_examples
from core.encoders.at_hand import encoder_at_hand
from core.encoders.cache import CachedEncoder
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.studies.attribute_request import (
    MOST_LABELS,
    MOST_PER_LABEL,
    AttributeRequest,
    Inferred,
)
from core.studies.attribute_rows import rows_of_found
from core.studies.rows import Row

__all__ = ["infer_attribute"]

_MOST_TARGETS, _FEWEST, _MOST = 1000, 10, 100
"""Targets in all; and of each label."""

_SIZES = (2, 5, 10, 20, 50)
_N_UNSEEN = 60


def infer_attribute(
    request: AttributeRequest, examples: Examples | None, on_progress: OnProgress = no_progress
) -> Inferred:
    """Draw, encode, and let the probe and the words of the raw texts compete at every size.

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
    examples = examples or open_examples(request.source)
    on_progress(0.02, "Drawing labelled texts and others to attack")
    drawn = _drawn(request, examples)
    encoder = encoder_at_hand(request.on)
    if not request.is_upload:  # what was uploaded leaves no vector on the disk
        encoder = CachedEncoder(encoder)
    draws = {request.seed: drawn}
    shared = share_vectors(examples, draws, encoder, _part(on_progress, 0.05, 0.7, "Encoding"))
    cases = _cases(request, drawn)
    probe = answer_all(make_attribute_attack("linear"), cases, examples, draws, shared,
                       _part(on_progress, 0.7, 0.8, "Training the probe"))  # fmt: skip
    words = answer_all(make_attribute_attack("words"), _fewer(cases), examples, draws,
                       on_progress=_part(on_progress, 0.8, 0.95, "Training on words"))  # fmt: skip
    on_progress(0.95, "Parting topic and rest")
    rows = [
        *_told(request, "linear", rows_of_found(probe, examples, draws, shared)),
        *_told(request, "words", rows_of_found(words, examples, draws)),
    ]
    unseen = _set_aside(examples, drawn, request)
    return Inferred(
        rows=tuple(rows),
        labels=drawn.labels,
        linear=_largest(probe),
        topic=_topic_map(examples, shared, unseen, request.split),
        unseen=tuple((examples.texts[i], examples.labels[i]) for i in unseen),
    )


def _part(on_progress: OnProgress, start: float, end: float, told: str) -> OnProgress:
    return lambda done, _: on_progress(start + (end - start) * done, told)


def _drawn(request: AttributeRequest, examples: Examples) -> Draw:
    """Return the draw of the labels asked for, or of all that have enough texts."""
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


def _cases(request: AttributeRequest, drawn: Draw) -> list[Case]:
    """Return all sizes, and the control at the largest."""
    ((source, known),) = drawn.known.items()
    n_labels, n_known = known.shape
    labels = sorted({max(2, n_labels // 4), max(2, n_labels // 2), n_labels})
    sizes = sorted({*(size for size in _SIZES if size < n_known), n_known})
    plain = [Case(request.seed, source, n, size) for n in labels for size in sizes]
    return [*plain, replace(plain[-1], is_shuffled=True)]


def _fewer(cases: Sequence[Case]) -> list[Case]:
    """Return the cases of the most labels or of the most labelled texts: each takes seconds."""
    most = cases[-1]
    return [
        case
        for case in cases
        if not case.is_shuffled
        and (case.n_labels == most.n_labels or case.n_per_label == most.n_per_label)
    ]


def _told(request: AttributeRequest, attack: str, rows: Sequence[Row]) -> list[Row]:
    """Return rows that tell what they are of, as those of the study do."""
    cell: Mapping[str, Any] = {
        "attribute_attack": attack,
        "split": request.split,
        "label": request.attribute,
        **({"encoder": request.on.name} if attack == "linear" else {}),
    }
    return [replace(row, cell=dict(cell)) for row in rows]


def _largest(found: Sequence[Found]) -> Linear:
    """Return what the probe learned from all labelled texts."""
    plain = [each for each in found if not each.case.is_shuffled]
    linear = max(plain, key=lambda each: (each.case.n_labels, each.case.n_per_label)).linear
    assert linear is not None
    return linear


def _set_aside(examples: Examples, drawn: Draw, request: AttributeRequest) -> NDArray[np.int64]:
    """Return a few targets of each label, of one group where groups are parted."""
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


def _topic_map(
    examples: Examples, shared: Shared, unseen: NDArray[np.int64], split: str
) -> TopicMap | None:
    """Return what content words tell, learned without the unseen texts, nor others of theirs."""
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
    except InvalidInputError:  # too few texts, or no word that stands in two of them
        return None
