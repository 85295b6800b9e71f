"""The training data of several classifiers at once, and the protocol of a kind of classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.storage.artifacts import digest_of


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """Labelled texts, and which of them each of several models is trained on.

    All models share the texts, so that they are encoded or tokenised once.

    Attributes
    ----------
    labels : ndarray of int64, shape (n,)
        The class of each text, in [0, n_classes).
    trained : ndarray of bool, shape (n_models, n)
        The training texts of each model.
    validated : ndarray of bool, shape (n_models, n)
        The texts for early stopping of each model, disjoint from its training texts.
    """

    texts: tuple[str, ...]
    labels: NDArray[np.int64]
    n_classes: int
    trained: NDArray[np.bool_]
    validated: NDArray[np.bool_]
    seed: int

    def __post_init__(self) -> None:
        """Check shapes, and that each model has training texts, disjoint from validation."""
        shape = self.trained.shape
        if shape != self.validated.shape or shape[1:] != (len(self.texts),):
            raise InvalidInputError(
                "trained and validated must have one row per model and one column per text."
            )
        if len(self.labels) != len(self.texts):
            raise InvalidInputError("Each text needs one class.")
        if not self.trained.any(1).all():
            raise InvalidInputError("A model has no text to be trained on. Give more texts.")
        if (self.trained & self.validated).any():
            raise InvalidInputError(
                "A model is trained on texts that should only stop its training early."
            )

    @property
    def n_models(self) -> int:
        """The number of models."""
        return len(self.trained)

    def answers_in(
        self, arrays: Mapping[str, NDArray[Any]], *, of_one: bool = False
    ) -> NDArray[np.float32]:
        """Return the array `answers` (probabilities of all models, or of one) if its shape fits.

        Raises
        ------
        ArtifactError
            They are missing, or not of these texts and classes.
        """
        own = (len(self.texts), self.n_classes)
        wanted = own if of_one else (self.n_models, *own)
        found = arrays.get("answers")
        if found is None or found.shape != wanted or found.dtype != np.float32:
            raise ArtifactError(f"The stored answers do not have the shape {wanted}.")
        return found

    @cached_property
    def digest(self) -> str:
        """A hash of texts, labels, training masks and seed."""
        arrays = {"labels": self.labels, "trained": self.trained, "validated": self.validated}
        return digest_of(arrays, [self.texts, self.n_classes, self.seed])[:16]


class Classifiers(Protocol):
    """The protocol of a kind of classifier, of which several are trained at once.

    Attributes
    ----------
    answers_ : ndarray of float32, shape (n_models, n, n_classes)
        After `fit`: the probabilities of each model for each text.
    """

    answers_: NDArray[np.float32]

    def fit(
        self,
        batch: TrainingBatch,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train all models of a batch; an interrupted run resumes from its checkpoint."""
        ...
