"""Small language models: a two-layer LSTM and a two-layer Transformer.

Each can process whole texts (`forward`) or one token at a time (`step`), so that texts with a
common beginning share its computation.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

State = tuple[Tensor, ...]
"""A model's state after earlier tokens, with texts along the first axis of each array."""

N_LAYERS = 2
_HEADS = 4


class LSTMModel(nn.Module):
    """A language model of two LSTM layers over token vectors of half their size (as S21 §4)."""

    def __init__(self, n_tokens: int, hidden: int, max_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(n_tokens, hidden // 2)
        self.lstm = nn.LSTM(hidden // 2, hidden, N_LAYERS, batch_first=True, dropout=dropout)
        self.output = nn.Linear(hidden, n_tokens)

    def forward(self, ids: Tensor) -> Tensor:
        """Return next-token logits (texts, length, tokens) for token ids (texts, length)."""
        states, _ = self.lstm(self.embedding(ids))
        logits: Tensor = self.output(states)
        return logits

    def begin(self, n: int) -> State:
        """Return the state before the first token of n texts."""
        zeros = self.output.weight.new_zeros(n, N_LAYERS, self.hidden)
        return (zeros, zeros)

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Process one more token of each text; return (texts, tokens) logits and the new state."""
        before = tuple(part.transpose(0, 1).contiguous() for part in state)
        out, after = self.lstm(self.embedding(ids)[:, None], before)
        return self.output(out[:, 0]), tuple(part.transpose(0, 1) for part in after)


class TransformerModel(nn.Module):
    """A language model of two pre-norm Transformer blocks with four heads and learned positions."""

    def __init__(self, n_tokens: int, hidden: int, max_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(n_tokens, hidden)
        self.positions = nn.Embedding(max_length, hidden)
        self.blocks = nn.ModuleList(_Block(hidden, dropout) for _ in range(N_LAYERS))
        self.norm = nn.LayerNorm(hidden)
        self.output = nn.Linear(hidden, n_tokens)

    def forward(self, ids: Tensor) -> Tensor:
        """Return next-token logits (texts, length, tokens) for token ids (texts, length)."""
        logits, _ = self._process_tokens(ids, self.begin(len(ids)))
        return logits

    def begin(self, n: int) -> State:
        """Return the state before the first token of n texts: keys and values, none yet."""
        empty = self.output.weight.new_zeros(n, _HEADS, 0, self.hidden // _HEADS)
        return (empty, empty) * N_LAYERS

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Process one more token of each text; return (texts, tokens) logits and the new state."""
        logits, after = self._process_tokens(ids[:, None], state)
        return logits[:, 0], after

    def _process_tokens(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens after a state; return their logits and the new state."""
        n_before, n = state[0].shape[2], ids.shape[1]
        # One row of positions per text, so each text has its own gradient (DP-SGD needs that).
        places = torch.arange(n_before, n_before + n, device=ids.device).expand(len(ids), n)
        x = self.embedding(ids) + self.positions(places)
        after: list[Tensor] = []
        for i, block in enumerate(self.blocks):
            x, keys, values = block(x, state[2 * i], state[2 * i + 1])
            after += [keys, values]
        return self.output(self.norm(x)), tuple(after)


class _Block(nn.Module):
    """A pre-norm Transformer block: attention and two dense layers, each residual."""

    def __init__(self, hidden: int, dropout: float) -> None:
        super().__init__()
        self.before_attention, self.before_dense = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.read, self.write = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.dense = nn.Sequential(
            nn.Linear(hidden, 2 * hidden), nn.GELU(), nn.Linear(2 * hidden, hidden)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the block's output, and all keys and values with those of the new tokens."""
        n, length, hidden = x.shape
        parts = self.read(self.before_attention(x)).view(n, length, 3, _HEADS, hidden // _HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
        # A token attends to itself and to earlier tokens; a single token, to all stored ones.
        seen = F.scaled_dot_product_attention(query, keys, values, is_causal=length > 1)
        x = x + self.dropout(self.write(seen.transpose(1, 2).reshape(n, length, hidden)))
        return x + self.dropout(self.dense(self.before_dense(x))), keys, values


Network = LSTMModel | TransformerModel

MODELS: dict[str, Callable[..., Network]] = {"lstm": LSTMModel, "transformer": TransformerModel}


def make_network(
    model: str, n_tokens: int, hidden: int, max_length: int, *, dropout: float = 0.0, seed: int = 0
) -> Network:
    """Build an untrained language model by name, with random weights from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MODELS[model](n_tokens, hidden, max_length + 1, dropout)


def select_states(state: State, rows: Tensor) -> State:
    """Return the states of the texts at the given rows; a row may repeat."""
    return tuple(part[rows] for part in state)
