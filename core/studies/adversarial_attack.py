"""Attackers on an attribute that come after a defence was trained: fresh, on new samples.

Each knows the defence: it may encode its own texts with it, and is trained on what comes out. Those
on words are in `adversarial_words`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.attributes.answers import Answers, ranks_of
from core.attacks.attributes.linear import LinearProbe
from core.protocols import Encoder, Vectors
from core.results import Interval, Score
from core.studies.adversarial_texts import Sides
from core.studies.attribute_curves import tops
from core.studies.rows import Cell
from core.units import units_of

__all__ = ["ATTRIBUTE_ATTACKERS", "attribute_scores"]

Scored = NDArray[np.float32]
_Label = NDArray[np.int64]


def _linear(known: Vectors, labels: _Label, held: Vectors, seed: int) -> Scored:
    n_labels = int(labels.max()) + 1
    names = [""] * len(labels)
    probe = LinearProbe().fit(names, labels, known, n_labels=n_labels, seed=seed)
    return probe.scores([""] * len(held), held)


def _mlp(known: Vectors, labels: _Label, held: Vectors, seed: int) -> Scored:
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    scale = StandardScaler().fit(known)
    is_much = len(labels) >= 1000  # else a tenth says too little of when to stop
    mlp = MLPClassifier(
        (512,), batch_size=min(128, len(labels)), max_iter=100, early_stopping=is_much,
        random_state=seed,
    )  # fmt: skip
    mlp.fit(scale.transform(known), labels)
    return np.asarray(mlp.predict_log_proba(scale.transform(held)), np.float32)


def _knn(known: Vectors, labels: _Label, held: Vectors, seed: int) -> Scored:
    from sklearn.neighbors import KNeighborsClassifier

    knn = KNeighborsClassifier(min(25, len(labels)), metric="cosine", weights="distance")
    return np.asarray(knn.fit(known, labels).predict_proba(held), np.float32)


ATTRIBUTE_ATTACKERS: Mapping[str, tuple[str, Callable[..., Scored]]] = {
    "linear": ("linear", _linear),
    "mlp": ("network of one hidden layer", _mlp),
    "knn": ("neighbours", _knn),
}
"""Each fresh attacker on an attribute: its family, and what learns and answers."""


def attribute_scores(
    cell: Cell, protected: Encoder, sides: Sides
) -> dict[str, tuple[dict[str, Score], dict[str, Any]]]:
    """Return the top-1 accuracy of each fresh attacker in per cent, beside guessing.

    And the top-5 accuracy where there are more than five labels.
    """
    places = {name: i for i, name in enumerate(sides.names)}
    labels, truth = (
        np.array([places[label] for label in each], np.int64)
        for each in (sides.known_labels, sides.target_labels)
    )
    known, held = protected.encode(sides.known), protected.encode(sides.targets)
    found = {}
    for name in cell["attackers"]:
        family, answer = ATTRIBUTE_ATTACKERS[name]
        scores = answer(known, labels, held, cell["seed"])
        answers = Answers(
            ranks_of(scores, truth), truth, units_of(sides.targets, sides.target_groups)
        )
        found[name] = (
            {f"top{k}": _per_cent(answers.top(k, cell["seed"])) for k in tops(len(places))},
            {"family": family},
        )
    return found


def _per_cent(score: Score) -> Score:
    ends = Interval(100 * score.ci95.low, 100 * score.ci95.high, score.ci95.level)
    return Score(100 * score.value, ends, score.n, 100 * score.chance)
