"""Fresh attackers on an attribute, trained after the defence on separate texts.

Each knows the defence: it encodes its own texts with it, and is trained on the resulting vectors.
The attackers on words are in `adversarial_words`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.attributes.answers import Answers, label_ranks
from leakscope.core.attacks.attributes.linear import LinearProbe
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell
from leakscope.core.studies.attributes.curves import tops
from leakscope.core.studies.training.adversarial_texts import Sides
from leakscope.core.units import units_of

Scored = NDArray[np.float32]
_Label = NDArray[np.int64]


def _linear(known: Vectors, labels: _Label, held: Vectors, seed: int) -> Scored:
    """Train a linear probe on known vectors; return label scores for the held-out vectors."""
    texts, n_labels = [""] * len(labels), int(labels.max()) + 1
    probe = LinearProbe().fit(texts, labels, known, n_labels=n_labels, seed=seed)
    return probe.scores([""] * len(held), held)


def _mlp(known: Vectors, labels: _Label, held: Vectors, seed: int) -> Scored:
    """Train a network with one hidden layer; return label scores for the held-out vectors."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    scale = StandardScaler().fit(known)
    is_much = len(labels) >= 1000  # else a tenth is too few for early stopping
    mlp = MLPClassifier(
        (512,),
        batch_size=min(128, len(labels)),
        max_iter=100,
        early_stopping=is_much,
        random_state=seed,
    )
    mlp.fit(scale.transform(known), labels)
    return np.asarray(mlp.predict_log_proba(scale.transform(held)), np.float32)


def _knn(known: Vectors, labels: _Label, held: Vectors, seed: int) -> Scored:
    """Train a nearest-neighbour classifier; return label scores for the held-out vectors."""
    from sklearn.neighbors import KNeighborsClassifier

    knn = KNeighborsClassifier(min(25, len(labels)), metric="cosine", weights="distance")
    return np.asarray(knn.fit(known, labels).predict_proba(held), np.float32)


ATTRIBUTE_ATTACKERS: Mapping[str, tuple[str, Callable[..., Scored]]] = {
    "linear": ("linear", _linear),
    "mlp": ("network with one hidden layer", _mlp),
    "knn": ("nearest neighbours", _knn),
}
"""Each fresh attacker on an attribute: its family, and the function that trains it and answers."""


def attribute_scores(
    cell: Cell, protected: Encoder, sides: Sides
) -> dict[str, tuple[dict[str, Score], dict[str, Any]]]:
    """Train each fresh attacker on protected vectors; return its accuracies in %, and facts.

    The top-5 accuracy is included if there are more than five labels.
    """
    labels, truth = sides.label_ids
    known, held = protected.encode(sides.known), protected.encode(sides.targets)
    found = {}
    for name in cell["attackers"]:
        family, answer = ATTRIBUTE_ATTACKERS[name]
        scores = answer(known, labels, held, cell["seed"])
        answers = Answers(
            label_ranks(scores, truth), truth, units_of(sides.targets, sides.target_groups)
        )
        found[name] = (
            {f"top{k}": answers.top(k, cell["seed"]).in_percent() for k in tops(len(sides.names))},
            {"family": family},
        )
    return found
