"""What the compiled walk reads and where it writes: lists in its layout, arrays kept for reuse."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.defences.deniability.envelope_lanes import CHUNK, WIDTH

__all__ = ["Room", "descending_lists"]


@dataclass(frozen=True)
class Room:
    """Where the envelopes of a block of tokens are written, and room to count their outcomes."""

    rates: NDArray[np.float32]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    turned: NDArray[np.float32]
    seen: NDArray[np.uint64]
    returned: NDArray[np.int64]

    @classmethod
    def of(cls, n_tokens: int, n_draws: int, capacity: int, n_candidates: int) -> Room:
        """Return room for so many tokens, draws, crossings and candidates."""
        shape = (n_tokens, n_draws)
        return cls(
            np.empty((*shape, capacity), np.float32),
            np.empty((*shape, capacity), np.int32),
            np.empty(shape, np.int32),
            np.empty((n_candidates, WIDTH), np.float32),
            np.zeros(n_candidates, np.uint64),
            np.empty(n_candidates, np.int64),
        )

    @property
    def capacity(self) -> int:
        """Most crossings of an envelope."""
        return self.rates.shape[2]


def descending_lists(
    products: NDArray[np.float32], bounds: NDArray[np.int64], n_heads: int, n_threads: int
) -> NDArray[np.float32]:
    """Return the greatest products of each draw and bucket, descending, with their candidates.

    In the layout that `walk_tokens` reads: by chunk, draw and bucket, products beside the bits of
    the candidates. Lists are as long as the shortest bucket allows, and filled up with products
    that never win.
    """
    length = int(min(n_heads, np.diff(bounds).min()))
    shape = (-(-length // CHUNK), len(products), len(bounds) - 1, 2, CHUNK)
    lists = np.empty(shape, np.float32)

    def fill(b: int) -> None:
        low, high = int(bounds[b]), int(bounds[b + 1])
        block = products[:, low:high]
        top = np.argpartition(block, high - low - length, axis=1)[:, -length:]
        found = np.take_along_axis(block, top, 1)
        order = np.argsort(-found, axis=1, kind="stable")
        both = np.zeros((len(products), 2, shape[0] * CHUNK), np.float32)
        both[:, 0], both[:, 0, :length] = -np.inf, np.take_along_axis(found, order, 1)
        names = np.take_along_axis(top, order, 1) + low
        both.view(np.uint32)[:, 1, :length] = names
        chunked = both.reshape(len(products), 2, shape[0], CHUNK)
        lists[:, :, b] = chunked.transpose(2, 0, 1, 3)

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(fill, range(shape[2])))
    return lists
