"""Quality measures of a map: trustworthiness, and agreement of classes among neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.intervals import bootstrap_interval
from leakscope.core.projection.neighbours import nearest
from leakscope.core.protocols import Vectors
from leakscope.core.results import Score
from leakscope.core.units import units_of_vectors

_BLOCK_ROWS = 64


@dataclass(frozen=True)
class NeighbourScore:
    """A score over points, computed from each point's `k` nearest neighbours."""

    score: Score
    k: int

    @property
    def above_chance(self) -> float:
        """The score less the score of guessing."""
        return self.score.value - self.score.chance


def trustworthiness(
    vectors: Vectors,
    places: NDArray[np.float32],
    *,
    k: int = 15,
    n_sample: int = 1000,
    seed: int = 0,
) -> NeighbourScore:
    """Measure the trustworthiness of a map's places (Venna & Kaski 2001); 1 is best.

    Implements Eq. 2 of Venna & Kaski (2001):
    T(k) = 1 − 2/(n k (2n − 3k − 1)) Σ_i Σ_{j ∈ U_k(i)} (r(i, j) − k), where U_k(i) are the points
    among the k nearest of i on the map but not among the vectors, and r(i, j) is the rank of j
    among the neighbours of i by their vectors.
    Differs from the paper: the sum runs over `n_sample` points i drawn without replacement, their
    neighbours being sought among all; with n_sample ≥ n it is the paper's.

    Parameters
    ----------
    vectors : float32 array (n, d)
        Compared by Euclidean distance.
    places : float32 array (n, c)
    k : int
        Neighbours asked about; below half of n, or that.
    """
    n = len(vectors)
    k = max(1, min(k, (n - 1) // 2))
    rng = np.random.default_rng(seed)
    asked = np.sort(rng.choice(n, size=min(n, n_sample), replace=False))
    excess = np.concatenate(
        [
            _sum_excess_ranks(vectors, places, asked[i : i + _BLOCK_ROWS], k)
            for i in range(0, len(asked), _BLOCK_ROWS)
        ]
    )
    each = 1 - excess * 2 / (k * (2 * n - 3 * k - 1))
    units = units_of_vectors(vectors[asked])
    return NeighbourScore(
        Score(float(each.mean()), bootstrap_interval(each, groups=units, seed=seed), len(asked)), k
    )


@torch.inference_mode()
def _sum_excess_ranks(
    vectors: Vectors, places: NDArray[np.float32], rows: NDArray[np.int64], k: int
) -> NDArray[np.float64]:
    """Sum max(0, r(i, j) − k) over the k map neighbours j of each point i; one number per point."""
    on_map = torch.cdist(torch.from_numpy(places[rows]), torch.from_numpy(places))
    far = torch.cdist(torch.from_numpy(vectors[rows]), torch.from_numpy(vectors))
    own = torch.arange(len(rows)), torch.from_numpy(rows)
    on_map[own], far[own] = torch.inf, torch.inf
    near = on_map.topk(k, largest=False).indices
    reach = far.gather(1, near)
    ranks = torch.stack([(far < reach[:, j : j + 1]).sum(1) for j in range(k)], dim=1) + 1
    return (ranks - k).clamp(min=0).sum(1).double().numpy()


def neighbour_agreement(
    places: NDArray[np.float32],
    classes: Sequence[Hashable | None],
    *,
    units: Sequence[Hashable] | None = None,
    k: int = 10,
    n_sample: int = 2000,
    seed: int = 0,
) -> NeighbourScore | None:
    """Measure how many of a point's k nearest neighbours share its class, on average, 0 to k.

    Chance is what points scattered at random would have.
    Points without a class (None) are left out as if they were not there.

    Parameters
    ----------
    places : float32 array (n, c)
        Coordinates on a map, or vectors.
    classes : sequence of n
    units : sequence of n, optional
        The unit of each point (`leakscope.core.units.units_of`); each is its own by default.

    Returns
    -------
    NeighbourScore or None
        None where fewer than two classes have a point, or k points are not left.
    """
    kept = np.array([i for i, c in enumerate(classes) if c is not None], dtype=np.int64)
    counts = Counter(classes[i] for i in kept)
    if len(counts) < 2 or len(kept) <= k:
        return None
    number = {c: i for i, c in enumerate(counts)}
    codes = np.array([number[classes[i]] for i in kept])
    rng = np.random.default_rng(seed)
    asked = np.sort(rng.choice(len(kept), size=min(len(kept), n_sample), replace=False))
    known = np.ascontiguousarray(places[kept])
    # One more neighbour, since the nearest to a point is itself (or a duplicate).
    found, _ = nearest(known, known[asked], k + 1)
    is_same = codes[found] == codes[asked][:, None]
    is_own = found == asked[:, None]
    has_own = is_own.any(1)
    each = (is_same & ~is_own).sum(1) - np.where(has_own, 0, is_same[:, -1])
    sizes = np.array(list(counts.values()), dtype=np.float64)
    chance = k * float((sizes * (sizes - 1)).sum() / (len(kept) * (len(kept) - 1)))
    own = None if units is None else [units[i] for i in kept[asked]]
    interval = bootstrap_interval(
        each.astype(np.float64), groups=own, bounds=(0.0, float(k)), seed=seed
    )
    return NeighbourScore(Score(float(each.mean()), interval, len(asked), chance), k)
