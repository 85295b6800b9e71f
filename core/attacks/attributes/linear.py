"""A linear probe: softmax regression on frozen vectors (Song & Raghunathan 2020, Alg. 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.attributes.attack import (
    Labels,
    check_fitted,
    check_labelled,
    check_vectors,
)
from leakscope.core.attacks.attributes.program import (
    Linear,
    Problem,
    Recipe,
    train_many,
    train_sparse,
)
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.specs import setting
from leakscope.core.vectors import is_sparse


@dataclass
class LinearProbe:
    """Softmax regression on frozen vectors, dense or sparse.

    Implements Song & Raghunathan (2020), Alg. 3 with the settings of §6.3.
    Differs from the paper: vectors are first centred and scaled to a mean variance of 1 per entry
    (sparse vectors are only scaled), because today's encoders return unit vectors. Weights start
    from zero, so a seed decides only the order of batches.
    """

    rate: float = setting(1e-3, "Learning rate of Adam", low=1e-6, high=1.0, paper="SR20")
    epochs: int = setting(30, "Passes over all labelled texts", low=1, paper="SR20")
    batch_size: int = setting(128, "Texts per step", low=1, high=2**16, paper="SR20")

    @property
    def recipe(self) -> Recipe:
        """The training settings as a `Recipe`."""
        return Recipe(self.rate, self.epochs, self.batch_size)

    def fit(
        self,
        texts: Sequence[str],
        labels: Labels,
        vectors: Any = None,
        *,
        n_labels: int,
        seed: int = 0,
        on_progress: OnProgress = no_progress,
    ) -> Self:
        """Learn from the vectors of labelled texts; the texts are not read."""
        labels = check_labelled(texts, labels, n_labels)
        vectors = check_vectors(vectors, len(texts))
        problem = Problem(np.arange(len(labels)), labels, n_labels, seed)
        (self.linear_,) = train_all(vectors, [problem], self.recipe, on_progress=on_progress)
        self.dimension_ = int(vectors.shape[1])
        return self

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        """Return the label scores of each target, W (x - μ) s + b."""
        check_fitted(self, "linear_")
        return self.linear_.scores(check_vectors(vectors, len(texts), self.dimension_))


def train_all(
    vectors: Any,
    problems: Sequence[Problem],
    recipe: Recipe,
    *,
    on_progress: OnProgress = no_progress,
) -> list[Linear]:
    """Train one linear classifier for each problem on shared vectors, dense or sparse."""
    if not is_sparse(vectors):
        from leakscope.core.training.devices import pick_device

        dense = np.asarray(vectors, np.float32)
        return train_many(dense, problems, recipe, device=pick_device(), on_progress=on_progress)
    found = []
    for problem in problems:
        found.append(train_sparse(vectors, problem, recipe))
        on_progress(len(found) / len(problems), f"Trained {len(found)} of {len(problems)}")
    return found
