"""Tests of output tokens, for mechanisms whose noise is not visible.

The tokens lie in distant islands of the same star shape: a centre, a ring of neighbours so close
that the centre itself hardly ever returns, and rays of tokens along both ends of every axis. The
centre is the input; the ray of the output shows the noise's direction, its position on the ray the
noise's length. The expected distribution is simulated by the audit itself, with a generator and a
nearest-token search that share nothing with the mechanism's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Tokens = NDArray[np.int64]
"""Tokens that came out, (calls, places)."""

DIMENSION = 4
RING = 0.2
"""Distance of a centre's neighbours, in units of 1/η."""
_RADII = (1.5, 3.0, 4.5, 6.5, 9.0)
"""In units of 1/η, where the noise of 4 dimensions has a mean length of 4."""
_FROM_ORIGIN = (60.0, 70.0, 80.0, 90.0)
"""Of the islands: each its own, so that a scale which follows an input's length shows."""
_FEWEST = 5
"""What a cell of a table has to expect at least, for χ²: rare outcomes are put together, or left
out."""


@dataclass(frozen=True)
class Stars:
    """The probe's tokens: four star-shaped islands; token `i·size` is the centre of the i-th.

    Attributes
    ----------
    table : float32 array (V, 4)
    shape : float64 array (size, 4)
        One star around its centre, in units of 1/η.
    """

    table: NDArray[np.float32]
    shape: NDArray[np.float64]

    @classmethod
    def at(cls, eta: float) -> Stars:
        """Build stars of a size at which noise at η moves between their tokens."""
        ends = np.concatenate([np.eye(DIMENSION), -np.eye(DIMENSION)])
        shape = np.concatenate([np.zeros((1, DIMENSION)), *(r * ends for r in (RING, *_RADII))])
        centres = np.array(_FROM_ORIGIN)[:, None] * np.eye(DIMENSION)
        table = (centres[:, None] + shape).reshape(-1, DIMENSION) / eta
        return cls(table.astype(np.float32), shape)

    @property
    def size(self) -> int:
        """Tokens of a star."""
        return len(self.shape)

    @property
    def centres(self) -> Tokens:
        """The centre tokens, which are the inputs."""
        return np.arange(len(_FROM_ORIGIN)) * self.size

    def simulate_counts(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Simulate how often each token of a star comes out of its centre, in n draws."""
        ways = rng.standard_normal((n, DIMENSION))
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        noise = ways * rng.exponential(1.0, (n, DIMENSION)).sum(1, keepdims=True)
        nearer = noise @ self.shape.T - np.square(self.shape).sum(1) / 2
        return np.bincount(nearer.argmax(1), minlength=self.size)

    def ray(self, within: Tokens) -> Tokens:
        """Return the number of the ray on which each token lies; 0 for the centre."""
        return np.where(within == 0, 0, (within - 1) % (2 * DIMENSION) + 1)

    def step(self, within: Tokens) -> Tokens:
        """Return how many steps from the centre each token lies; 0 for the centre."""
        return np.where(within == 0, 0, (within - 1) // (2 * DIMENSION) + 1)


def output_tests(
    stars: Stars, centres: Tokens, found: Tokens, law: NDArray[np.int64]
) -> dict[str, float]:
    """Test the tokens that came out of centres, (calls, places), against simulated counts.

    Parameters
    ----------
    law : int64 array (size,)
        See `Stars.simulate_counts`; of many more draws than there are outputs.
    """
    within = found - centres
    if not ((within >= 0) & (within < stars.size)).all():
        return {"outputs: none on another island": 0.0}
    ray, step = stars.ray(within), stars.step(within)
    counts = np.bincount(within.ravel(), minlength=stars.size)
    own = (law[0] + 1) / law.sum()  # how often a centre returns
    every = np.arange(stars.size)
    return {
        "outputs: as often as the law says": _same_distribution_test(counts, law),
        "outputs: how far out": _same_distribution_test(
            *(np.bincount(stars.step(every), weights=c) for c in (counts, law))
        ),
        "outputs: no side preferred": _same_distribution_test(
            *(np.bincount(stars.ray(every), weights=c) for c in (counts, law))
        ),
        "outputs: a centre hardly returns": float(
            stats.binom.sf(int(counts[0]) - 1, counts.sum(), own)
        ),
        "outputs: as far out from every input": _independence_test(
            np.broadcast_to(centres, step.shape), step
        ),
        "within a call: directions": _independence_test(ray[:, :-1], ray[:, 1:]),
        "within a call: lengths": _independence_test(step[:, :-1], step[:, 1:]),
        "between calls: directions": _independence_test(ray[:-1], ray[1:]),
        "between calls: lengths": _independence_test(step[:-1], step[1:]),
    }


def twin_output_tests(stars: Stars, one: Tokens, other: Tokens, what: str) -> dict[str, float]:
    """Test that two sources, such as processes, draw independently for the same inputs."""
    first, second = one % stars.size, other % stars.size
    return {
        f"between {what}: directions": _independence_test(stars.ray(first), stars.ray(second)),
        f"between {what}: lengths": _independence_test(stars.step(first), stars.step(second)),
    }


def _same_distribution_test(counts: NDArray[Any], law: NDArray[Any]) -> float:
    """Return the χ² p-value that two samples have one distribution; rare outcomes are pooled."""
    order = np.argsort(law, kind="stable")
    expected = law[order].cumsum() * (counts.sum() / law.sum())
    n_rare = int((expected < _FEWEST).sum()) + 1  # the rarest, until they are enough
    table = [[c[order[:n_rare]].sum(), *c[order[n_rare:]]] for c in (counts, law)]
    return _chi_square(np.array(table, np.float64))


def _independence_test(one: Tokens, other: Tokens) -> float:
    """Return the χ² p-value that paired outcomes are independent, ignoring rare ones."""
    first, second = one.ravel(), other.ravel()
    kept = np.isin(first, _frequent(first)) & np.isin(second, _frequent(second))
    if not kept.any():
        return 1.0
    return _chi_square(stats.contingency.crosstab(first[kept], second[kept]).count)


def _frequent(values: Tokens) -> Tokens:
    """Return the values that occur often enough for a χ² test."""
    found, counts = np.unique(values, return_counts=True)
    return found[counts >= np.sqrt(_FEWEST * len(values))]


def _chi_square(table: NDArray[Any]) -> float:
    """Return the p-value of a contingency table, 1 if it has a single row or column."""
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    return float(stats.chi2_contingency(table).pvalue) if min(table.shape) > 1 else 1.0
