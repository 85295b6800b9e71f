"""Decode noisy token vectors by the noise density, token bigrams and the rounding grid.

The density of the noise of d_χ-privacy is public (Qu et al. 2021, Eq. 3): the likeliest tokens x_i
under noisy vectors z_i maximise Σ_i log P[x_i | x_{i-1}] − η·‖z_i − φ(x_i)‖. An attacker who knows
that the sums were taken in float32 also excludes every token whose rounding grid a vector is off
(`RoundingGrid`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.released_tokens.posterior import (
    READINGS,
    TokenDecoder,
    decode,
)
from leakscope.core.attacks.inversion.rounding_grid import RoundingGrid
from leakscope.core.encoders.white_box import token_table
from leakscope.core.protocols import OnProgress, Vectors, WhiteBoxEncoder, no_progress

_BLOCK = 256
"""Noisy vectors whose distances to all tokens are in memory at a time."""

Release = Callable[[NDArray[np.float32], float, np.random.Generator], NDArray[np.float32]]
"""Given (m, n) token vectors, η and a generator, returns them under noise, as they are released."""


class ReleasedTokenVectors:
    """An encoder whose rows are a text's released noisy token vectors.

    Being an encoder, it lets its readers be scored as every attack is. A row holds the number of
    tokens, then their vectors one after the other, then zeros.

    Parameters
    ----------
    encoder : WhiteBoxEncoder
        Whose tokens and token vectors are used.
    eta : float
        Privacy parameter, 1/distance.
    rng : Generator
        Source of the noise.
    identity : str
        Distinguishes this release from others.
    release : callable
        How noise is added.
    max_tokens : int
        Tokens of a text that are kept.
    """

    def __init__(
        self,
        encoder: WhiteBoxEncoder,
        eta: float,
        rng: np.random.Generator,
        *,
        identity: str,
        release: Release,
        max_tokens: int = 254,
    ) -> None:
        self.encoder = self.base = encoder
        self.eta, self._release = eta, release
        self._rng, self._max_tokens = rng, max_tokens
        self.table = token_table(encoder)
        self.dimension = 1 + max_tokens * self.table.shape[1]
        self.name = f"{encoder.name}, noisy token vectors"
        self.fingerprint = f"{encoder.fingerprint}|token vectors|{identity}"

    def released(self, token_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Add independent noise to the vectors of m tokens; return them, (m, n)."""
        return self._release(self.table[token_ids], self.eta, self._rng)

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Add noise to each text's token vectors; return them as one padded row per text."""
        out = np.zeros((len(texts), self.dimension), np.float32)
        for target, ids in zip(out, self.encoder.token_ids(texts), strict=True):
            own = np.array(ids[: self._max_tokens], np.int64)
            target[0] = len(own)
            target[1 : 1 + len(own) * self.table.shape[1]] = self.released(own).ravel()
        on_progress(1.0, f"Released token vectors of {len(texts):,} texts")
        return out

    def rows(self, vectors: Vectors) -> list[NDArray[np.float32]]:
        """Unpack rows of `encode` into the (m, n) noisy token vectors of each text."""
        n = self.table.shape[1]
        return [row[1 : 1 + int(row[0]) * n].reshape(-1, n) for row in vectors]


@dataclass
class NoisyTokenReader(TokenDecoder):
    """An attack that decodes the most probable tokens from noisy token vectors.

    Whether word pairs count is chosen on the attacker's own held texts, as `PosteriorReader` does.

    Parameters
    ----------
    uses_grid : bool
        Exclude tokens by the rounding grid of a float32 sum.
    """

    readings: ClassVar[Sequence[str]] = READINGS[1:]

    uses_grid: bool = False

    def _prepare(self, encoder: Any) -> Callable[[NDArray[np.int64]], NDArray[Any]]:
        """Set the noise density and the token table; return the function that adds noise."""
        self._eta, self._table = encoder.eta, encoder.table
        self._squares = np.square(self._table).sum(1)
        self._grid = RoundingGrid(self._table) if self.uses_grid else None
        release: Callable[[NDArray[np.int64]], NDArray[Any]] = encoder.released
        return release

    def _rows(self, encoder: Any, vectors: Vectors) -> list[NDArray[np.float32]]:
        """Unpack vectors of `ReleasedTokenVectors` into each text's noisy token vectors."""
        rows: list[NDArray[np.float32]] = encoder.rows(vectors)
        return rows

    def _reader_of(self, rows: Sequence[NDArray[Any]]) -> Callable[[str], list[NDArray[np.int64]]]:
        """Return a function from a reading's name to the tokens decoded from each text."""
        return partial(self._decode, self._candidates(rows))

    def _decode(
        self, found: list[tuple[NDArray[np.int64], NDArray[np.float64]]], reading: str
    ) -> list[NDArray[np.int64]]:
        """Decode each text's tokens from its candidates, one by one or as a sequence."""
        in_sequence = reading == "sequence"
        return [decode(*each, self.prior_, in_sequence=in_sequence) for each in found]

    def _candidates(
        self, rows: Sequence[NDArray[np.float32]]
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Find the K most probable tokens at each position of each text, with log densities."""
        if not sum(map(len, rows)):
            return [(np.empty((0, 1), np.int64), np.empty((0, 1))) for _ in rows]
        noisy, k = np.concatenate(rows), min(self.n_candidates, len(self._table))
        tokens, law = np.empty((len(noisy), k), np.int64), np.empty((len(noisy), k))
        for start in range(0, len(noisy), _BLOCK):
            part = slice(start, start + _BLOCK)
            density = self._log_density(noisy[part])
            tokens[part] = np.argpartition(-(density + self.prior_.log), k - 1, axis=1)[:, :k]
            law[part] = np.take_along_axis(density, tokens[part], 1)
        ends = np.cumsum([len(row) for row in rows])[:-1]
        return list(zip(np.split(tokens, ends), np.split(law, ends), strict=True))

    def _log_density(self, noisy: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the log density of each noisy vector under every token, (m, V).

        −η·‖z − φ(x)‖, very low where the rounding grid excludes the token.
        """
        squares = np.square(noisy).sum(1)[:, None] - 2 * noisy @ self._table.T + self._squares
        density = -self._eta * np.sqrt(np.maximum(squares, 0, dtype=np.float64))
        if self._grid is not None:
            density[self._grid.excluded(noisy)] -= 1e6
        return density
