"""Heads on frozen vectors, each trained with differential privacy."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.targets.lesson import Lesson
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.errors import InvalidInputError
from core.protocols import OnProgress, Vectors, no_progress
from core.specs import setting, settings_of, validate_settings
from core.store import save_artifact
from core.training.accounting import Privacy
from core.training.checkpoint import read_kept
from core.training.private_heads import HeadSettings, fit_head
from core.vectors import is_sparse

__all__ = ["PrivateHeads"]


@dataclass
class PrivateHeads(HeadSettings):
    """DP-SGD (Abadi et al. 2016) on the vectors of an encoder that is not trained.

    Each model is trained by itself, with noise of its own; what is to stop others early is not
    looked at, as that would cost ε too.
    """

    encoder: str = setting("minilm", "whose vectors it stands on, by name")
    max_length: int = setting(128, "words of a text that are read", low=1)
    answers_: NDArray[np.float32] = field(init=False, repr=False, compare=False)
    privacy_: list[Privacy | None] = field(init=False, repr=False, compare=False)
    """What each model spent."""

    def fit(
        self,
        lesson: Lesson,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train all models one after the other; those that were trained before are read back."""
        validate_settings(self)
        encoder = CachedEncoder(load_encoder(self.encoder))
        cut = [" ".join(text.split()[: self.max_length]) for text in lesson.texts]
        vectors = encoder.encode(cut, lambda done, told: on_progress(0.5 * done, told))
        return self.fit_vectors(
            lesson, vectors, on_progress=on_progress, checkpoint_dir=checkpoint_dir
        )

    def fit_vectors(
        self,
        lesson: Lesson,
        vectors: Vectors,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train all models on vectors that the texts have already, such as behind a defence.

        Raises
        ------
        InvalidInputError
            They are sparse.
        """
        if is_sparse(vectors):
            raise InvalidInputError(
                f"{self.encoder} makes sparse vectors, and heads stand on dense ones. Choose "
                "another encoder."
            )
        folder = None if checkpoint_dir is None else Path(checkpoint_dir)
        found = []
        for model in range(lesson.n_models):
            on_progress(0.5 + 0.5 * model / lesson.n_models, f"Training model {model + 1}")
            place = None if folder is None else folder / f"model-{model}"
            found.append(self._one(lesson, model, vectors, place))
        self.answers_ = np.stack([answers for answers, _ in found])
        self.privacy_ = [privacy for _, privacy in found]
        return self

    def _one(
        self, lesson: Lesson, model: int, vectors: NDArray[np.float32], place: Path | None
    ) -> tuple[NDArray[np.float32], Privacy | None]:
        identity = {"lesson": lesson.digest, "model": model,
                    **{name: getattr(self, name) for name in settings_of(type(self))}}  # fmt: skip
        kept = _kept(place, lesson, identity)
        if kept is not None:
            return kept
        rows = np.flatnonzero(lesson.trained[model])
        head = fit_head(vectors[rows], lesson.labels[rows], lesson.n_classes, self,
                        1000 * lesson.seed + model)  # fmt: skip
        answers = head.probabilities(vectors)
        if place is not None:
            spent = None if head.privacy is None else asdict(head.privacy)
            save_artifact(place, {"answers": answers}, {"identity": identity, "privacy": spent})
        return answers, head.privacy


def _kept(
    place: Path | None, lesson: Lesson, identity: dict[str, Any]
) -> tuple[NDArray[np.float32], Privacy | None] | None:
    def made(arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Any:
        spent, answers = meta["privacy"], lesson.answers_in(arrays, of_one=True)
        return answers, None if spent is None else Privacy.from_dict(spent)

    return read_kept(place, "identity", identity, made)
