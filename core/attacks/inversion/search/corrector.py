"""A network that corrects an answer from the difference between its vector and the target's."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.attacks.inversion.classifiers.network import WordClassifier
from leakscope.core.protocols import Vectors
from leakscope.core.training.devices import fast_dtype

Positions = tuple[Tensor, Tensor]
"""Rows and columns of the entries of a (B, |V|) matrix."""


def positions(lists: list[NDArray[Any]], device: torch.device) -> Positions:
    """Return row and column indices in a (B, |V|) matrix for B lists of columns."""
    rows = np.repeat(np.arange(len(lists)), [len(words) for words in lists])
    columns = np.concatenate([np.asarray(words, np.int64) for words in lists])
    return torch.from_numpy(rows).to(device), torch.from_numpy(columns).to(device)


class AnswerCorrector(nn.Module):
    """A network that re-scores all words from the attacked vector and that of an answer.

    Logits W·(f(e) + A[e, h] + MLP([e, h, e − h])) + b + c + s ⊙ 1[w in the answer].

    e is the vector under attack, h that of the answer so far, both centred; W, f and b are the
    trained classifier's and stay as they are. A, the last layer of the MLP, c and s start at 0:
    before training the corrector repeats the classifier. Ours; the idea of looking at the vector
    of the attack's own answer is that of vec2text (Morris et al., 2023), here on sets of words.

    Parameters
    ----------
    base : WordClassifier
        The classifier whose answers are corrected. Not part of the corrector's state.
    hidden : int
        Units of the MLP.
    """

    def __init__(self, base: WordClassifier, *, hidden: int = 512, dropout: float = 0.1) -> None:
        super().__init__()
        size, d = base.words.shape
        self._base = (base,)
        self.direct = nn.Linear(2 * d, d, bias=False)
        last = nn.Linear(hidden, d)
        self.residual = nn.Sequential(
            nn.Linear(3 * d, hidden), nn.GELU(), nn.Dropout(dropout), last
        )
        # Unit-variance inputs to the hidden layer: a unit vector has entries of 1/√d.
        self.residual[0].weight.data *= d**0.5
        for layer in (self.direct, last):
            nn.init.zeros_(layer.weight)
        nn.init.zeros_(last.bias)
        self.bias = nn.Parameter(torch.zeros(size))
        self.inside = nn.Parameter(torch.zeros(size))

    @property
    def base(self) -> WordClassifier:
        """The frozen classifier whose answers are corrected."""
        return self._base[0]

    def features(self, vectors: Tensor, answers: Tensor) -> Tensor:
        """Return the corrected features, which W multiplies, (n, d)."""
        e, h = vectors - self.base.center, answers - self.base.center
        with torch.no_grad():
            known = self.base.features(vectors)
        return (
            known
            + self.direct(torch.cat([e, h], dim=1))
            + self.residual(torch.cat([e, h, e - h], dim=1))
        )

    @torch.inference_mode()
    def probabilities(
        self, vectors: Vectors, answers: Vectors, lists: list[NDArray[Any]]
    ) -> NDArray[np.float32]:
        """Return the corrected probability of each vocabulary word, (n, |V|).

        Parameters
        ----------
        vectors, answers : ndarray of float32, shape (n, d)
            The vectors under attack and those of the answers.
        lists : list of n int arrays
            The words of each answer, as positions in V.
        """
        self.eval()
        self.base.eval()
        device = self.bias.device
        x, h = torch.as_tensor(vectors, device=device), torch.as_tensor(answers, device=device)
        logits = torch.addmm(self.base.bias + self.bias, self.features(x, h), self.base.words.T)
        where = positions(lists, device)
        logits[where] += self.inside[where[1]]
        return torch.sigmoid(logits).cpu().numpy()


class _FrozenWordBCE(torch.autograd.Function):
    """Binary cross-entropy over words with frozen W and a manual gradient (see `_WordBCE`)."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        bias: Tensor,
        inside: Tensor,
        words: Tensor,
        where: tuple[Positions, Positions],
    ) -> Tensor:
        true, listed = where
        logits = (features.to(words.dtype) @ words.T).float().add_(bias)
        logits[listed] += inside[listed[1]]
        positive = logits[true].sum()
        gradient = torch.sigmoid(logits)
        loss = (torch.nn.functional.softplus(logits).sum() - positive) / len(features)
        gradient[true] -= 1
        ctx.save_for_backward(gradient.div_(len(features)), words, *listed)
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradient, words, rows, columns = ctx.saved_tensors
        inside = torch.zeros(len(words), device=gradient.device)
        inside.index_add_(0, columns, gradient[rows, columns])
        features = (gradient.to(words.dtype) @ words).float()
        return features * upstream, gradient.sum(0) * upstream, inside * upstream, None, None


def correction_loss(
    corrector: AnswerCorrector,
    vectors: Tensor,
    answers: Tensor,
    lists: list[NDArray[Any]],
    targets: list[NDArray[Any]],
    words: Tensor | None = None,
) -> Tensor:
    """Return the multi-label loss (SR20, Eq. 8) of the corrected logits, averaged over B texts.

    Parameters
    ----------
    vectors, answers : Tensor, shape (B, d)
    lists, targets : list of B int arrays
        Words of the answers, and of the texts, as positions in V.
    words : Tensor, shape (|V|, d), optional
        W in the number format of the product, where it was converted before.
    """
    base = corrector.base
    words = base.words.detach().to(fast_dtype(base.words.device)) if words is None else words
    where = (positions(targets, vectors.device), positions(lists, vectors.device))
    bias = base.bias.detach() + corrector.bias
    features = corrector.features(vectors, answers)
    loss: Tensor = _FrozenWordBCE.apply(features, bias, corrector.inside, words, where)
    return loss
