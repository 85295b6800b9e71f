"""Dual encoders, trained here: sentences in context get similar vectors (SR20 §2.1 and §6.1).

Reading order: word_tokens, dual_network, context_pairs, dual_training, dual_fitted, this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from core.encoders.dual.context_pairs import ContextPairs
from core.encoders.dual.fitted import FittedDual
from core.encoders.dual.network import DualNetwork, LSTMNetwork, TransformerNetwork, embed_ids
from core.encoders.dual.training import (
    RetrievalAccuracy,
    context_loss,
    retrieval_accuracy,
    seed_device,
    warm_up,
)
from core.encoders.dual.word_tokens import WordTokens
from core.errors import InvalidInputError
from core.protocols import OnProgress, Restorable, no_progress
from core.specs import setting, validate_settings
from core.training.devices import fast_dtype, pick_device
from core.training.loop import Loop, TrainingLog, train

__all__ = ["DualEncoder", "DualRun", "LSTMDualEncoder", "TransformerDualEncoder"]

_POOLING = ("mean", "last", "max")
_Rows = NDArray[np.int64]


@dataclass
class DualEncoder(FittedDual):
    """What both families share: Φ is trained to tell the next sentence from others.

    Implements Song & Raghunathan (2020), Eq. 2 and §6.1: pairs (x_a, x_b) of consecutive
    sentences, the other x_b of the batch as X_neg, Adam, one Φ for both sides.
    Differs from the paper: what it does not tell is ours: the tokeniser and the size of its
    vocabulary, the length at which sentences are cut, the pooling, the clipping of gradients and
    the held-out pairs. Where the processor has bfloat16, products in training run in it. At the
    end of an epoch the last batch has fewer negatives.

    Attributes
    ----------
    fingerprint : str
        After `fit`: SHA-256 over settings, vocabulary and weights.
    validation_ : list of RetrievalAccuracy
        After each epoch, on held-out pairs that share no sentence with the others.
    log_ : TrainingLog
        Seconds and pairs of the training itself.
    """

    dimension: int = setting(1200, "d, numbers in a vector", low=2, high=8192, paper="SR20")
    epochs: int = setting(1, "Passes over the pairs", low=1, high=1000, paper="SR20")
    learning_rate: float = setting(5e-4, "Of Adam", low=1e-6, high=1.0, paper="SR20")
    n_negatives: int = setting(
        800, "Sentences to tell the next one from, in a batch of one more pair",
        low=1, high=10_000, paper="SR20",
    )  # fmt: skip
    vocabulary_size: int = setting(
        20_000, "Words and signs known, the most frequent; others are [UNK]", low=10, high=1_000_000
    )
    max_length: int = setting(48, "Words and signs read of a sentence", low=1, high=1024)
    pooling: str = setting("mean", "How states become one vector", choices=_POOLING)
    dropout: float = setting(0.0, "Of word vectors and layers, in training", low=0.0, high=0.9)
    clip_norm: float = setting(5.0, "Longest gradient; 0 for any", low=0.0)
    n_validation: int = setting(1000, "Pairs held out, at most a tenth", low=2)
    n_candidates: int = setting(100, "Sentences to choose from in validation", low=2, high=10_000)
    seed: int = setting(0, "Of the start, the order and the held-out pairs", low=0)
    device: str = setting("auto", "Where to compute: auto, cpu, cuda or mps")

    name: str = field(default="dual", init=False)
    log_: TrainingLog = field(init=False, repr=False, compare=False)

    def rate_share(self, n_steps: int) -> Callable[[int], float] | None:
        """Return the schedule of the learning rate over so many steps; None keeps it."""
        return None

    def run_of(
        self,
        network: DualNetwork,
        pairs: ContextPairs,
        ids: list[_Rows],
        rows: _Rows,
        held: _Rows,
    ) -> DualRun:
        """Return the training run: whoever trains otherwise returns another."""
        return DualRun(self, network, pairs, ids, rows, held)

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on texts in the order of their document: each and the next are a pair.

        Raises
        ------
        InvalidInputError
            Fewer than 20 pairs, a text that cannot be encoded, a setting out of its range, or
            training that runs away.
        ArtifactError
            The checkpoint is damaged or belongs to another run.
        StoppedError
            Raised by `on_progress` and passed on; the same call resumes from the checkpoint.
        """
        return self._fit(ContextPairs.consecutive(texts), on_progress, checkpoint_dir)

    def fit_pairs(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on pairs (x_a, x_b), such as `context_pairs.pairs_of` makes; see `fit`."""
        return self._fit(ContextPairs.of(pairs), on_progress, checkpoint_dir)

    def _fit(
        self, pairs: ContextPairs, on_progress: OnProgress, checkpoint_dir: str | None
    ) -> Self:
        validate_settings(self)
        on_progress(0.0, f"Counting the words of {len(pairs.texts):,} sentences")
        rows, held = pairs.split(min(self.n_validation, len(pairs) // 10), self.seed)
        if len(rows) < 2:
            raise InvalidInputError(
                f"Only {len(rows)} pairs share no sentence with the {len(held)} held-out ones. "
                "Give more different sentences."
            )
        known = np.unique([pairs.first[rows], pairs.second[rows]])
        tokens = WordTokens.count((pairs.texts[i] for i in known), self.vocabulary_size)
        ids = [tokens.ids(text, self.max_length) for text in pairs.texts]
        torch.manual_seed(self.seed)
        network = self.new_network(len(tokens)).to(pick_device(self.device))
        run = self.run_of(network, pairs, ids, rows, held)
        self.log_ = run.train(on_progress, checkpoint_dir)
        self.validation_ = [run.score_of(accuracy) for accuracy in self.log_.validation]
        self._accept(tokens, network)
        on_progress(1.0, f"Trained on {len(rows):,} pairs; it {self.validation_[-1]}")
        return self


class DualRun:
    """One training run of a dual encoder on numbered pairs.

    Attributes
    ----------
    module : Module
        What is trained: the network, and what is trained beside it.
    clip_norm : float
        Longest gradient of `module`; 0 for any.
    extra_state : Restorable or None
        What the run changes beside `module`.
    """

    def __init__(
        self,
        encoder: DualEncoder,
        network: DualNetwork,
        pairs: ContextPairs,
        ids: list[_Rows],
        rows: _Rows,
        held: _Rows,
    ) -> None:
        self.encoder, self.network, self.pairs, self.ids = encoder, network, pairs, ids
        self.rows, self.held = rows, held
        self.n_candidates = min(encoder.n_candidates, len(held))
        self.device = network.words.weight.device
        self.fast = fast_dtype(self.device)
        self.module: nn.Module = network
        self.clip_norm = encoder.clip_norm
        self.extra_state: Restorable | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What makes this run this run."""
        encoder = self.encoder
        return {"encoder": encoder.name, "settings": encoder.settings, "pairs": self.pairs.digest}

    def optimizer(self) -> torch.optim.Optimizer:
        """Return what takes the steps."""
        return torch.optim.Adam(
            self.network.parameters(),
            lr=self.encoder.learning_rate,
            fused=self.device.type in ("cpu", "cuda"),
        )

    def train(self, on_progress: OnProgress, checkpoint_dir: str | None) -> TrainingLog:
        """Train, and return what happened."""
        encoder = self.encoder
        loop = Loop(
            n=len(self.rows),
            epochs=encoder.epochs,
            batch_size=encoder.n_negatives + 1,
            seed=encoder.seed,
            identity=self.identity,
            decay=False,
            clip_norm=self.clip_norm,
            patience=encoder.epochs + 1,
            keep_best=False,
            is_half=False,
            say_score=lambda accuracy: f"it {self.score_of(accuracy)}",
            unit="pairs of sentences",
            checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir),
            extra_state=self.extra_state,
        )
        loop.rate_share = encoder.rate_share(loop.epochs * loop.n_batches)
        return train(self.module, self.optimizer(), self.loss, self.validate, loop, on_progress)

    def loss(self, batch: _Rows) -> Tensor:
        """Return Eq. 2 for the pairs of a batch."""
        self.network.train()
        seed_device(self.device)
        rows = self.rows[batch]
        a, b = self.pairs.first[rows], self.pairs.second[rows]
        kind = self.device.type
        with torch.autocast(kind, self.fast, enabled=self.fast != torch.float32):
            both = embed_ids(self.network, [self.ids[i] for i in np.concatenate([a, b])])
        one, two = both.float().split(len(rows))
        in_context = torch.from_numpy(self.pairs.in_context(rows)).to(self.device)
        return self.joined(context_loss(one, two, in_context), two, rows)

    def joined(self, loss: Tensor, vectors: Tensor, rows: _Rows) -> Tensor:
        """Return Eq. 2 with what else is trained on Φ(x_b) of some pairs: here nothing."""
        return loss

    def validate(self) -> float:
        """Return how often the next sentence is found, in per cent."""
        found = retrieval_accuracy(self.network, self.ids, self.pairs, self.held, self.n_candidates)
        return found.score.value

    def score_of(self, accuracy: float) -> RetrievalAccuracy:
        """Return what an accuracy of this run stands for."""
        n = len(self.held) // self.n_candidates * self.n_candidates
        return RetrievalAccuracy.of(accuracy, n, self.n_candidates)


@dataclass
class LSTMDualEncoder(DualEncoder):
    """The recurrent dual encoder: one LSTM, d 1,200, one epoch, learning rate 5e-4.

    Differs from the paper: see `DualEncoder`; the width of the word vectors is ours.
    """

    word_dimension: int = setting(300, "Numbers in a word vector", low=2, high=4096)

    name: str = field(default="dual_lstm", init=False)
    n_layers: int = field(default=1, init=False)

    def new_network(self, n_tokens: int) -> DualNetwork:
        """Return an untrained LSTM of these settings."""
        return LSTMNetwork(
            n_tokens,
            self.word_dimension,
            self.dimension,
            pooling=self.pooling,
            dropout=self.dropout,
        )


@dataclass
class TransformerDualEncoder(DualEncoder):
    """The Transformer dual encoder: three layers, d 600, five epochs, warmed-up learning rate.

    Differs from the paper: see `DualEncoder`. The warm-up takes a tenth of the steps at most, so
    that small corpora get past it; the peak is that of Vaswani et al. (2017) for 4,000 steps and
    d = 600, (d · 4,000)^−½; heads, feed-forward width and dropout follow their shape.
    """

    dimension: int = setting(600, "d, numbers in a vector", low=2, high=8192, paper="SR20")
    epochs: int = setting(5, "Passes over the pairs", low=1, high=1000, paper="SR20")
    learning_rate: float = setting(6.5e-4, "Of Adam, at its peak", low=1e-6, high=1.0)
    dropout: float = setting(0.1, "Of word vectors and layers, in training", low=0.0, high=0.9)
    warmup_steps: int = setting(
        4000, "Steps of growing learning rate, at most a tenth of all", low=1, paper="SR20"
    )
    n_layers: int = setting(3, "Transformer layers", low=1, high=24, paper="SR20")
    n_heads: int = setting(6, "Attention heads, a divisor of d", low=1, high=64)
    feed_forward: int = setting(2400, "Width between the layers, 4 d", low=1, high=65_536)

    name: str = field(default="dual_transformer", init=False)

    def rate_share(self, n_steps: int) -> Callable[[int], float]:
        """Return the warmed-up schedule."""
        return warm_up(min(self.warmup_steps, n_steps // 10))

    def new_network(self, n_tokens: int) -> DualNetwork:
        """Return an untrained Transformer of these settings.

        Raises
        ------
        InvalidInputError
            d is no multiple of the number of heads.
        """
        if self.dimension % self.n_heads:
            raise InvalidInputError(
                f"dimension must be a multiple of n_heads, got {self.dimension} and "
                f"{self.n_heads}. Change one of them."
            )
        return TransformerNetwork(
            n_tokens,
            self.dimension,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
            feed_forward=self.feed_forward,
            pooling=self.pooling,
            dropout=self.dropout,
        )
