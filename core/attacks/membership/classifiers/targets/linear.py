"""Linear heads on frozen vectors: the fast target, of which hundreds are solved at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.targets.heads import Heads, Solving, fit_heads
from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.specs import setting, validate_settings
from leakscope.core.vectors import is_sparse


@dataclass
class LinearHeads:
    """Target classifiers: multinomial logistic regression on the vectors of a frozen encoder.

    Differs from Shejwalkar et al. (2021): they fine-tune all of BERT; here the encoder is frozen,
    so that members are in the head alone.
    """

    encoder: str = setting("minilm", "encoder of the vectors, by name")
    max_length: int = setting(128, "words read per text", low=1)
    c: float = setting(10.0, "inverse strength of the penalty, as scikit-learn's C", low=1e-6)
    patience: int = setting(
        3, "steps without better validation accuracy before stopping; 0: solve", low=0
    )
    most_steps: int = setting(200, "passes over the vectors at most", low=2)
    answers_: NDArray[np.float32] = field(init=False, repr=False, compare=False)
    heads_: Heads = field(init=False, repr=False, compare=False)

    def fit(
        self,
        batch: TrainingBatch,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Encode the texts (cached) and solve all models at once, in seconds."""
        del checkpoint_dir
        validate_settings(self)
        vectors = self._vectors(batch.texts, on_progress)
        solving = Solving(c=self.c, patience=self.patience, most_steps=self.most_steps)
        self.heads_ = fit_heads(
            vectors,
            batch.labels,
            batch.n_classes,
            batch.trained,
            batch.validated,
            solving,
            lambda done: on_progress(0.8 + 0.2 * min(done, 1.0), "Solving the heads"),
        )
        self.answers_ = self.heads_.probabilities(vectors)
        return self

    def _vectors(self, texts: Sequence[str], on_progress: OnProgress) -> NDArray[np.float32]:
        """Encode the first `max_length` words of each text; refuse sparse vectors."""
        encoder = CachedEncoder(load_encoder(self.encoder))
        cut = [" ".join(text.split()[: self.max_length]) for text in texts]
        found = encoder.encode(cut, lambda done, message: on_progress(0.8 * done, message))
        if is_sparse(found):
            raise InvalidInputError(
                f"{self.encoder} makes sparse vectors, but heads need dense ones. Choose "
                "another encoder."
            )
        return found
