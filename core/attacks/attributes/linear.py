"""Linear classifiers on frozen vectors: softmax regression and Fisher's discriminant.

Softmax regression is the attack of Song & Raghunathan (2020), Alg. 3; the discriminant (Fisher
1936) is closed-form, with one covariance for all labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.attacks.attributes.attack import (
    AttributeAttack,
    Labels,
    check_fitted,
    check_vectors,
)
from leakscope.core.attacks.attributes.program import (
    Linear,
    Problem,
    Recipe,
    train_many,
    train_sparse,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.specs import setting
from leakscope.core.vectors import is_sparse


class LinearAttack(AttributeAttack):
    """Base class of attacks that fit one linear classifier on vectors; texts are not read."""

    def fit_problems(
        self, vectors: Any, problems: Sequence[Problem], on_progress: OnProgress = no_progress
    ) -> list[Linear]:
        """Fit one linear classifier for each problem on shared vectors; subclasses define it."""
        raise NotImplementedError

    def _learn(
        self, texts: Sequence[str], labels: Labels, vectors: Any, on_progress: OnProgress
    ) -> None:
        """Fit one classifier on all vectors; the texts are only counted."""
        vectors = check_vectors(vectors, len(texts))
        problem = Problem(np.arange(len(labels)), labels, self.n_labels_, self.seed_)
        (self.linear_,) = self.fit_problems(vectors, [problem], on_progress)
        self.dimension_ = int(vectors.shape[1])

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        """Return label scores W (x - μ) s + b of each target from its vector; no text is read."""
        check_fitted(self, "linear_")
        return self.linear_.scores(check_vectors(vectors, len(texts), self.dimension_))


@dataclass
class LinearProbe(LinearAttack):
    """Softmax regression on frozen vectors, dense or sparse.

    Implements Song & Raghunathan (2020), Alg. 3 with the settings of §6.3.
    Differs from the paper: vectors are first centred and scaled to a mean variance of 1 per entry
    (sparse vectors are only scaled), because today's encoders return unit vectors. Weights start
    from zero, so a seed decides only the order of batches.
    """

    rate: float = setting(1e-3, "Learning rate of Adam", low=1e-6, high=1.0, paper="SR20")
    epochs: int = setting(30, "Passes over all labelled texts", low=1, paper="SR20")
    batch_size: int = setting(128, "Texts per step", low=1, high=2**16, paper="SR20")

    def fit_problems(
        self, vectors: Any, problems: Sequence[Problem], on_progress: OnProgress = no_progress
    ) -> list[Linear]:
        """Train one softmax regression for each problem, all at once on dense vectors."""
        recipe = Recipe(self.rate, self.epochs, self.batch_size)
        if not is_sparse(vectors):
            from leakscope.core.training.devices import pick_device

            return train_many(
                np.asarray(vectors, np.float32),
                problems,
                recipe,
                device=pick_device(),
                on_progress=on_progress,
            )
        found = []
        for problem in problems:
            found.append(train_sparse(vectors, problem, recipe))
            on_progress(len(found) / len(problems), f"Trained {len(found)} of {len(problems)}")
        return found


@dataclass
class Discriminant(LinearAttack):
    """Fisher's linear discriminant on dense vectors, with a shrunken covariance.

    Score of label s: m_s·Σ⁻¹(x - μ) - ½ m_s·Σ⁻¹ m_s + log π_s, m_s being the mean of its labelled
    vectors less the mean μ of all, π_s their share, and Σ = (1 - λ) S + λ (tr S / d) I the pooled
    covariance S of vectors around their label's mean, shrunk by Ledoit & Wolf (2004), λ of theirs.
    It has no training steps and no settings, so a sweep takes seconds.
    """

    def fit_problems(
        self, vectors: Any, problems: Sequence[Problem], on_progress: OnProgress = no_progress
    ) -> list[Linear]:
        """Fit one discriminant for each problem, a set of labelled rows, in closed form."""
        return [fit_discriminant(vectors, problem) for problem in problems]


def fit_discriminant(features: Any, problem: Problem) -> Linear:
    """Fit Fisher's discriminant to a problem's labelled rows; return it as a linear classifier.

    Raises
    ------
    InvalidInputError
        The features are sparse.
    """
    if is_sparse(features):
        raise InvalidInputError(
            "The discriminant needs dense vectors, but bag-of-words vectors are sparse. Use linear."
        )
    x = np.asarray(features, np.float32)[problem.rows]
    centre = x.mean(0, dtype=np.float64).astype(np.float32)
    x -= centre
    counts = np.bincount(problem.labels, minlength=problem.n_labels)
    rows = np.arange(len(x))
    of_label = sparse.csr_array(
        (np.ones(len(x), np.float32), (problem.labels, rows)), shape=(problem.n_labels, len(x))
    )
    means = (of_label @ x) / np.maximum(counts, 1).astype(np.float32)[:, None]
    x -= means[problem.labels]
    covariance: NDArray[np.float32] = ((x.T @ x) / len(x)).astype(np.float32)
    share, trace = ledoit_wolf_shrinkage(x, covariance), float(np.trace(covariance))
    shrunk = (1 - share) * covariance.astype(np.float64)
    # More than rounding, whose error is a share of the largest axis: it keeps this invertible where
    # vectors of a label are alike.
    shrunk[np.diag_indices_from(shrunk)] += max(share * trace / x.shape[1], 1e-6 * trace, 1e-12)
    # By numpy, which made the covariance: the threads of two libraries wait for each other.
    weights = np.linalg.solve(shrunk, means.T.astype(np.float64))
    prior = np.log((counts + 1) / (counts + 1).sum())
    bias = prior - 0.5 * (means.T * weights).sum(0)
    return Linear(weights.astype(np.float32), bias.astype(np.float32), centre)


def ledoit_wolf_shrinkage(centred: NDArray[np.float32], covariance: NDArray[np.float32]) -> float:
    """Return the Ledoit-Wolf shrinkage λ in [0, 1] for the covariance of n centred vectors.

    Implements Ledoit & Wolf (2004), §3.3: λ = min(b², d²) / d² with d² = ‖S - m I‖² and
    b² = (1/n²) Σ_i ‖x_i x_iᵀ - S‖², m = tr S / p. Differs from the paper: norms are not divided
    by p, which cancels.

    Parameters
    ----------
    centred : ndarray of float32, shape (n, p)
    covariance : ndarray of float32, shape (p, p)
        XᵀX / n.
    """
    n, p = centred.shape
    lengths = (centred.astype(np.float64) ** 2).sum(1)
    squared = float((covariance.astype(np.float64) ** 2).sum())
    mean = float(np.trace(covariance)) / p
    away = squared - p * mean**2
    # Σ‖x xᵀ - S‖² = Σ‖x‖⁴ - n‖S‖², since the mean of x xᵀ is S.
    noise = (float((lengths**2).sum()) / n - squared) / n
    return float(np.clip(noise / away, 0.0, 1.0)) if away > 0 else 1.0
