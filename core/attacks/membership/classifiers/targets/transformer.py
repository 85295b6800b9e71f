"""Target classifiers: MiniLM with a linear head, fine-tuned as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.attacks.membership.classifiers.targets.networks import (
    TrainingTask,
    train_in_parallel,
)
from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.encoders.minilm import minilm_folder
from leakscope.core.encoders.sbert.trainable import TrainableTransformer
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.specs import setting, validate_settings
from leakscope.core.training.devices import fast_dtype, seed_device


class _Classifier(nn.Module):
    """A Transformer encoder with a linear head; the encoder tokenises and pools."""

    def __init__(self, encoder: TrainableTransformer, n_classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.network = encoder.open_for_training()
        self.head = nn.Linear(encoder.dimension, n_classes).to(encoder.device)

    def forward(self, texts: list[str]) -> Tensor:
        """Return class logits (batch, n_classes) of raw texts."""
        device = self.encoder.device
        seed_device(device)
        fast = fast_dtype(device)
        with torch.autocast(device.type, fast, enabled=fast != torch.float32):
            vectors = self.encoder.embed_batch(texts)
        logits: Tensor = self.head(vectors.float())
        return logits


@dataclass
class Transformers:
    """Target classifiers: the fine-tuned Transformer of Shejwalkar et al. (2021), with MiniLM.

    Differs from the paper: MiniLM replaces BERT, with 22 million parameters, not 108, and its
    states are averaged.
    """

    encoder: str = setting("minilm", "the model to fine-tune: minilm or mlm:ID")
    max_length: int = setting(64, "word pieces read per text", low=3)
    epochs: int = setting(8, "epochs at most", low=1)
    batch_size: int = setting(32, "texts per step", low=1)
    learning_rate: float = setting(1e-4, "of Adam", low=1e-7)
    patience: int = setting(
        2, "epochs without better validation accuracy before stopping; 0: run all", low=0
    )
    answers_: NDArray[np.float32] = field(init=False, repr=False, compare=False)

    def fit(
        self,
        batch: TrainingBatch,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Fine-tune the models one after the other, each on all processors."""
        validate_settings(self)
        lengths = np.array([len(text.split()) for text in batch.texts], dtype=np.int64)

        def make(model: int) -> _Classifier:
            """Build the untrained network of one model from its own seed."""
            torch.manual_seed(1000 * batch.seed + model)
            return _Classifier(self._open_pretrained(), batch.n_classes)

        def logits(network: nn.Module, chosen: NDArray[np.int64]) -> Tensor:
            """Return the class logits of the texts with the chosen row numbers."""
            found: Tensor = network([batch.texts[i] for i in chosen])
            return found

        task = TrainingTask(self, batch, make, logits, lengths)
        self.answers_ = train_in_parallel(task, checkpoint_dir, on_progress, side_by_side=False)
        return self

    def _open_pretrained(self) -> TrainableTransformer:
        """Open the pre-trained encoder for fine-tuning."""
        is_ours = self.encoder == "minilm"
        source: Any = minilm_folder() if is_ours else self.encoder.partition(":")[2]
        return TrainableTransformer(
            source,
            name=self.encoder,
            max_length=self.max_length,
            backend="torch",
            is_local=is_ours,
        )
