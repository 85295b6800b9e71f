"""Dual encoders trained against an adversary from the first step (Song & Raghunathan 2020, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakscope.core.defences.trained.adversarial_game import (
    AdversarialGame,
    AdversarialSettings,
    make_adversary,
)
from leakscope.core.encoders.dual.context_pairs import ContextPairs
from leakscope.core.encoders.dual.encoder import (
    DualEncoder,
    DualRun,
    LSTMDualEncoder,
    TransformerDualEncoder,
)
from leakscope.core.encoders.dual.network import DualNetwork, embed_ids
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.results import Score
from leakscope.core.storage.artifacts import digest_of
from leakscope.core.training.watch import discard_on_divergence

_Rows = NDArray[np.int64]


# No dataclass itself: it would carry the defaults of `DualEncoder` past those of its families.
class _AdversarialDual(AdversarialSettings, DualEncoder):
    """Base of the dual encoders that are trained by Eq. 2 against an adversary on Φ(x_b).

    Implements Song & Raghunathan (2020), §7: min_Φ max_A λ log P_A(W(x_b)|Φ(x_b)) −
    log P_Φ(x_b|x_a, X_neg), or the same with an attribute s, by gradient reversal.
    Differs from the paper: see `DualEncoder`; the adversary reads scaled vectors and may have a
    hidden layer, and knows the most frequent words alone.

    Attributes
    ----------
    during_ : list of Score
        What the adversary in training read of held-out x_b after each epoch.
    seconds_ : float
        Of the training.
    """

    during_: list[Score]
    seconds_: float
    _labels: list[str] | None
    _game: AdversarialGame

    def fit(
        self,
        texts: Sequence[str],
        *,
        labels: Sequence[str] | None = None,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train the encoder on pairs of consecutive texts, against the adversary.

        Parameters
        ----------
        labels : sequence of str, optional
            The attribute of each text, where it is what is hidden.
        """
        own = None if labels is None else list(labels)[1:]
        pairs = ContextPairs.consecutive(texts)
        return self._fit_adversarially(pairs, own, on_progress, checkpoint_dir)

    def fit_pairs(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        labels: Sequence[str] | None = None,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on text pairs (x_a, x_b) against the adversary; `labels` are those of the x_b."""
        return self._fit_adversarially(ContextPairs.of(pairs), labels, on_progress, checkpoint_dir)

    def _fit_adversarially(
        self,
        pairs: ContextPairs,
        labels: Sequence[str] | None,
        on_progress: OnProgress,
        checkpoint_dir: str | None,
    ) -> Self:
        """Train on context pairs against the adversary, and store its scores."""
        self._labels = None if labels is None else list(labels)
        with discard_on_divergence(checkpoint_dir):
            self._fit(pairs, on_progress, checkpoint_dir)
        self.during_, self.seconds_ = self._game.scores, self.log_.seconds
        del self._game, self._labels
        return self

    def run_of(
        self,
        network: DualNetwork,
        pairs: ContextPairs,
        ids: list[_Rows],
        rows: _Rows,
        held: _Rows,
    ) -> DualRun:
        """Build the training run of a network and its adversary, for given and held-out rows."""
        run = _Run(self, network, pairs, ids, rows, held, labels=self._labels)
        self._game = run.game
        return run

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and metadata of `DualEncoder.state`, with the adversary's scores."""
        arrays, meta = super().state()
        during = [score.to_dict() for score in self.during_]
        return arrays, {**meta, "during": during, "seconds": self.seconds_}

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        """Restore the encoder, the adversary's scores and the training time."""
        super()._restore(arrays, meta)
        self.during_ = [Score.from_dict(score) for score in meta["during"]]
        self.seconds_ = float(meta["seconds"])


class _Run(DualRun):
    """One training run of a dual encoder and its adversary."""

    def __init__(
        self,
        encoder: _AdversarialDual,
        network: DualNetwork,
        pairs: ContextPairs,
        ids: list[_Rows],
        rows: _Rows,
        held: _Rows,
        *,
        labels: list[str] | None,
    ) -> None:
        super().__init__(encoder, network, pairs, ids, rows, held)
        if labels is not None and len(labels) != len(pairs):
            raise InvalidInputError(
                f"labels must be one for each x_b: got {len(labels):,} for {len(pairs):,} pairs."
            )
        texts = [pairs.texts[i] for i in pairs.second]
        self.labels = labels
        adversary = make_adversary(encoder, texts, labels, rows, encoder.dimension)
        self.game = AdversarialGame(encoder, network, adversary, self.device)
        self.module, self.clip_norm, self.extra_state = self.game.module, 0.0, self.game

    @property
    def identity(self) -> dict[str, Any]:
        """The run's identity for checkpoints, including the labels."""
        return {**super().identity, "labels": digest_of({}, self.labels)}

    def optimizer(self) -> torch.optim.Optimizer:
        """Build the Adam optimiser over encoder and adversary."""
        return self.game.optimizer(self.encoder.learning_rate, self.encoder.clip_norm)

    def add_objectives(self, loss: Tensor, vectors: Tensor, rows: _Rows) -> Tensor:
        """Add the adversary's reversed-gradient loss to the loss of Eq. 2; return the sum."""
        return self.game.loss(loss, vectors, rows)

    @torch.inference_mode()
    def validate(self) -> float:
        """Record the adversary's held-out score; return the share of next texts that are found."""
        accuracy = super().validate()
        ids = [self.ids[i] for i in self.pairs.second[self.held]]
        self.game.record(embed_ids(self.network, ids).float(), self.held)
        return accuracy


@dataclass
class AdversarialLSTM(_AdversarialDual, LSTMDualEncoder):
    """The recurrent dual encoder trained against an adversary."""

    name: str = field(default="adversarial_lstm", init=False)


@dataclass
class AdversarialTransformer(_AdversarialDual, TransformerDualEncoder):
    """The Transformer dual encoder trained against an adversary."""

    name: str = field(default="adversarial_transformer", init=False)
