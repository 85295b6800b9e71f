"""A buffer of replacement draws: tokens are sampled in advance, and each draw is used once.

The chances of a token's replacements cost a product with all candidates; a further draw from them
costs next to nothing. Draws are independent of each other whenever they are made, so those that a
call leaves over serve the calls that follow. None is used twice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Draw = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""Given the distinct tokens of a block and, for each occurrence, which of them it is: what each
occurrence becomes."""

_BLOCK = 256
"""Distinct tokens whose distances to all candidates are in memory at a time."""

_AHEAD, _MOST = 16, 2_000_000
"""Draws made for each that is needed, and at a time unless more are needed."""


def draw_in_blocks(token_ids: NDArray[np.int64], draw: Draw) -> NDArray[np.int64]:
    """Sample a replacement for each of (m,) tokens, a block of distinct tokens at a time."""
    token_ids = np.asarray(token_ids, np.int64)
    distinct, which = np.unique(token_ids, return_inverse=True)
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(0, len(distinct) + _BLOCK, _BLOCK))
    changed = np.empty_like(token_ids)
    for start, first, last in zip(
        range(0, len(distinct), _BLOCK), bounds[:-1], bounds[1:], strict=False
    ):
        places = order[first:last]
        block = distinct[start : start + _BLOCK]
        changed[places] = draw(block, which[places] - start)
    return changed


class SampleBuffer:
    """Returns sampled replacements of tokens and buffers the unused draws for later calls.

    Parameters
    ----------
    n_tokens : int
        Tokens of the encoder.
    draw : callable
        See `Draw`; every draw is independent.
    """

    def __init__(self, n_tokens: int, draw: Draw) -> None:
        self._draw = draw
        self._pool = np.empty(0, np.int64)
        self._start = np.zeros(n_tokens, np.int64)
        self._left = np.zeros(n_tokens, np.int64)

    def take(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a replacement of each of (m,) tokens; no draw is ever returned twice."""
        token_ids = np.asarray(token_ids, np.int64)
        distinct, which, counts = np.unique(token_ids, return_inverse=True, return_counts=True)
        is_lacking = self._left[distinct] < counts
        if is_lacking.any():
            self._refill(distinct[is_lacking], counts[is_lacking])
        order = np.argsort(which, kind="stable")
        taken = np.empty_like(token_ids)
        taken[order] = self._pool[_segment_indices(self._start[distinct], counts)]
        self._start[distinct] += counts
        self._left[distinct] -= counts
        return taken

    def _refill(self, tokens: NDArray[np.int64], needed: NDArray[np.int64]) -> None:
        """Draw replacements for tokens whose buffer is too short; their old draws are dropped."""
        ahead = int(np.clip(_MOST // max(1, needed.sum()), 1, _AHEAD))
        drawn = draw_in_blocks(np.repeat(tokens, needed * ahead), self._draw)
        self._left[tokens] = 0
        kept = np.flatnonzero(self._left)
        rest = self._pool[_segment_indices(self._start[kept], self._left[kept])]
        self._pool = np.concatenate([rest, drawn])
        self._left[tokens] = needed * ahead
        lengths = np.concatenate([self._left[kept], self._left[tokens]])
        self._start[np.concatenate([kept, tokens])] = np.cumsum(lengths) - lengths


def _segment_indices(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenated index ranges start, start + 1, … of segments of given lengths."""
    before = np.cumsum(lengths) - lengths
    found: NDArray[np.int64] = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    return found
