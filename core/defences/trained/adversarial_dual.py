"""Dual encoders trained against an adversary from the first step (Song & Raghunathan 2020, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.defences.trained.contest import AgainstAdversary, Contest, adversary_of
from core.encoders.dual.context_pairs import ContextPairs
from core.encoders.dual.encoder import (
    DualEncoder,
    DualRun,
    LSTMDualEncoder,
    TransformerDualEncoder,
)
from core.encoders.dual.network import DualNetwork, embed_ids
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.results import Score
from core.store import digest_of
from core.training.watch import or_nothing

__all__ = ["AdversarialLSTM", "AdversarialTransformer"]

_Rows = NDArray[np.int64]


# No dataclass itself: it would carry the defaults of `DualEncoder` past those of its families.
class _AdversarialDual(AgainstAdversary, DualEncoder):
    """What both families share: Eq. 2 is learned, and an adversary on Φ(x_b) is kept from reading.

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
    _contest: Contest

    def fit(
        self,
        texts: Sequence[str],
        *,
        labels: Sequence[str] | None = None,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on texts in the order of their document; see `DualEncoder.fit`.

        Parameters
        ----------
        labels : sequence of str, optional
            The attribute of each text, where it is what is hidden.
        """
        own = None if labels is None else list(labels)[1:]
        pairs = ContextPairs.consecutive(texts)
        return self._against(pairs, own, on_progress, checkpoint_dir)

    def fit_pairs(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        labels: Sequence[str] | None = None,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on pairs (x_a, x_b); `labels` are the attributes of the x_b."""
        return self._against(ContextPairs.of(pairs), labels, on_progress, checkpoint_dir)

    def _against(
        self,
        pairs: ContextPairs,
        labels: Sequence[str] | None,
        on_progress: OnProgress,
        checkpoint_dir: str | None,
    ) -> Self:
        self._labels = None if labels is None else list(labels)
        with or_nothing(checkpoint_dir):
            self._fit(pairs, on_progress, checkpoint_dir)
        self.during_, self.seconds_ = self._contest.scores, self.log_.seconds
        del self._contest, self._labels
        return self

    def run_of(
        self,
        network: DualNetwork,
        pairs: ContextPairs,
        ids: list[_Rows],
        rows: _Rows,
        held: _Rows,
    ) -> DualRun:
        """Return a run with the adversary in it."""
        run = _Run(self, network, pairs, ids, rows, held, labels=self._labels)
        self._contest = run.contest
        return run

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what `FittedDual.state` does, and what the adversary read in training."""
        arrays, meta = super().state()
        during = [score.to_dict() for score in self.during_]
        return arrays, {**meta, "during": during, "seconds": self.seconds_}

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
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
        adversary = adversary_of(encoder, texts, labels, rows, encoder.dimension)
        self.contest = Contest(encoder, network, adversary, self.device)
        self.module, self.clip_norm, self.extra_state = self.contest.module, 0.0, self.contest

    @property
    def identity(self) -> dict[str, Any]:
        """What makes this run this run, the labels too."""
        return {**super().identity, "labels": digest_of({}, self.labels)}

    def optimizer(self) -> torch.optim.Optimizer:
        """Return what takes the steps of both sides."""
        return self.contest.optimizer(self.encoder.learning_rate, self.encoder.clip_norm)

    def joined(self, loss: Tensor, vectors: Tensor, rows: _Rows) -> Tensor:
        """Return Eq. 2 with the adversary's loss on Φ(x_b), turned round."""
        return self.contest.loss(loss, vectors, rows)

    @torch.inference_mode()
    def validate(self) -> float:
        """Record what the adversary reads of held-out x_b; how often the next is found."""
        accuracy = super().validate()
        ids = [self.ids[i] for i in self.pairs.second[self.held]]
        self.contest.note(embed_ids(self.network, ids).float(), self.held)
        return accuracy


@dataclass
class AdversarialLSTM(_AdversarialDual, LSTMDualEncoder):
    """The recurrent dual encoder, trained against an adversary."""

    name: str = field(default="adversarial_lstm", init=False)


@dataclass
class AdversarialTransformer(_AdversarialDual, TransformerDualEncoder):
    """The Transformer dual encoder, trained against an adversary."""

    name: str = field(default="adversarial_transformer", init=False)
