"""A linear head on frozen vectors: the fast target, of which hundreds are solved at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.targets.heads import Heads, Solving, fit_heads
from core.attacks.membership.classifiers.targets.lesson import Lesson
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.specs import setting, validate_settings
from core.vectors import is_sparse

__all__ = ["LinearHeads"]


@dataclass
class LinearHeads:
    """Multinomial logistic regression on the vectors of an encoder that is not trained.

    Differs from Shejwalkar et al. (2021): they fine-tune all of BERT; here the encoder is frozen,
    so that members are in the head alone.
    """

    encoder: str = setting("minilm", "whose vectors it stands on, by name")
    max_length: int = setting(128, "words of a text that are read", low=1)
    c: float = setting(10.0, "inverse strength of the penalty, as scikit-learn's C", low=1e-6)
    patience: int = setting(3, "steps without a better validation accuracy; 0: solve", low=0)
    most_steps: int = setting(200, "passes over the vectors at most", low=2)
    answers_: NDArray[np.float32] = field(init=False, repr=False, compare=False)
    heads_: Heads = field(init=False, repr=False, compare=False)

    def fit(
        self,
        lesson: Lesson,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Solve all models at once; vectors are kept by the cache, and solving takes seconds."""
        del checkpoint_dir
        validate_settings(self)
        vectors = self._vectors(lesson.texts, on_progress)
        solving = Solving(c=self.c, patience=self.patience, most_steps=self.most_steps)
        self.heads_ = fit_heads(
            vectors,
            lesson.labels,
            lesson.n_classes,
            lesson.trained,
            lesson.validated,
            solving,
            lambda done: on_progress(0.8 + 0.2 * min(done, 1.0), "Solving the heads"),
        )
        self.answers_ = self.heads_.probabilities(vectors)
        return self

    def _vectors(self, texts: Sequence[str], on_progress: OnProgress) -> NDArray[np.float32]:
        encoder = CachedEncoder(load_encoder(self.encoder))
        cut = [" ".join(text.split()[: self.max_length]) for text in texts]
        found = encoder.encode(cut, lambda done, told: on_progress(0.8 * done, told))
        if is_sparse(found):
            raise InvalidInputError(
                f"{self.encoder} makes sparse vectors, and heads stand on dense ones. Choose "
                "another encoder."
            )
        return found
