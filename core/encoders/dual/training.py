"""Training of dual encoders: contrastive loss (SR20 Eq. 2), warm-up, and retrieval accuracy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from leakscope.core.encoders.dual.context_pairs import ContextPairs
from leakscope.core.encoders.dual.network import DualNetwork, embed_ids
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import wilson_interval
from leakscope.core.results import Score


def context_loss(a: Tensor, b: Tensor, in_context: Tensor) -> Tensor:
    """Return −log P(x_b | x_a, X_neg), averaged over the batch.

    Implements Song & Raghunathan (2020), Eq. 2: log P = log exp(Φ(x_b)·Φ(x_a)) −
    log Σ_{x ∈ {x_b} ∪ X_neg} exp(Φ(x)·Φ(x_a)), X_neg being the other x_b of the batch (§6.1).
    Differs from the paper: nothing. It does not state how sentences in context are excluded from
    X_neg; here, `in_context` does this.

    Parameters
    ----------
    a, b : Tensor of float32, shape (n, d)
        Φ(x_a) and Φ(x_b).
    in_context : Tensor of bool, shape (n, n)
        True where x_b of column j must not be a negative of x_a of row i; the diagonal is ignored.
    """
    own = torch.eye(len(a), dtype=torch.bool, device=a.device)
    scores = (a @ b.T).masked_fill(in_context & ~own, -torch.inf)
    return F.cross_entropy(scores, torch.arange(len(a), device=a.device))


def warm_up(n_warm: int) -> Callable[[int], float]:
    """Return the warm-up schedule of Vaswani et al. (2017), Eq. 3, as a share of its peak.

    The rate grows linearly for n_warm steps and then falls with the inverse square root of the
    step: lr = d^−½ · min(step^−½, step · n_warm^−3/2), whose peak is (d · n_warm)^−½.
    """

    def share(step: int) -> float:
        """Return the learning rate at a step as a share of the peak."""
        now = (step + 1) / max(1, n_warm)
        return min(now, now**-0.5)

    return share


def seed_device(device: torch.device) -> None:
    """Seed the GPU's random generator from the CPU's, whose state checkpoints store.

    Dropout is then the same in a resumed run as in an uninterrupted one.
    """
    if device.type == "cuda":
        torch.cuda.manual_seed(int(torch.randint(2**62, (1,))))


@dataclass(frozen=True)
class RetrievalAccuracy:
    """Percentage of held-out pairs whose true x_b ranks first for x_a among candidates.

    The true x_b is one of `n_candidates` sentences.
    """

    score: Score
    n_candidates: int

    @classmethod
    def of(cls, accuracy: float, n: int, n_candidates: int) -> RetrievalAccuracy:
        """Return an accuracy over n pairs with its Wilson interval; a tie counts as its share."""
        interval = wilson_interval(round(accuracy * n / 100), n)
        return cls(Score(accuracy, interval, n, 100 / n_candidates), n_candidates)

    def __str__(self) -> str:
        """Return the accuracy as a phrase, with its interval and chance."""
        score = self.score
        value, interval = score.parts()
        return (
            f"finds the next sentence among {self.n_candidates} in {value} % (95 % CI {interval}) "
            f"of {score.n:,} held-out cases (guessing: {score.chance:.1f} %)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return accuracy, interval, sample size and chance as JSON-able data."""
        return {
            **self.score.to_record("accuracy"),
            "n": self.score.n,
            "n_candidates": self.n_candidates,
            "chance": self.score.chance,
        }


def rank_contexts(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return 1 where row i of b has the highest dot product with row i of a, a share in a tie.

    Examples
    --------
    >>> one = np.eye(2, dtype=np.float32)
    >>> rank_contexts(one, one).tolist(), rank_contexts(one, one[[0, 0]]).tolist()
    ([1.0, 1.0], [0.5, 0.5])
    """
    scores = a @ b.T
    best = scores == scores.max(1, keepdims=True)
    shares: NDArray[np.float64] = np.diag(best) / best.sum(1)
    return shares


@torch.inference_mode()
def retrieval_accuracy(
    network: DualNetwork,
    ids: Sequence[NDArray[np.int64]],
    pairs: ContextPairs,
    rows: NDArray[np.int64],
    n_candidates: int,
) -> RetrievalAccuracy:
    """Measure how often a network ranks the true x_b first within blocks of held-out pairs.

    Parameters
    ----------
    ids : sequence of int arrays
        Tokens of `pairs.texts`.
    rows : ndarray of int64, shape (n,)
        Held-out pairs; a last block that is not full is left out, so that chance is 1 in
        n_candidates for every pair.
    """
    network.eval()
    n_candidates = min(n_candidates, len(rows))
    shares = []
    for start in range(0, len(rows) - n_candidates + 1, n_candidates):
        block = rows[start : start + n_candidates]
        a, b = (
            embed_ids(network, [ids[i] for i in side[block]]).float().cpu().numpy()
            for side in (pairs.first, pairs.second)
        )
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise InvalidInputError(
                "Training diverged: the vectors contain NaN or infinity. Lower learning_rate, or "
                "set clip_norm."
            )
        shares.append(rank_contexts(a, b))
    every = np.concatenate(shares)
    return RetrievalAccuracy.of(100 * float(every.mean()), len(every), n_candidates)
