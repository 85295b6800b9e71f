"""Networks of the dual encoders: word vectors to states, and states pooled to one vector."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from leakscope.core.encoders.dual.word_tokens import PAD
from leakscope.core.encoders.pooling import mean_of_tokens

_CHUNK = 128
"""Texts of similar length that are padded together."""


def pool(states: Tensor, mask: Tensor, how: str) -> Tensor:
    """Pool (batch, length, d) states to (batch, d) where the (batch, length) mask is True.

    `last` is Φ(x) = h_ℓ and `mean` is Φ(x) = (1/ℓ) Σ h_i of Song & Raghunathan (2020), §2.1;
    `max` takes the largest value of each dimension.
    """
    if how == "last":
        rows = torch.arange(len(states), device=states.device)
        return states[rows, mask.sum(1) - 1]
    if how == "max":
        return states.masked_fill(~mask[:, :, None], -torch.inf).amax(1)
    return mean_of_tokens(states, mask)


class DualNetwork(nn.Module):
    """Φ: a word embedding matrix V, layers over it, and pooling.

    Parameters
    ----------
    n_tokens, word_dimension : int
        Shape of V; its [PAD] row is not used.
    pooling : str
        `mean`, `last` or `max`, of the states of the last layer.
    dropout : float
        Of word vectors (and within a Transformer), while training.
    """

    n_layers = 1

    def __init__(self, n_tokens: int, word_dimension: int, *, pooling: str, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(n_tokens, word_dimension, padding_idx=PAD)
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)

    def states(self, vectors: Tensor, mask: Tensor, layer: int) -> Tensor:
        """Map (batch, length, word dimension) word vectors to a layer's token states; abstract."""
        raise NotImplementedError

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Map (batch, length, word dimension) word vectors to (batch, d) embeddings."""
        return pool(self.states(vectors, mask, self.n_layers), mask, self.pooling)


class LSTMNetwork(DualNetwork):
    """One LSTM from left to right; its hidden states have the dimension d of the embedding."""

    def __init__(
        self, n_tokens: int, word_dimension: int, dimension: int, *, pooling: str, dropout: float
    ) -> None:
        super().__init__(n_tokens, word_dimension, pooling=pooling, dropout=dropout)
        self.lstm = nn.LSTM(word_dimension, dimension, batch_first=True)

    def states(self, vectors: Tensor, mask: Tensor, layer: int) -> Tensor:
        """Map word vectors to the LSTM's hidden states h_1 … h_ℓ, which padding does not affect."""
        # cuDNN differentiates LSTMs in training mode only; one layer is the same in both modes.
        self.lstm.train()
        states: Tensor = self.lstm(self.dropout(vectors))[0]
        return states


class TransformerNetwork(DualNetwork):
    """A Transformer encoder after Vaswani et al. (2017, §3): √d scaling, sinusoids, post-norm."""

    def __init__(
        self,
        n_tokens: int,
        dimension: int,
        *,
        n_layers: int,
        n_heads: int,
        feed_forward: int,
        pooling: str,
        dropout: float,
    ) -> None:
        super().__init__(n_tokens, dimension, pooling=pooling, dropout=dropout)
        self.n_layers = n_layers
        self.scale = dimension**0.5
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dimension, n_heads, feed_forward, dropout, batch_first=True)
            for _ in range(n_layers)
        )
        nn.init.normal_(self.words.weight, std=1 / self.scale)  # times √d: unit variance

    def states(self, vectors: Tensor, mask: Tensor, layer: int) -> Tensor:
        """Map (batch, length, d) word vectors to the token states after the given layer."""
        positions = _sinusoids(vectors.shape[1], vectors.shape[2]).to(vectors.device)
        states = self.dropout(vectors * self.scale + positions)
        # On a CPU the gradient of fused attention costs more than all the rest together.
        is_plain = states.device.type == "cpu" and torch.is_grad_enabled()
        with sdpa_kernel(SDPBackend.MATH) if is_plain else nullcontext():
            for module in self.layers[:layer]:
                states = module(states, src_key_padding_mask=~mask)
        return states


def _sinusoids(length: int, dimension: int) -> Tensor:
    """Return the (length, dimension) position encodings of Vaswani et al. (2017), §3.5."""
    rates = 10_000.0 ** (-torch.arange(0, dimension, 2) / dimension)
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)[:, :dimension]


def pad(ids: Sequence[NDArray[np.int64]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Pad texts' token ids to one (batch, length) tensor; return it and the mask of real tokens."""
    lengths = torch.tensor([len(row) for row in ids])
    filled = np.full((len(ids), int(lengths.max())), PAD)
    for row, values in zip(filled, ids, strict=True):
        row[: len(values)] = values
    mask = torch.arange(filled.shape[1]) < lengths[:, None]
    return torch.from_numpy(filled).to(device), mask.to(device)


def embed_ids(network: DualNetwork, ids: Sequence[NDArray[np.int64]]) -> Tensor:
    """Encode n texts, given as token ids, as (n, d) embeddings with gradients.

    Texts of similar length go together, so that little is padding.
    """
    order = np.argsort([-len(row) for row in ids], kind="stable")
    device, parts = network.words.weight.device, []
    for start in range(0, len(ids), _CHUNK):
        batch, mask = pad([ids[i] for i in order[start : start + _CHUNK]], device)
        parts.append(network(network.words(batch), mask))
    return torch.cat(parts)[torch.from_numpy(np.argsort(order))]
