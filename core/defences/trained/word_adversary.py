"""The adversary against inversion: a multi-label classifier of the words of a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.attacks.inversion.classifiers.network import WordClassifier, word_bce
from leakscope.core.attacks.inversion.decision import best_counts
from leakscope.core.text import Vocabulary
from leakscope.core.training.adversary import StandardScale

_LISTED = 100
"""Words ranked for a vector; no answer is longer."""


class WordAdversary(WordClassifier):
    """Infers the words of a text from its vector: log P_A(W(x)|Φ(x)) of SR20, §7.

    Implements Song & Raghunathan (2020), Eq. 8, as the adversary of §7: |V| independent yes-or-no
    classifiers.
    Differs from the paper: vectors are scaled to unit variance first (see `StandardScale`), and
    with `hidden` there is a layer between the vector and the words.

    Parameters
    ----------
    texts : sequence of str
        In the order of the rows.
    vocabulary : Vocabulary
        V, the words that are to be hidden.
    dimension : int
        Numbers in a vector.
    hidden : int
        Units of a hidden layer; 0 for none.
    """

    def __init__(
        self, texts: Sequence[str], vocabulary: Vocabulary, dimension: int, *, hidden: int
    ) -> None:
        width = hidden or dimension
        shape = (len(vocabulary), width)
        start = torch.randn(shape).numpy() * width**-0.5 / 10
        super().__init__(start, vocabulary.log_odds, np.zeros(width, np.float32), scale=1.0)
        layers: list[nn.Module] = [StandardScale(dimension)]
        if hidden:
            layers += [nn.Linear(dimension, hidden), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self._targets = vocabulary.rows(texts)
        self._vocabulary = vocabulary

    def features(self, vectors: Tensor) -> Tensor:
        """Return the (n, width) inputs of the word classifiers."""
        read: Tensor = self.layers(vectors)
        return read

    def loss(self, vectors: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """Return Eq. 8 for the texts of `rows`, averaged."""
        return word_bce(self, vectors, [self._targets[i] for i in rows])

    @torch.inference_mode()
    def hits(self, vectors: Tensor, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each text's F1 of recovered words in per cent, at the best answer length."""
        self.eval()
        p = torch.sigmoid(torch.addmm(self.bias, self.features(vectors), self.words.T)).cpu()
        top = torch.topk(p, min(_LISTED, p.shape[1]), dim=1)
        counts = best_counts(top.values.numpy(), p.sum(1).numpy())
        return self._f1(
            [answer[:k] for answer, k in zip(top.indices.numpy(), counts, strict=True)], rows
        )

    def chance(self, rows: NDArray[np.int64]) -> float:
        """Return the mean F1 in per cent of the best constant answer, the same for all texts."""
        n = min(_LISTED, len(self._vocabulary))  # the most frequent words come first
        holds = np.zeros((len(rows), n))
        for place, i in enumerate(rows):
            holds[place, [w for w in self._targets[i] if w < n]] = 1
        n_true = np.array([len(self._targets[i]) for i in rows])[:, None]
        f1 = 200.0 * holds.cumsum(1) / (np.arange(1, n + 1) + n_true)
        return float(f1.mean(0).max())

    def _f1(
        self, answers: Sequence[NDArray[np.int64]], rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the F1 in per cent of each answer against the text's true words."""
        found = []
        for answer, i in zip(answers, rows, strict=True):
            true = self._targets[i]
            both = np.isin(answer, true, assume_unique=True).sum()
            found.append(200.0 * both / (len(answer) + len(true)))
        return np.array(found)
