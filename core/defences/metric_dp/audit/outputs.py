"""Tests of outputs, where the noise itself is not seen: tokens in, tokens out.

The tokens lie in islands far apart, each the same star: a centre, a ring of neighbours so close
that the centre itself hardly ever returns, and rays of tokens along both ends of every axis. The
centre goes in; which ray comes out tells the noise's direction, and how far out its length. What
the law makes of it is drawn by the audit itself, many times, with a generator and a search for the
nearest token that share nothing with the mechanism's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

__all__ = ["RING", "Stars", "output_tests", "twin_output_tests"]

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
    """The tokens: four stars; token `i·size` is the centre of the i-th.

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
        """Return stars in which noise at η moves about."""
        ends = np.concatenate([np.eye(DIMENSION), -np.eye(DIMENSION)])
        shape = np.concatenate([np.zeros((1, DIMENSION)), *(r * ends for r in (RING, *_RADII))])
        centres = np.array(_FROM_ORIGIN)[:, None] * np.eye(DIMENSION)
        table = (centres[:, None] + shape).reshape(-1, DIMENSION) / eta
        return cls(table.astype(np.float32), shape)

    @property
    def size(self) -> int:
        """Tokens of an island."""
        return len(self.shape)

    @property
    def centres(self) -> Tokens:
        """The tokens that go in."""
        return np.arange(len(_FROM_ORIGIN)) * self.size

    def law(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return how often each token of a star comes out of its centre, of n true draws."""
        ways = rng.standard_normal((n, DIMENSION))
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        noise = ways * rng.exponential(1.0, (n, DIMENSION)).sum(1, keepdims=True)
        nearer = noise @ self.shape.T - np.square(self.shape).sum(1) / 2
        return np.bincount(nearer.argmax(1), minlength=self.size)

    def ray(self, within: Tokens) -> Tokens:
        """Return the end of an axis on which tokens lie; 0 for the centre."""
        return np.where(within == 0, 0, (within - 1) % (2 * DIMENSION) + 1)

    def step(self, within: Tokens) -> Tokens:
        """Return how far out tokens lie: 0 for the centre, 1 for the ring, and so on."""
        return np.where(within == 0, 0, (within - 1) // (2 * DIMENSION) + 1)


def output_tests(
    stars: Stars, centres: Tokens, found: Tokens, law: NDArray[np.int64]
) -> dict[str, float]:
    """Test what came out of centres (places,) in each call, (calls, places), against the law.

    Parameters
    ----------
    law : int64 array (size,)
        See `Stars.law`; of many more draws than there are outputs.
    """
    within = found - centres
    if not ((within >= 0) & (within < stars.size)).all():
        return {"outputs: none on another island": 0.0}
    ray, step = stars.ray(within), stars.step(within)
    counts = np.bincount(within.ravel(), minlength=stars.size)
    own = (law[0] + 1) / law.sum()  # how often a centre returns
    every = np.arange(stars.size)
    return {
        "outputs: as often as the law says": _same_law(counts, law),
        "outputs: how far out": _same_law(
            *(np.bincount(stars.step(every), weights=c) for c in (counts, law))
        ),
        "outputs: no side preferred": _same_law(
            *(np.bincount(stars.ray(every), weights=c) for c in (counts, law))
        ),
        "outputs: a centre hardly returns": float(
            stats.binom.sf(int(counts[0]) - 1, counts.sum(), own)
        ),
        "outputs: as far out from every input": _independent(
            np.broadcast_to(centres, step.shape), step
        ),
        "within a call: directions": _independent(ray[:, :-1], ray[:, 1:]),
        "within a call: lengths": _independent(step[:, :-1], step[:, 1:]),
        "between calls: directions": _independent(ray[:-1], ray[1:]),
        "between calls: lengths": _independent(step[:-1], step[1:]),
    }


def twin_output_tests(stars: Stars, one: Tokens, other: Tokens, what: str) -> dict[str, float]:
    """Test that two sources, such as processes, answer independently in the same places."""
    first, second = one % stars.size, other % stars.size
    return {
        f"between {what}: directions": _independent(stars.ray(first), stars.ray(second)),
        f"between {what}: lengths": _independent(stars.step(first), stars.step(second)),
    }


def _same_law(counts: NDArray[Any], law: NDArray[Any]) -> float:
    """Test that two samples are of one law (χ² of a 2-row table), rare outcomes put together."""
    order = np.argsort(law, kind="stable")
    expected = law[order].cumsum() * (counts.sum() / law.sum())
    n_rare = int((expected < _FEWEST).sum()) + 1  # the rarest, until they are enough
    table = [[c[order[:n_rare]].sum(), *c[order[n_rare:]]] for c in (counts, law)]
    return _chi_square(np.array(table, np.float64))


def _independent(one: Tokens, other: Tokens) -> float:
    """Test that two outcomes in the same places are independent (χ²), rare ones left out."""
    first, second = one.ravel(), other.ravel()
    kept = np.isin(first, _frequent(first)) & np.isin(second, _frequent(second))
    if not kept.any():
        return 1.0
    return _chi_square(stats.contingency.crosstab(first[kept], second[kept]).count)


def _frequent(values: Tokens) -> Tokens:
    found, counts = np.unique(values, return_counts=True)
    return found[counts >= np.sqrt(_FEWEST * len(values))]


def _chi_square(table: NDArray[Any]) -> float:
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    return float(stats.chi2_contingency(table).pvalue) if min(table.shape) > 1 else 1.0
