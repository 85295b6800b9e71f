"""UMAP by umap-learn, given exact neighbours and a start at the principal components."""

from __future__ import annotations

import threading
import warnings

import numpy as np
from numpy.typing import NDArray

from core.projection.neighbours import nearest
from core.projection.principal import principal_components
from core.projection.spec import ProjectionSpec
from core.protocols import OnProgress, Vectors, no_progress

__all__ = ["default_epochs", "memberships", "umap_places"]

_ONE_AT_A_TIME = threading.Lock()
"""Numba's parallel kernels abort the process when two threads enter them at once."""

_SHARE_OF_NEIGHBOURS = 0.4


def default_epochs(n: int) -> int:
    """Return the rounds for n points: fewer than umap-learn's 500 and 200, at equal quality.

    Neighbours are exact and the start is not random, so the points settle sooner;
    `benchmarks/umap_layout.py` holds the quality against umap-learn's defaults.
    """
    return 200 if n <= 10_000 else 120


def umap_places(
    vectors: Vectors, spec: ProjectionSpec, on_progress: OnProgress = no_progress
) -> NDArray[np.float32]:
    """Return the (n, n_components) float32 places of vectors compared by Euclidean distance.

    Implements McInnes, Healy & Melville (2018) by umap-learn.
    Differs from umap-learn's defaults: neighbours are exact instead of approximate, points start
    at their principal components instead of a spectral layout (Kobak & Linderman 2021 find no
    difference in quality), and they move for fewer rounds.

    Raises
    ------
    StoppedError
        `on_progress` asked to stop.
    """
    k = min(spec.n_neighbors, len(vectors) - 1)
    # umap-learn counts a point as its own first neighbour.
    found, distances = nearest(
        vectors, vectors, k - 1, is_self=True,
        on_progress=lambda done, told: on_progress(_SHARE_OF_NEIGHBOURS * done, told),
    )  # fmt: skip
    own = np.arange(len(vectors))[:, None]
    neighbours = (
        np.hstack([own, found]).astype(np.int32),
        np.hstack([np.zeros_like(own, np.float32), distances]),
    )
    n_epochs = spec.n_epochs or default_epochs(len(vectors))
    with _ONE_AT_A_TIME:
        on_progress(_SHARE_OF_NEIGHBOURS, "Loading UMAP")
        return _fit(vectors, spec, k, n_epochs, neighbours, _Epochs(n_epochs, on_progress))


def _fit(
    vectors: Vectors,
    spec: ProjectionSpec,
    k: int,
    n_epochs: int,
    neighbours: tuple[NDArray[np.int32], NDArray[np.float32]],
    epochs: _Epochs,
) -> NDArray[np.float32]:
    import numba
    from umap import UMAP

    n_threads = numba.get_num_threads()
    model = UMAP(
        n_neighbors=k,
        n_components=spec.n_components,
        min_dist=spec.min_dist,
        n_epochs=n_epochs,
        init=_start(vectors, spec),
        random_state=spec.seed,
        n_jobs=1,
        precomputed_knn=neighbours,
        tqdm_kwds={"disable": False, "file": epochs, "bar_format": "{n_fmt}", "mininterval": 0.2},
    )
    try:
        with warnings.catch_warnings():  # new points are placed by `Layout`, not by umap-learn
            warnings.filterwarnings("ignore", message=".*precomputed_knn.*")
            return np.ascontiguousarray(model.fit_transform(vectors), dtype=np.float32)
    finally:
        numba.set_num_threads(n_threads)


def _start(vectors: Vectors, spec: ProjectionSpec) -> NDArray[np.float32]:
    """Return the principal components within [-10, 10], ties broken by a little seeded noise."""
    places = principal_components(vectors, spec.n_components).places(vectors)
    noise = np.random.default_rng(spec.seed).normal(scale=1e-4, size=places.shape)
    return np.asarray(places * (10 / max(float(np.abs(places).max()), 1e-12)) + noise, np.float32)


class _Epochs:
    """The file that umap-learn's progress bar writes to: passes the number of the round on."""

    def __init__(self, n_epochs: int, on_progress: OnProgress) -> None:
        self.n_epochs, self.on_progress = n_epochs, on_progress

    def write(self, text: str) -> None:
        """Read the number of the round out of what the bar would show."""
        digits = "".join(c for c in text if c.isdigit())
        if digits:
            done = min(1.0, int(digits) / self.n_epochs)
            at = _SHARE_OF_NEIGHBOURS + (1 - _SHARE_OF_NEIGHBOURS) * done
            self.on_progress(at, f"UMAP, round {digits} of {self.n_epochs}")

    def flush(self) -> None:
        """Do nothing: there is no buffer."""


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
