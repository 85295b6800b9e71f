"""Exact nearest neighbours, by blocks of inner products."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.protocols import OnProgress, Vectors, no_progress

_BLOCK_CELLS = 2**25
"""Distances in memory at a time: 128 MB of float32."""


@torch.inference_mode()
def nearest(
    base: Vectors,
    queries: Vectors,
    k: int,
    *,
    is_self: bool = False,
    on_progress: OnProgress = no_progress,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find each query's k nearest rows of `base` (Euclidean); return row numbers and distances.

    Candidates are found by ||b||² − 2⟨q, b⟩ in float32; their distances are recomputed from
    the differences, which have no cancellation, and sorted.

    Parameters
    ----------
    base : float32 array (n, d)
    queries : float32 array (m, d)
    k : int
        At most n, or n − 1 with `is_self`.
    is_self : bool
        The queries are the base, and no row counts as its own neighbour.

    Returns
    -------
    indices : int64 array (m, k)
    distances : float32 array (m, k)
    """
    known, asked = torch.from_numpy(base), torch.from_numpy(queries)
    half_norms = (known * known).sum(1) / 2
    m, step = len(queries), max(1, _BLOCK_CELLS // max(1, len(base)))
    indices = torch.empty((m, k), dtype=torch.int64)
    distances = torch.empty((m, k), dtype=torch.float32)
    for start in range(0, m, step):
        rows = slice(start, min(start + step, m))
        nearness = torch.addmm(half_norms, asked[rows], known.T, beta=-1)
        if is_self:
            own = torch.arange(rows.start, rows.stop)
            nearness[torch.arange(len(own)), own] = -torch.inf
        found = nearness.topk(k, dim=1).indices
        exact = _candidate_distances(known, asked[rows], found)
        order = exact.argsort(dim=1, stable=True)
        indices[rows], distances[rows] = found.gather(1, order), exact.gather(1, order)
        on_progress(rows.stop / m, f"Neighbours of {rows.stop:,} of {m:,} points")
    return indices.numpy(), distances.numpy()


def _candidate_distances(
    known: torch.Tensor, asked: torch.Tensor, found: torch.Tensor
) -> torch.Tensor:
    """Compute the distance of each query to its candidate rows, 256 queries at a time."""
    parts = [
        (known[columns] - rows[:, None]).norm(dim=2)
        for columns, rows in zip(found.split(256), asked.split(256), strict=True)
    ]
    return torch.cat(parts)
