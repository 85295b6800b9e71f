"""LSTM target classifiers over word vectors, trained from scratch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.attacks.membership.classifiers.targets.networks import (
    TrainingTask,
    train_in_parallel,
)
from leakscope.core.attacks.membership.classifiers.targets.tokens import TOKENISATIONS, token_rows
from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.encoders.dual.network import pool
from leakscope.core.encoders.dual.word_tokens import PAD
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.specs import setting, validate_settings
from leakscope.core.training.devices import pick_device


class LSTMClassifier(nn.Module):
    """A network of word vectors, two LSTM layers, mean pooling and a linear head."""

    def __init__(self, n_tokens: int, n_classes: int, dimension: int, hidden: int) -> None:
        super().__init__()
        self.words = nn.Embedding(n_tokens, dimension, padding_idx=PAD)
        self.lstm = nn.LSTM(dimension, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, n_classes)

    def forward(self, ids: Tensor) -> Tensor:
        """Return class logits (batch, n_classes) of token ids (batch, length)."""
        states = self.lstm(self.words(ids))[0]
        logits: Tensor = self.head(pool(states, ids != PAD, "mean"))
        return logits


@dataclass
class LSTMs:
    """Target classifiers: the LSTM of Shejwalkar et al. (2021).

    Differs from the paper, which gives neither sizes nor the pooling: both layers have `hidden`
    units, and the states of the second are averaged.
    """

    tokenisation: str = setting("word", "how texts become tokens", choices=TOKENISATIONS)
    vocabulary_size: int = setting(10_000, "size of the vocabulary", low=3)
    max_length: int = setting(64, "tokens read per text", low=1)
    dimension: int = setting(64, "of word vectors", low=1)
    hidden: int = setting(64, "units per layer", low=1)
    epochs: int = setting(20, "epochs at most", low=1)
    batch_size: int = setting(32, "texts per step", low=1)
    learning_rate: float = setting(3e-3, "of Adam", low=1e-6)
    patience: int = setting(
        3, "epochs without better validation accuracy before stopping; 0: run all", low=0
    )
    answers_: NDArray[np.float32] = field(init=False, repr=False, compare=False)

    def fit(
        self,
        batch: TrainingBatch,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Tokenise the texts and train all models in parallel, one on each processor."""
        validate_settings(self)
        rows, n_tokens = token_rows(
            batch.texts, self.tokenisation, self.vocabulary_size, self.max_length
        )
        ids, lengths = torch.from_numpy(rows).to(pick_device()), (rows != PAD).sum(1)

        def make(model: int) -> LSTMClassifier:
            """Build the untrained network of one model from its own seed."""
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1000 * batch.seed + model)
                return LSTMClassifier(n_tokens, batch.n_classes, self.dimension, self.hidden)

        def logits(network: nn.Module, chosen: NDArray[np.int64]) -> Tensor:
            """Return the class logits of the texts with the chosen row numbers."""
            found: Tensor = network(ids[chosen, : int(lengths[chosen].max())])
            return found

        networks = [make(model) for model in range(batch.n_models)]  # before threads: one RNG
        task = TrainingTask(self, batch, networks.__getitem__, logits, lengths)
        self.answers_ = train_in_parallel(task, checkpoint_dir, on_progress)
        return self
