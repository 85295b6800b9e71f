"""UMAP: its graph of neighbours, optimised by our compiled rounds.

docs/decisions/0006-umap-rounds-of-our-own.md says why graph and rounds are ours.
"""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import curve_fit
from scipy.sparse import csr_array

from leakscope.core.projection.neighbours import nearest
from leakscope.core.projection.principal import principal_components
from leakscope.core.projection.spec import ProjectionSpec
from leakscope.core.protocols import OnProgress, Vectors, no_progress

_ONE_AT_A_TIME = threading.Lock()
"""Numba's parallel kernels, of NN-descent, abort the process when two threads enter at once."""

_MOST_EXACT = 5_000
"""Maximum number of points with exact neighbours; beyond, NN-descent finds 96 % of them, much
faster."""

_SHARE_OF_GRAPH, _N_REPORTS = 0.4, 50


def default_epochs(n: int) -> int:
    """Return how many UMAP rounds we use for n points: 300 up to 10,000, then 200.

    Fewer than umap-learn's 500 up to 10,000 points, at equal quality, which
    `benchmarks/umap_layout.py` holds against umap-learn's; its 200 beyond.
    """
    return 300 if n <= 10_000 else 200


def umap_places(
    vectors: Vectors, spec: ProjectionSpec, on_progress: OnProgress = no_progress
) -> NDArray[np.float32]:
    """Run UMAP on vectors (Euclidean distance); return (n, n_components) coordinates.

    Implements McInnes, Healy & Melville (2018).
    Differs from umap-learn: the rounds are ours (`umap_kernel`), points start at their principal
    components instead of a spectral layout (Kobak & Linderman 2021 find no difference in quality),
    and up to 10,000 points move for fewer rounds.

    Raises
    ------
    StoppedError
        `on_progress` asked to stop.
    """
    on_progress(0.0, "Finding neighbours")
    with _ONE_AT_A_TIME:
        graph = _build_graph(vectors, spec, on_progress)
    on_progress(_SHARE_OF_GRAPH, "Computing the initial positions from principal components")
    return _optimise_layout(graph.tocoo(), _initial_layout(vectors, spec), spec, on_progress)


def _build_graph(vectors: Vectors, spec: ProjectionSpec, on_progress: OnProgress) -> Any:
    """Find the vectors' neighbours; build UMAP's symmetric (n, n) sparse graph of memberships."""
    n, k = len(vectors), min(spec.n_neighbors, len(vectors) - 1)
    if n > _MOST_EXACT:
        from umap.umap_ import nearest_neighbors

        on_progress(0.05, f"Finding neighbours of {n:,} points")
        rng = np.random.RandomState(spec.seed)
        near, distances, _ = nearest_neighbors(vectors, k, "euclidean", {}, False, rng, n_jobs=1)
    else:
        near, distances = nearest(
            vectors,
            vectors,
            k - 1,
            is_self=True,
            on_progress=lambda done, told: on_progress(0.05 + 0.2 * done, told),
        )
        # UMAP counts a point as its own first neighbour.
        own = np.arange(n)[:, None]
        near = np.hstack([own, near])
        distances = np.hstack([np.zeros_like(own, np.float32), distances])
    on_progress(0.3, "Building the neighbour graph")
    return fuzzy_graph(near, distances)


def fuzzy_graph(near: NDArray[Any], distances: NDArray[Any], n_rounds: int = 64) -> Any:
    """Build UMAP's graph, a sparse float32 (n, n) array, from near rows and their distances.

    Implements McInnes, Healy & Melville (2018), algorithms 2 and 3: the membership of a neighbour
    is exp(−(d − ρ)/σ), with ρ the distance to the nearest other point and σ such that a point's
    memberships sum to log₂ k; a and b of two directions become a + b − ab.

    Parameters
    ----------
    near : int array (n, k)
        The nearest points of each, itself first.
    distances : float array (n, k)
        To them, ascending.
    """
    n, k = near.shape
    far = np.asarray(distances, np.float64)
    rho = np.where(far > 0, far, np.inf).min(1, keepdims=True)
    rho[np.isinf(rho)] = 0.0  # a point with only duplicates
    beyond = np.maximum(far - rho, 0.0)
    low, high = np.zeros((n, 1)), np.full((n, 1), np.inf)
    sigma = np.ones((n, 1))
    for _ in range(n_rounds):
        is_wide = np.exp(-beyond[:, 1:] / sigma).sum(1, keepdims=True) > np.log2(k)
        low, high = np.where(is_wide, low, sigma), np.where(is_wide, sigma, high)
        sigma = np.where(np.isinf(high), 2 * sigma, (low + high) / 2)
    # As in umap-learn, no neighbourhood is narrower than a thousandth of the mean distance.
    mean = np.where(rho > 0, far.mean(1, keepdims=True), far.mean())
    weights = np.exp(-beyond / np.maximum(np.maximum(sigma, 1e-3 * mean), 1e-30))
    rows = np.repeat(np.arange(n), k)
    weights[near == np.arange(n)[:, None]] = 0.0
    one = csr_array((weights.ravel().astype(np.float32), (rows, near.ravel())), shape=(n, n))
    one.eliminate_zeros()
    other = one.T.tocsr()
    return one + other - one * other


def fitted_curve(spread: float, least: float) -> tuple[float, float]:
    """Fit UMAP's a and b of 1/(1 + a x²ᵇ) to an exponential beyond the minimum distance."""
    x = np.linspace(0, 3 * spread, 300)
    wanted = np.where(x < least, 1.0, np.exp(-(x - least) / spread))
    (a, b), _ = curve_fit(lambda x, a, b: 1 / (1 + a * x ** (2 * b)), x, wanted)
    return float(a), float(b)


def _optimise_layout(
    graph: Any, start: NDArray[np.float32], spec: ProjectionSpec, on_progress: OnProgress
) -> NDArray[np.float32]:
    """Move the start places by UMAP's rounds, reporting progress; return the coordinates."""
    from leakscope.core.projection.umap_kernel import force_tables, run_rounds

    n_rounds = spec.n_epochs or default_epochs(len(start))
    is_kept = graph.data >= graph.data.max() / n_rounds  # the others would never attract
    heads, tails = graph.row[is_kept].astype(np.int32), graph.col[is_kept].astype(np.int32)
    period = (graph.data.max() / graph.data[is_kept]).astype(np.float32)
    pull, push = force_tables(*fitted_curve(1.0, spec.min_dist))
    places = np.zeros((len(start), 4), np.float32)
    width = np.maximum(np.ptp(start, axis=0), 1e-12)
    places[:, : spec.n_components] = 10 * (start - start.min(0)) / width
    due = period.copy()
    state = np.uint64(np.random.default_rng(spec.seed).integers(1, 2**63))
    edges = np.linspace(0, n_rounds, min(n_rounds, _N_REPORTS) + 1).astype(int)
    for first, last in pairwise(edges.tolist()):
        at = _SHARE_OF_GRAPH + (1 - _SHARE_OF_GRAPH) * first / n_rounds
        on_progress(at, f"UMAP, round {first} of {n_rounds}")
        state = np.uint64(  # numba returns it as an int
            run_rounds(places, heads, tails, period, due, pull, push, first, last, n_rounds, state)
        )
    return np.ascontiguousarray(places[:, : spec.n_components])


def _initial_layout(vectors: Vectors, spec: ProjectionSpec) -> NDArray[np.float32]:
    """Compute the start places: principal components scaled to [-10, 10], with a little noise."""
    places = principal_components(vectors, spec.n_components).project(vectors)
    noise = np.random.default_rng(spec.seed).normal(scale=1e-4, size=places.shape)
    return np.asarray(places * (10 / max(float(np.abs(places).max()), 1e-12)) + noise, np.float32)


def memberships(distances: NDArray[np.float32], n_rounds: int = 48) -> NDArray[np.float32]:
    """Compute UMAP's weights of each new point's neighbours from distances; rows sum to one.

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
