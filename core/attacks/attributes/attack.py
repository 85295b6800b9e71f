"""The base class of attribute-inference attacks, and the input checks that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError, NotFittedError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.vectors import is_sparse, n_rows

Labels = NDArray[np.int64]
"""The number of each text's label, shape (n,)."""


class AttributeAttack:
    """Base class of attacks that learn an attribute from labelled texts or from their vectors."""

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
        """Check the labels and learn from labelled texts and their embeddings `vectors` (n, d)."""
        labels = check_labelled(texts, labels, n_labels)
        self.n_labels_, self.seed_ = n_labels, seed
        self._learn(texts, labels, vectors, on_progress)
        return self

    def _learn(
        self, texts: Sequence[str], labels: Labels, vectors: Any, on_progress: OnProgress
    ) -> None:
        """Learn from texts whose labels were checked; each attack defines it."""
        raise NotImplementedError

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        """Return each target's label log-probabilities (n, n_labels), up to a row constant."""
        raise NotImplementedError


def check_labelled(texts: Sequence[str], labels: Labels, n_labels: int) -> Labels:
    """Return labels as int64 after checking that each text has one, in [0, n_labels).

    Raises
    ------
    InvalidInputError
        No text, unequal lengths, or a number that is no label's.
    """
    numbers = np.asarray(labels)
    if len(texts) == 0 or numbers.shape != (len(texts),):
        raise InvalidInputError(
            f"labels must have one entry per text: got {numbers.shape} for {len(texts)} texts."
        )
    if numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= n_labels:
        raise InvalidInputError(f"labels must be whole numbers from 0 to {n_labels - 1}.")
    return numbers.astype(np.int64)


def check_vectors(vectors: Any, n_texts: int, dimension: int | None = None) -> Any:
    """Return vectors unchanged; raise InvalidInputError for a wrong shape or values not finite.

    Raises
    ------
    InvalidInputError
        None are given, another shape, NaN or infinity.
    """
    if vectors is None:
        raise InvalidInputError("This attack needs vectors. Give the embeddings of the texts.")
    if vectors.ndim != 2 or n_rows(vectors) != n_texts:
        raise InvalidInputError(f"vectors must have shape ({n_texts}, d), got {vectors.shape}.")
    if dimension is not None and vectors.shape[1] != dimension:
        raise InvalidInputError(
            f"vectors must have {dimension} entries each, like those that the attack was fitted "
            f"on, got {vectors.shape[1]}."
        )
    values = vectors.data if is_sparse(vectors) else vectors
    if not np.isfinite(values).all():
        raise InvalidInputError("vectors contain NaN or infinity. Remove those rows.")
    return vectors


def check_fitted(attack: Any, attribute: str) -> None:
    """Raise NotFittedError unless the attack has the attribute that `fit` sets."""
    if not hasattr(attack, attribute):
        raise NotFittedError(f"{type(attack).__name__} is not fitted: call fit.")


def probabilities(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Convert rows of log-scores to probabilities by softmax.

    Examples
    --------
    >>> probabilities(np.log(np.array([[3.0, 1.0]], np.float32))).round(2).tolist()
    [[0.75, 0.25]]
    """
    raised = np.exp(scores.astype(np.float64) - scores.max(1, keepdims=True))
    shares: NDArray[np.float64] = raised / raised.sum(1, keepdims=True)
    return shares
