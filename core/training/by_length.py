"""Batches of texts of like lengths, so that little of them is padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.training.loop import Loop

__all__ = ["ByLength"]


@dataclass(kw_only=True)
class ByLength(Loop):
    """A loop whose batches hold texts of about the same length.

    Parameters
    ----------
    lengths : ndarray of int64, shape (n,)
    pool : int
        Batches whose texts are sorted by length together.
    """

    lengths: NDArray[np.int64]
    pool: int = 20

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Return batches cut from pools of rows sorted by length, in a drawn order."""
        rng = np.random.default_rng([self.seed, epoch])
        order, size = rng.permutation(self.n), self.batch_size
        found = []
        for start in range(0, self.n, self.pool * size):
            pool = order[start : start + self.pool * size]
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            found += [pool[i : i + size] for i in range(0, len(pool), size)]
        return [found[i] for i in rng.permutation(len(found))]
