"""The network and the loss of the multi-label word classifiers.

`mlc` (Song & Raghunathan 2020, Eq. 8) uses it with a random start and no hidden layer,
`probe_mlc` starts it from the encoder's own encodings of the vocabulary words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.attacks.inversion.sparse_input import network_input
from leakscope.core.protocols import Vectors
from leakscope.core.training.devices import fast_dtype

TRUST = 0.8
"""The weight of the teacher's probabilities in a training target; the label has the rest."""


class _ResidualMLP(nn.Module):
    """A residual network d → hidden → … → d whose output starts at zero.

    The last layer and the blocks start at 0, so that the network starts as the zero function.
    """

    def __init__(self, d: int, hidden: int, blocks: int, dropout: float) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(d, hidden), nn.Linear(hidden, d)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(blocks))
        self.blocks = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(blocks))
        self.dropout = nn.Dropout(dropout)
        # Unit-variance inputs to the hidden layer: a unit vector has entries of 1/√d.
        self.enter.weight.data *= d**0.5
        for layer in (self.leave, *self.blocks):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the residual that is added to the features, shape (n, d)."""
        h = nn.functional.gelu(self.enter(x))
        for norm, block in zip(self.norms, self.blocks, strict=True):
            h = h + self.dropout(nn.functional.gelu(block(norm(h))))
        changed: Tensor = self.leave(self.dropout(h))
        return changed


class WordClassifier(nn.Module):
    """A multi-label word classifier: logits W·f(e) + b, f linear plus an optional residual MLP.

    f(e) = A(e − μ) + MLP(e − μ), or f(e) = s(e − μ) without MLP.

    Parameters
    ----------
    words : ndarray of float32, shape (|V|, d)
        Start of W.
    bias : ndarray of float32, shape (|V|,)
        Start of b.
    center : ndarray of float32, shape (d,)
        μ, subtracted from every vector.
    scale : float
        A starts as scale · I; without MLP it stays there.
    hidden : int
        Units of the MLP; 0 for none.
    blocks : int
        Residual layers of that width after the MLP's first.
    entry : Module, optional
        A linear layer that comes first: of sparse vectors.
    """

    center: Tensor

    def __init__(
        self,
        words: NDArray[Any],
        bias: NDArray[Any],
        center: NDArray[Any],
        *,
        scale: float,
        hidden: int = 0,
        blocks: int = 0,
        dropout: float = 0.0,
        entry: nn.Module | None = None,
    ) -> None:
        super().__init__()
        d = words.shape[1]
        self.entry = entry
        self.words = nn.Parameter(torch.as_tensor(words, dtype=torch.float32).clone())
        self.bias = nn.Parameter(torch.as_tensor(bias, dtype=torch.float32).clone())
        self.register_buffer("center", torch.as_tensor(center, dtype=torch.float32).clone())
        self.scale = scale
        self.direct: nn.Linear | None = None
        self.residual: _ResidualMLP | None = None
        if hidden:
            self.direct = nn.Linear(d, d, bias=False)
            nn.init.eye_(self.direct.weight)
            self.direct.weight.data *= scale
            self.residual = _ResidualMLP(d, hidden, blocks, dropout)

    def features(self, vectors: Tensor) -> Tensor:
        """Compute the features f(e) of n vectors, which the word weights multiply, (n, d)."""
        x = (vectors if self.entry is None else self.entry(vectors)) - self.center
        if self.direct is None or self.residual is None:
            return x * self.scale
        fast = fast_dtype(x.device)
        with torch.autocast(x.device.type, fast, enabled=self.training and fast != x.dtype):
            changed = self.residual(x)
        return self.direct(x) + changed.float()

    @torch.inference_mode()
    def probabilities(self, vectors: Vectors) -> NDArray[np.float32]:
        """Return the probability of each vocabulary word for each vector, (n, |V|)."""
        self.eval()
        x = network_input(self.entry, vectors, self.words.device)
        logits = torch.addmm(self.bias, self.features(x), self.words.T)
        return torch.sigmoid(logits).cpu().numpy()


Positions = tuple[Tensor, Tensor]
"""Rows and columns of the entries of a (B, |V|) matrix."""


def positions(lists: Sequence[NDArray[Any]], device: torch.device) -> Positions:
    """Convert B lists of column numbers to row and column indices of a (B, |V|) matrix."""
    rows = np.repeat(np.arange(len(lists)), [len(words) for words in lists])
    columns = np.concatenate(lists).astype(np.int64)
    return torch.from_numpy(rows).to(device), torch.from_numpy(columns).to(device)


class _WordBCE(torch.autograd.Function):
    """Binary cross-entropy summed over words, averaged over the batch, with a manual gradient.

    d loss / d logits = (σ(logits) − y)/B, so the (B, |V|) matrix is touched a few times only and
    the three products run in the fast number format.
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        words: Tensor,
        bias: Tensor,
        where: Positions,
        taught: Tensor | None,
    ) -> Tensor:
        """Compute the loss of B texts, and store its gradient by the logits for `backward`."""
        fast = fast_dtype(words.device)
        f, w = features.to(fast), words.to(fast)
        logits = (f @ w.T).float().add_(bias)
        own = 1.0 if taught is None else 1.0 - TRUST
        positive = own * logits[where].sum()
        gradient = torch.sigmoid(logits)
        if taught is not None:
            positive = positive + TRUST * (logits * taught).sum()
            gradient -= TRUST * taught
        # log(1 + e^x) = x − log σ(x), summed in float32.
        loss = (torch.nn.functional.softplus(logits).sum() - positive) / len(features)
        gradient[where] -= own
        ctx.save_for_backward(f, w, gradient.div_(len(features)))
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by features, word weights and bias, from the stored one."""
        f, w, gradient = ctx.saved_tensors
        g = gradient.to(f.dtype)
        return (
            (g @ w).float() * upstream,
            (g.T @ f).float() * upstream,
            gradient.sum(0) * upstream,
            None,
            None,
        )


class Teacher:
    """Soft targets for fine-tuning: a trained classifier's probabilities on unchanged vectors.

    A classifier of changed vectors e′ has to learn P(w | e′), the mean of P(w | e) over the
    vectors e that e′ may come from. The P(w | e) of a classifier trained on far more texts is a
    better target than the label of the single text: it has the same mean and less variance.

    Parameters
    ----------
    model : WordClassifier
        Copied unchanged: it may be trained further.
    vectors : ndarray of float32, shape (n, d)
        Unchanged, of the texts in the order in which they are trained on.
    """

    @torch.inference_mode()
    def __init__(self, model: WordClassifier, vectors: Vectors) -> None:
        device = model.words.device
        model.eval()
        parts = (torch.from_numpy(vectors[i : i + 4096]) for i in range(0, len(vectors), 4096))
        fast = fast_dtype(device)
        self._features = torch.cat([model.features(part.to(device)).to(fast) for part in parts])
        self._words, self._bias = model.words.to(fast, copy=True), model.bias.clone()

    def __len__(self) -> int:
        """Return the number of texts that there are soft targets for."""
        return len(self._features)

    @torch.inference_mode()
    def probabilities(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the soft targets of the texts with the given row numbers, shape (B, |V|)."""
        features = self._features[torch.from_numpy(rows % len(self))]
        return torch.sigmoid((features @ self._words.T).float().add_(self._bias))


def word_bce(
    model: WordClassifier,
    vectors: Tensor,
    targets: list[NDArray[np.int32]],
    taught: Tensor | None = None,
) -> Tensor:
    """Compute the multi-label loss of a batch (Song & Raghunathan 2020, Eq. 8), a mean over texts.

    L = −Σ_w [y_w log ŷ_w + (1 − y_w) log(1 − ŷ_w)].
    Differs from the paper: where a teacher is given, y_w is (1 − t)·[w in text] + t·p_w, with its
    p_w and t = `TRUST`.

    Parameters
    ----------
    vectors : Tensor, shape (B, d)
    targets : list of B int arrays
        Positions in V of the words that each text holds.
    taught : Tensor, shape (B, |V|), optional
        What a `Teacher` answers for each.
    """
    where = positions(targets, vectors.device)
    features = model.features(vectors)
    loss: Tensor = _WordBCE.apply(features, model.words, model.bias, where, taught)
    return loss
