"""How Sentence-BERT is fine-tuned: the regression loss, its schedule and the resumable run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from core.encoders.dual.training import seed_device
from core.encoders.sbert.pairs import MAX_SCORE, ScoredPairs, say_spearman, spearman_score
from core.encoders.sbert.trainable import TrainableTransformer
from core.protocols import OnProgress
from core.results import Score
from core.training.devices import fast_dtype
from core.training.loop import Loop, TrainingLog, train

__all__ = ["FineTuning", "Recipe", "cosine_loss", "warm_up_and_decay"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How long, how fast and from which seed to fine-tune.

    Parameters
    ----------
    identity : dict
        What a checkpoint must have in common with the run that takes it up.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    warmup_share: float
    weight_decay: float
    clip_norm: float
    seed: int
    identity: dict[str, Any]


def cosine_loss(one: Tensor, two: Tensor, scores: Tensor) -> Tensor:
    """Return the mean of (cos(u, v) − score/5)².

    Implements the regression objective of Reimers & Gurevych (2019), §3: mean squared error
    between the cosine of the sentence vectors and the score as a share of the highest.
    Differs from the paper: nothing.

    Parameters
    ----------
    one, two : Tensor of float32, shape (n, d)
    scores : Tensor of float32, shape (n,)
        In [0, 5].
    """
    return F.mse_loss(F.cosine_similarity(one, two), scores / MAX_SCORE)


def warm_up_and_decay(n_steps: int, warmup_share: float) -> Callable[[int], float]:
    """Return the schedule: linearly up over a share of the steps, then linearly down to 0."""
    n_warm = math.ceil(n_steps * warmup_share)

    def share(step: int) -> float:
        if step < n_warm:
            return (step + 1) / n_warm
        return max(0.0, (n_steps - step) / max(1, n_steps - n_warm))

    return share


class FineTuning:
    """One fine-tuning run."""

    def __init__(
        self,
        recipe: Recipe,
        encoder: TrainableTransformer,
        known: ScoredPairs,
        held: ScoredPairs,
    ) -> None:
        self.recipe, self.encoder, self.known, self.held = recipe, encoder, known, held
        self.network = encoder.open()
        self.fast = fast_dtype(encoder.device)
        self.scores: dict[float, Score] = {}
        self.base = encoder.fingerprint

    def train(self, on_progress: OnProgress, checkpoint_dir: str | None) -> TrainingLog:
        """Train and leave the best epoch's weights in the encoder."""
        recipe = self.recipe
        loop = Loop(
            n=len(self.known),
            epochs=recipe.epochs,
            batch_size=recipe.batch_size,
            seed=recipe.seed,
            identity={
                **recipe.identity,
                "base": self.base,
                "pairs": self.known.digest,
                "validation": self.held.digest,
            },
            clip_norm=recipe.clip_norm,
            patience=recipe.epochs + 1,
            is_half=False,
            say_score=self.say,
            unit="pairs",
            checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir),
        )
        loop.rate_share = warm_up_and_decay(loop.epochs * loop.n_batches, recipe.warmup_share)
        return train(self.network, self._optimizer(), self.loss, self.validate, loop, on_progress)

    def say(self, value: float) -> str:
        """Return a validation score in words; of one from before a stop, without its interval."""
        score = self.scores.get(value, Score(value, n=len(self.held)))
        return f"validation {say_spearman(score)}"

    def _optimizer(self) -> torch.optim.Optimizer:
        """Return AdamW that shrinks matrices alone."""
        named = list(self.network.parameters())
        groups = [
            {
                "params": [p for p in named if p.ndim > 1],
                "weight_decay": self.recipe.weight_decay,
            },
            {"params": [p for p in named if p.ndim <= 1], "weight_decay": 0.0},
        ]
        is_fused = self.encoder.device.type in ("cpu", "cuda")
        return torch.optim.AdamW(groups, lr=self.recipe.learning_rate, fused=is_fused)

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the loss of a batch of pairs."""
        self.network.train()
        seed_device(self.encoder.device)
        batch = self.known.take(rows)
        with torch.autocast(
            self.encoder.device.type, self.fast, enabled=self.fast != torch.float32
        ):
            both = self.encoder.embed_batch(batch.one + batch.two)
        one, two = both.float().split(len(rows))
        return cosine_loss(one, two, torch.from_numpy(batch.scores).to(one.device))

    def validate(self) -> float:
        """Return Spearman's correlation ×100 on the validation pairs."""
        self.network.eval()
        score = spearman_score(self.encoder, self.held, self.recipe.seed)
        self.scores[score.value] = score
        return score.value
