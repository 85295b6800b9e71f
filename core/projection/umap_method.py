"""UMAP: umap-learn's graph of neighbours, laid out by our compiled rounds.

docs/decisions/0006-umap-rounds-of-our-own.md says why the rounds are ours.
"""

from __future__ import annotations

import threading
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.projection.neighbours import nearest
from core.projection.principal import principal_components
from core.projection.spec import ProjectionSpec
from core.protocols import OnProgress, Vectors, no_progress

__all__ = ["default_epochs", "memberships", "umap_places"]

_ONE_AT_A_TIME = threading.Lock()
"""Numba's parallel kernels abort the process when two threads enter them at once."""

_MOST_EXACT = 5_000
"""Points up to which neighbours are exact; beyond, descent finds 96 % of them, much sooner."""

_SHARE_OF_GRAPH, _N_REPORTS = 0.4, 50


def default_epochs(n: int) -> int:
    """Return the rounds for n points.

    Fewer than umap-learn's 500 up to 10,000 points, at equal quality, which
    `benchmarks/umap_layout.py` holds against umap-learn's; its 200 beyond.
    """
    return 300 if n <= 10_000 else 200


def umap_places(
    vectors: Vectors, spec: ProjectionSpec, on_progress: OnProgress = no_progress
) -> NDArray[np.float32]:
    """Return the (n, n_components) float32 places of vectors compared by Euclidean distance.

    Implements McInnes, Healy & Melville (2018).
    Differs from umap-learn, which builds the graph: the rounds are ours (`umap_kernel`), points
    start at their principal components instead of a spectral layout (Kobak & Linderman 2021 find
    no difference in quality), and up to 10,000 points move for fewer rounds.

    Raises
    ------
    StoppedError
        `on_progress` asked to stop.
    """
    on_progress(0.0, "Loading UMAP")
    with _ONE_AT_A_TIME:
        graph = _graph(vectors, spec, on_progress)
    on_progress(_SHARE_OF_GRAPH, "Placing the points at their principal components")
    return _settle(graph.tocoo(), _start(vectors, spec), spec, on_progress)


def _graph(vectors: Vectors, spec: ProjectionSpec, on_progress: OnProgress) -> Any:
    """Return the (n, n) sparse memberships of neighbours, symmetric."""
    from umap.umap_ import fuzzy_simplicial_set, nearest_neighbors

    n, k = len(vectors), min(spec.n_neighbors, len(vectors) - 1)
    rng = np.random.RandomState(spec.seed)
    if n > _MOST_EXACT:
        on_progress(0.05, f"Finding the neighbours of {n:,} points")
        found, far, _ = nearest_neighbors(vectors, k, "euclidean", {}, False, rng, n_jobs=1)
    else:
        near, distances = nearest(
            vectors, vectors, k - 1, is_self=True,
            on_progress=lambda done, told: on_progress(0.05 + 0.2 * done, told),
        )  # fmt: skip
        # umap-learn counts a point as its own first neighbour.
        own = np.arange(n)[:, None]
        found = np.hstack([own, near]).astype(np.int32)
        far = np.hstack([np.zeros_like(own, np.float32), distances])
    on_progress(0.3, "Building the graph of neighbours")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fuzzy_simplicial_set(vectors, k, rng, "euclidean", knn_indices=found, knn_dists=far)[
            0
        ]


def _settle(
    graph: Any, start: NDArray[np.float32], spec: ProjectionSpec, on_progress: OnProgress
) -> NDArray[np.float32]:
    """Move the points for all rounds, reporting between blocks of rounds."""
    from umap.umap_ import find_ab_params

    from core.projection.umap_kernel import force_tables, move_points

    n_rounds = spec.n_epochs or default_epochs(len(start))
    is_kept = graph.data >= graph.data.max() / n_rounds  # the others would never pull
    heads, tails = graph.row[is_kept].astype(np.int32), graph.col[is_kept].astype(np.int32)
    period = (graph.data.max() / graph.data[is_kept]).astype(np.float32)
    pull, push = force_tables(*find_ab_params(1.0, spec.min_dist))
    places = np.zeros((len(start), 4), np.float32)
    width = np.maximum(np.ptp(start, axis=0), 1e-12)
    places[:, : spec.n_components] = 10 * (start - start.min(0)) / width
    due = period.copy()
    state = np.uint64(np.random.default_rng(spec.seed).integers(1, 2**63))
    edges = np.linspace(0, n_rounds, min(n_rounds, _N_REPORTS) + 1).astype(int)
    for first, last in pairwise(edges.tolist()):
        at = _SHARE_OF_GRAPH + (1 - _SHARE_OF_GRAPH) * first / n_rounds
        on_progress(at, f"UMAP, round {first} of {n_rounds}")
        state = np.uint64(  # numba gives it back as an int
            move_points(places, heads, tails, period, due, pull, push, first, last, n_rounds, state)
        )
    return np.ascontiguousarray(places[:, : spec.n_components])


def _start(vectors: Vectors, spec: ProjectionSpec) -> NDArray[np.float32]:
    """Return the principal components within [-10, 10], ties broken by a little seeded noise."""
    places = principal_components(vectors, spec.n_components).places(vectors)
    noise = np.random.default_rng(spec.seed).normal(scale=1e-4, size=places.shape)
    return np.asarray(places * (10 / max(float(np.abs(places).max()), 1e-12)) + noise, np.float32)


def memberships(distances: NDArray[np.float32], n_rounds: int = 48) -> NDArray[np.float32]:
    """Return how much each neighbour counts for a new point, rows summing to one.

    Implements the first step of umap-learn's `transform`: exp(−d/σ), σ such that the memberships
    of a row sum to log₂ k, found by bisection.
    Differs from umap-learn: a σ below 1/1000 of the mean distance counts as that.

    Parameters
    ----------
    distances : float32 array (m, k)
        To the k nearest, ascending.
    """
    wanted = np.log2(max(distances.shape[1], 2))
    far = distances.astype(np.float64)
    low = np.zeros((len(far), 1))
    high = np.maximum(far.max(1, keepdims=True), 1e-12) * 1e3
    for _ in range(n_rounds):
        sigma = (low + high) / 2
        is_wide = np.exp(-far / sigma).sum(1, keepdims=True) > wanted
        low, high = np.where(is_wide, low, sigma), np.where(is_wide, sigma, high)
    sigma = np.maximum((low + high) / 2, np.maximum(far.mean(1, keepdims=True), 1e-12) / 1e3)
    weights = np.exp(-far / sigma)
    return np.asarray(weights / np.maximum(weights.sum(1, keepdims=True), 1e-30), np.float32)
