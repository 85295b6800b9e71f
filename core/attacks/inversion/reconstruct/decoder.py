"""A decoder of vectors: writes sentences from left to right, each token by the vector too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from core.attacks.inversion.reconstruct.coded import coded, decoded
from core.attacks.inversion.reconstruct.evidence import Told
from core.attacks.inversion.reconstruct.tokens import BEGIN, END, UNKNOWN
from core.errors import InvalidInputError
from core.protocols import Vectors

__all__ = ["Decoder", "DecoderNetwork"]

_Cache = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer for what stands before, shape (b, heads, t, width / heads)."""

_HEAD_WIDTH = 64
_LISTENS = 0.5
"""How much of a classifier's evidence counts before anything is learned."""
_LEANING = 0.8
"""Sentences are compared by log P / length^0.8: by log P alone the shortest would win."""


class _Block(nn.Module):
    """A layer of a Transformer: attention to what stands before, and a network of one layer."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.n_heads = max(1, width // _HEAD_WIDTH)
        self.before_attending, self.before_changing = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.gather = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, before: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return x of shape (b, t, width) changed, and keys and values up to here."""
        b, t, width = x.shape
        parts = self.attend(self.before_attending(x)).view(b, t, 3, self.n_heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if before is not None:  # then x is one position, which sees all
            key, value = torch.cat([before[0], key], 2), torch.cat([before[1], value], 2)
        seen = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=before is None
        )
        x = x + self.dropout(self.gather(seen.transpose(1, 2).reshape(b, t, width)))
        changed = self.narrow(nn.functional.gelu(self.widen(self.before_changing(x))))
        return x + self.dropout(changed), (key, value)


class DecoderNetwork(nn.Module):
    """A causal Transformer whose first positions are linear in the vector; tied output weights.

    The words that a classifier reads from the vector, w with E_w nats of evidence, raise its
    logits: z_w = ⟨h, token_w⟩ + λ(h) · E_w. How far they are listened to, λ, is linear in what is
    known at that place, so that a word is not written again and again.

    Parameters
    ----------
    size : int
        Tokens that it reads and writes: the first of a lexicon.
    dimension : int
        Of the vectors.
    width, n_layers : int
        Of the Transformer.
    n_first : int
        Positions that hold the vector.
    longest : int
        Tokens of a sentence at most, its end included.
    """

    def __init__(
        self,
        size: int,
        dimension: int,
        *,
        width: int = 256,
        n_layers: int = 4,
        n_first: int = 8,
        longest: int = 64,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.n_first, self.longest = n_first, longest
        self.tokens = nn.Embedding(size, width)
        self.places = nn.Embedding(n_first + longest, width)
        self.enter = nn.Linear(dimension, n_first * width)
        self.blocks = nn.ModuleList(_Block(width, dropout) for _ in range(n_layers))
        self.leave = nn.LayerNorm(width)
        self.listen = nn.Linear(width, 1)
        self.dropout = nn.Dropout(dropout)
        for weights in (self.tokens.weight, self.places.weight):
            nn.init.normal_(weights, std=width**-0.5 / 2)
        nn.init.zeros_(self.listen.weight)
        nn.init.constant_(self.listen.bias, _LISTENS)

    def begin(self, vectors: Tensor) -> Tensor:
        """Return the first positions, shape (b, n_first, width), of (b, d) vectors."""
        unit = nn.functional.normalize(vectors, dim=1) * vectors.shape[1] ** 0.5
        first: Tensor = self.enter(unit).view(len(vectors), self.n_first, -1)
        return first

    def forward(self, vectors: Tensor, ids: Tensor) -> Tensor:
        """Return what is known before each of t + 1 tokens: shape (b, t + 1, width)."""
        x = torch.cat([self.begin(vectors), self.tokens(ids)], 1)
        seen, _ = self.advance(x, 0, None)
        return seen[:, self.n_first - 1 :]

    def advance(self, x: Tensor, place: int, before: _Cache | None) -> tuple[Tensor, _Cache]:
        """Go on by the positions `place`, `place` + 1, … of which x holds the inputs."""
        x = self.dropout(x + self.places.weight[place : place + x.shape[1]])
        kept: _Cache = []
        for i, block in enumerate(self.blocks):
            x, own = block(x, None if before is None else before[i])
            kept.append(own)
        return self.leave(x), kept

    def scores(self, known: Tensor, tokens: Tensor, nats: Tensor) -> Tensor:
        """Return the logit of each token for what is known, shape (m, size).

        Parameters
        ----------
        known : Tensor, shape (m, width)
        tokens, nats : Tensor, shape (m, k)
            Of `Told`, for each row.
        """
        logits = known @ self.tokens.weight.T
        heard = self.listen(known) * nats
        return logits.scatter_add(-1, tokens, heard.to(logits.dtype))


@dataclass(frozen=True)
class Decoder:
    """A trained decoder; its weights are kept in a byte each."""

    network: DecoderNetwork

    @property
    def size(self) -> int:
        """The number of tokens that it knows."""
        return self.network.tokens.num_embeddings

    @torch.inference_mode()
    def write(
        self, vectors: Vectors, told: Told, *, n_beams: int = 8, longest: int | None = None
    ) -> list[list[NDArray[np.int32]]]:
        """Return likely sentences of each vector, likeliest first: a beam search, without a query.

        Parameters
        ----------
        vectors : float32 array of shape (n, d)
        told : Told
            What a classifier reads from them.
        n_beams : int
            Sentences that are written side by side; as many come back at most, and one at least.
        longest : int, optional
            Tokens of a sentence at most; as many as the network has places for by default.

        Returns
        -------
        list of list of int32 array
            Never an unknown token, and never an empty sentence.
        """
        if not len(vectors):
            return []
        network = self.network.eval()
        beams = _Beams(len(vectors), min(n_beams, self.size - 3), self.size)
        given = torch.as_tensor(vectors, dtype=torch.float32)
        tokens, nats = torch.from_numpy(told.tokens), torch.from_numpy(told.nats)
        known, cache = network.advance(network.begin(given), 0, None)
        beams.take(network.scores(known[:, -1], tokens, nats)[:, None])
        cache = [(k.repeat_interleave(beams.width, 0), v.repeat_interleave(beams.width, 0))
                 for k, v in cache]  # fmt: skip
        tokens, nats = (each.repeat_interleave(beams.width, 0) for each in (tokens, nats))
        n_steps = min(longest or network.longest, network.longest) - 1
        for step in range(n_steps):
            x = network.tokens(beams.last)[:, None]
            known, cache = network.advance(x, network.n_first + step, cache)
            scores = network.scores(known[:, -1], tokens, nats)
            came_from = beams.take(scores.view(len(vectors), -1, self.size))
            if beams.is_over:
                break
            cache = [(k[came_from], v[came_from]) for k, v in cache]
        return beams.sentences()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store: matrices in a byte a number, scaled by row."""
        found: dict[str, NDArray[Any]] = {}
        for name, tensor in self.network.state_dict().items():
            values = tensor.numpy()
            if values.ndim < 2:
                found[name] = values
                continue
            found[f"{name}.codes"], found[f"{name}.scale"] = coded(values)
        return found

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], dimension: int) -> Self:
        """Restore what `arrays` returned.

        Raises
        ------
        InvalidInputError
            Arrays are missing, or of shapes or numbers that no decoder has.
        """
        try:
            (size, width), (n_places, _) = (
                arrays[f"{name}.weight.codes"].shape for name in ("tokens", "places")
            )
            n_first = arrays["enter.weight.codes"].shape[0] // width
            n_layers = len({n.split(".")[1] for n in arrays if n.startswith("blocks.")})
            network = DecoderNetwork(
                size, dimension, width=width, n_layers=n_layers, n_first=n_first,
                longest=n_places - n_first, dropout=0.0,
            )  # fmt: skip
            state = {name: _restored(arrays, name, t) for name, t in network.state_dict().items()}
        except (KeyError, ValueError, ZeroDivisionError, RuntimeError) as error:
            raise InvalidInputError(
                "The decoder's arrays do not fit each other. Restore the file or train the attack "
                "again."
            ) from error
        network.load_state_dict(state)
        return cls(network.eval())

    def rounded(self) -> Decoder:
        """Return it as it comes back from the file."""
        return Decoder.from_arrays(self.arrays(), self.network.enter.in_features)


def _restored(arrays: dict[str, NDArray[Any]], name: str, like: Tensor) -> Tensor:
    if like.ndim < 2:
        values = arrays[name].astype(np.float32)
    else:
        values = decoded(arrays[f"{name}.codes"], arrays[f"{name}.scale"])
    if values.shape != tuple(like.shape) or not np.isfinite(values).all():
        raise ValueError(name)
    return torch.from_numpy(values)


class _Beams:
    """The sentences that are being written for n vectors, and those that are done."""

    def __init__(self, n: int, width: int, size: int) -> None:
        self.n, self.width, self._size = n, max(1, width), size
        self._written = torch.zeros(n, 1, 0, dtype=torch.long)
        self._scores = torch.zeros(n, 1)
        self._done: list[list[tuple[float, NDArray[np.int32]]]] = [[] for _ in range(n)]

    @property
    def last(self) -> Tensor:
        """The last token of each, shape (n · width,)."""
        return self._written[..., -1].reshape(-1)

    def take(self, scores: Tensor) -> Tensor:
        """Go on with the best next tokens by their (n, beams, size) logits.

        Returns
        -------
        Tensor
            Of each sentence that goes on, which it goes on from: shape (n · width,).
        """
        logs = torch.log_softmax(scores.float(), -1)
        logs[..., [BEGIN, UNKNOWN]] = -torch.inf
        total = self._scores[..., None] + logs
        n_written = self._written.shape[-1]
        if n_written:
            self._end(total[..., END], n_written + 1)
        total[..., END] = -torch.inf
        self._scores, places = total.flatten(1).topk(self.width)
        came_from, token = places // self._size, places % self._size
        rows = torch.arange(self.n)[:, None]
        self._written = torch.cat([self._written[rows, came_from], token[..., None]], -1)
        return (rows * total.shape[1] + came_from).reshape(-1)

    def _end(self, scores: Tensor, length: int) -> None:
        values = (scores / length**_LEANING).tolist()
        for i, own in enumerate(values):
            for k, value in enumerate(own):
                self._keep(i, value, k)

    def _keep(self, i: int, value: float, k: int) -> None:
        done = self._done[i]
        if len(done) < self.width or value > done[-1][0]:
            done.append((value, self._written[i, k].numpy().astype(np.int32)))
            done.sort(key=lambda each: -each[0])
            del done[self.width :]

    @property
    def is_over(self) -> bool:
        """Whether nothing that is being written can beat what is done: log P only falls."""
        length = (self._written.shape[-1] + 1) ** _LEANING
        best = (self._scores.amax(1) / length).tolist()
        return all(
            len(done) == self.width and done[-1][0] >= value
            for done, value in zip(self._done, best, strict=True)
        )

    def sentences(self) -> list[list[NDArray[np.int32]]]:
        """Return those that are done, best first; where none is, the one that goes best."""
        return [list(self._of(i)) for i in range(self.n)]

    def _of(self, i: int) -> Iterator[NDArray[np.int32]]:
        yield from (tokens for _, tokens in self._done[i])
        if not self._done[i]:
            yield self._written[i, 0].numpy().astype(np.int32)
