"""TextCNN on the raw text, the paper's baseline (SR20, §6.3; Kim 2014)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from leakscope.core.attacks.attributes.attack import AttributeAttack, Labels, check_fitted
from leakscope.core.attacks.attributes.words import tokens_of
from leakscope.core.protocols import OnProgress
from leakscope.core.specs import setting
from leakscope.core.training.devices import pick_device

_AT_ONCE = 512


class TokenNumbers:
    """A token vocabulary counted from texts: each token's number, 0 for unknown tokens."""

    def __init__(self, texts: Sequence[str], most: int) -> None:
        counts = Counter(token for text in texts for token in tokens_of(text))
        self.numbers = {t: i for i, (t, _) in enumerate(counts.most_common(most), 1)}

    def __len__(self) -> int:
        """Return the size of the vocabulary, the number 0 included."""
        return len(self.numbers) + 1

    def read(self, texts: Sequence[str], n: int) -> NDArray[np.int64]:
        """Tokenise texts; return the numbers of their first n tokens, (n_texts, n), 0-padded."""
        found = np.zeros((len(texts), n), np.int64)
        for i, text in enumerate(texts):
            numbers = [self.numbers.get(token, 0) for token in tokens_of(text)[:n]]
            found[i, : len(numbers)] = numbers
        return found


@dataclass
class TextCNN(AttributeAttack):
    """A text CNN: filters over 3, 4 and 5 tokens, max-pooled, and a linear layer.

    Implements Kim (2014), §2, trained as in Song & Raghunathan (2020), §6.3.
    Differs from the papers: token vectors are learned only from the labelled texts, because the
    attacker of SR20 has no others; SR20 do not give their size.
    """

    n_filters: int = setting(128, "Filters of each width", low=1, high=4096, paper="SR20")
    widths: tuple[int, ...] = setting(
        (3, 4, 5), "Tokens that a filter sees", low=1, high=32, paper="Kim 2014"
    )
    dimension: int = setting(300, "Entries of a token's vector", low=1, high=4096, paper="Kim 2014")
    dropout: float = setting(
        0.5, "Dropout rate before the last layer", low=0, high=0.95, paper="Kim 2014"
    )
    max_tokens: int = setting(64, "Tokens read per text", low=5, high=4096)
    vocabulary_size: int = setting(
        20_000, "Size of the vocabulary, the most frequent tokens", low=2
    )
    rate: float = setting(1e-3, "Learning rate of Adam", low=1e-6, high=1.0, paper="SR20")
    epochs: int = setting(30, "Passes over all labelled texts", low=1, paper="SR20")
    batch_size: int = setting(128, "Texts per step", low=1, high=2**16, paper="SR20")

    def _learn(
        self, texts: Sequence[str], labels: Labels, vectors: Any, on_progress: OnProgress
    ) -> None:
        """Count the vocabulary and train the network on labelled texts."""
        self.device_ = pick_device()
        self.tokens_ = TokenNumbers(texts, self.vocabulary_size)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed_)
            self.network_ = _Network(self, len(self.tokens_), self.n_labels_).to(self.device_)
            self._train(self.tokens_.read(texts, self.max_tokens), labels, on_progress)

    def _train(self, tokens: NDArray[np.int64], labels: Labels, on_progress: OnProgress) -> None:
        """Train the network by Adam on rows of token numbers and their labels."""
        optimizer = torch.optim.Adam(self.network_.parameters(), lr=self.rate)
        self.network_.train()
        for epoch in range(self.epochs):
            order = np.random.default_rng([self.seed_, epoch]).permutation(len(labels))
            for start in range(0, len(order), self.batch_size):
                rows = order[start : start + self.batch_size]
                truth = torch.from_numpy(labels[rows]).to(self.device_)
                loss = functional.cross_entropy(self.network_(self._batch(tokens[rows])), truth)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            on_progress((epoch + 1) / self.epochs, f"TextCNN, epoch {epoch + 1} of {self.epochs}")

    def _batch(self, tokens: NDArray[np.int64]) -> Tensor:
        """Move a batch of token numbers to the device, trimmed to its longest row."""
        longest = int(np.flatnonzero((tokens > 0).sum(0)).max(initial=0)) + 1
        kept = tokens[:, : max(longest, *self.widths)]
        return torch.from_numpy(np.ascontiguousarray(kept)).to(self.device_)

    def scores(self, texts: Sequence[str], vectors: Any = None) -> NDArray[np.float32]:
        """Return the label logits of each target text, (n, n_labels)."""
        check_fitted(self, "network_")
        self.network_.eval()
        tokens = self.tokens_.read(texts, self.max_tokens)
        # Texts of similar length share a batch, to reduce padding.
        order = np.argsort((tokens > 0).sum(1), kind="stable")
        found = np.zeros((len(texts), self.network_.n_labels), np.float32)
        with torch.no_grad():
            for start in range(0, len(order), _AT_ONCE):
                rows = order[start : start + _AT_ONCE]
                found[rows] = self.network_(self._batch(tokens[rows])).cpu().numpy()
        return found


class _Network(nn.Module):
    """Token embeddings, convolutions of several widths, max over positions, a linear layer."""

    def __init__(self, settings: TextCNN, n_tokens: int, n_labels: int) -> None:
        super().__init__()
        self.n_labels = n_labels
        self.vectors = nn.Embedding(n_tokens, settings.dimension, padding_idx=0)
        self.filters = nn.ModuleList(
            nn.Conv1d(settings.dimension, settings.n_filters, width) for width in settings.widths
        )
        self.dropout = nn.Dropout(settings.dropout)
        self.last = nn.Linear(settings.n_filters * len(settings.widths), n_labels)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return label logits (batch, n_labels) of token numbers (batch, length)."""
        found = self.vectors(tokens).transpose(1, 2)
        strongest = [each(found).relu().amax(2) for each in self.filters]
        logits: Tensor = self.last(self.dropout(torch.cat(strongest, 1)))
        return logits
