"""Linear heads on frozen vectors, each trained with differential privacy."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.targets.heads import check_dense, frozen_vectors
from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.specs import setting, settings_of, validate_settings
from leakscope.core.storage.artifacts import save_artifact
from leakscope.core.training.accounting import Privacy
from leakscope.core.training.checkpoint import load_finished
from leakscope.core.training.private_heads import HeadSettings, fit_head


@dataclass
class PrivateHeads(HeadSettings):
    """Target classifiers: linear heads trained by DP-SGD on the vectors of a frozen encoder.

    After Abadi et al. (2016). Each model is trained separately with its own noise; validation texts
    are not used, as early stopping would cost ε, too.
    """

    encoder: str = setting("minilm", "encoder of the vectors, by name")
    max_length: int = setting(128, "words read per text", low=1)
    answers_: NDArray[np.float32] = field(init=False, repr=False, compare=False)
    privacy_: list[Privacy | None] = field(init=False, repr=False, compare=False)
    """The privacy spent by each model."""

    def fit(
        self,
        batch: TrainingBatch,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Encode the texts and train all models in turn by DP-SGD; load those already stored."""
        validate_settings(self)
        vectors = frozen_vectors(
            self.encoder, batch.texts, self.max_length, lambda done, m: on_progress(0.5 * done, m)
        )
        return self.fit_vectors(
            batch, vectors, on_progress=on_progress, checkpoint_dir=checkpoint_dir
        )

    def fit_vectors(
        self,
        batch: TrainingBatch,
        vectors: Vectors,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train all models by DP-SGD on given vectors of the texts, such as defended ones.

        Raises
        ------
        InvalidInputError
            They are sparse.
        """
        dense = check_dense(self.encoder, vectors)
        folder = None if checkpoint_dir is None else Path(checkpoint_dir)
        found = []
        for model in range(batch.n_models):
            on_progress(0.5 + 0.5 * model / batch.n_models, f"Training model {model + 1}")
            place = None if folder is None else folder / f"model-{model}"
            found.append(self._train_model(batch, model, dense, place))
        self.answers_ = np.stack([answers for answers, _ in found])
        self.privacy_ = [privacy for _, privacy in found]
        return self

    def _train_model(
        self, batch: TrainingBatch, model: int, vectors: NDArray[np.float32], place: Path | None
    ) -> tuple[NDArray[np.float32], Privacy | None]:
        """Train one model, or load it if stored; return its probabilities and privacy."""
        identity = {
            "lesson": batch.digest,
            "model": model,
            **{name: getattr(self, name) for name in settings_of(type(self))},
        }
        kept = _load_stored_model(place, batch, identity)
        if kept is not None:
            return kept
        rows = np.flatnonzero(batch.trained[model])
        head = fit_head(
            vectors[rows], batch.labels[rows], batch.n_classes, self, 1000 * batch.seed + model
        )
        answers = head.probabilities(vectors)
        if place is not None:
            spent = None if head.privacy is None else asdict(head.privacy)
            save_artifact(place, {"answers": answers}, {"identity": identity, "privacy": spent})
        return answers, head.privacy


def _load_stored_model(
    place: Path | None, batch: TrainingBatch, identity: dict[str, Any]
) -> tuple[NDArray[np.float32], Privacy | None] | None:
    """Load a finished model's probabilities and privacy; None if not stored."""

    def made(arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Any:
        """Check and return the stored probabilities, with the privacy spent on them."""
        spent, answers = meta["privacy"], batch.answers_in(arrays, of_one=True)
        return answers, None if spent is None else Privacy.from_dict(spent)

    return load_finished(place, "identity", identity, made)
