"""What several classifiers of one kind are trained on at once, and what such a kind looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from core.errors import ArtifactError, InvalidInputError
from core.protocols import OnProgress, no_progress
from core.store import digest_of

__all__ = ["Classifiers", "Lesson"]


@dataclass(frozen=True, eq=False)
class Lesson:
    """Texts with classes, and which of them each of several models learns from.

    All models share the texts, so that what is frozen or tokenised is made once.

    Attributes
    ----------
    labels : ndarray of int64, shape (n,)
        The class of each text, in [0, n_classes).
    trained : ndarray of bool, shape (n_models, n)
        What each model is trained on.
    validated : ndarray of bool, shape (n_models, n)
        What stops each model early; nothing that it is trained on.
    """

    texts: tuple[str, ...]
    labels: NDArray[np.int64]
    n_classes: int
    trained: NDArray[np.bool_]
    validated: NDArray[np.bool_]
    seed: int

    def __post_init__(self) -> None:
        """Check that each model has something to learn, and nothing twice."""
        shape = self.trained.shape
        if shape != self.validated.shape or shape[1:] != (len(self.texts),):
            raise InvalidInputError(
                "trained and validated must have a row a model, a column a text."
            )
        if len(self.labels) != len(self.texts):
            raise InvalidInputError("Each text needs one class.")
        if not self.trained.any(1).all():
            raise InvalidInputError("A model has no text to be trained on. Give more texts.")
        if (self.trained & self.validated).any():
            raise InvalidInputError("A model is trained on texts that are to stop it early.")

    @property
    def n_models(self) -> int:
        """Models that are trained side by side."""
        return len(self.trained)

    def answers_in(
        self, arrays: Mapping[str, NDArray[Any]], *, of_one: bool = False
    ) -> NDArray[np.float32]:
        """Return the probabilities that were kept of all models, or of one.

        Raises
        ------
        ArtifactError
            They are missing, or not of these texts and classes.
        """
        own = (len(self.texts), self.n_classes)
        wanted = own if of_one else (self.n_models, *own)
        found = arrays.get("answers")
        if found is None or found.shape != wanted or found.dtype != np.float32:
            raise ArtifactError(f"What was kept holds no answers of the shape {wanted}.")
        return found

    @cached_property
    def digest(self) -> str:
        """What identifies texts, classes and parts."""
        arrays = {"labels": self.labels, "trained": self.trained, "validated": self.validated}
        return digest_of(arrays, [self.texts, self.n_classes, self.seed])[:16]


class Classifiers(Protocol):
    """A kind of classifier of which several are trained at once; its settings are fields.

    Attributes
    ----------
    answers_ : ndarray of float32, shape (n_models, n, n_classes)
        After `fit`: the probabilities that each model gives to each text of the lesson.
    """

    answers_: NDArray[np.float32]

    def fit(
        self,
        lesson: Lesson,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train all models; a run that was killed goes on from its checkpoint."""
        ...
