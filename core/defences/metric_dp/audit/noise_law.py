"""Statistical tests of visible noise, and of released tokens where the noise is not visible.

The law is that of Qu et al. (2021), Eq. 3: a norm of Gamma(n, 1/η) and, independent of it, a
direction uniform on the sphere. Each test returns a p-value that is uniform, or nearly, where the
law holds; `mechanism` corrects for their number. The cosine c of two independent directions, or of
one with anything fixed, has (1 + c)/2 ~ Beta((n − 1)/2, (n − 1)/2).

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

Noise = NDArray[np.float64]
"""Noise vectors, (calls, places, n): a place is a token, or a text."""

_TINY = 1e-300

_BLOCK = 128
"""Draws that are compared with all later ones at a time."""


def law_tests(noise: Noise, inputs: NDArray[np.float64], eta: float) -> dict[str, float]:
    """Test norms and directions of noise against their law; return p-values by name.

    Parameters
    ----------
    noise : float64 array (calls, places, n)
    inputs : float64 array (places, n)
        What the noise was added to; places that hold the same input have equal rows.
    """
    n = noise.shape[-1]
    norms, directions = _norms_and_directions(noise)
    law = stats.gamma(n, scale=1 / eta)
    flat, ways = norms.ravel(), directions.reshape(-1, n)
    towards = _cosines(directions, _norms_and_directions(inputs)[1][None])
    return {
        "norm: Gamma(n, 1/η)": float(stats.kstest(flat, law.cdf).pvalue),
        "norm: its shape": _smooth_test(law.cdf(flat)),
        "norm: none too short": _extreme_value_test(law.cdf(flat.min()), len(flat)),
        "norm: none too long": _extreme_value_test(law.sf(flat.max()), len(flat)),
        "norm: no tail cut off": _cut_off_test(law, flat),
        "norm: the same for every input": _kruskal_wallis_test(norms, inputs),
        "direction: no side preferred": _rayleigh_test(ways),
        "direction: no axis preferred": _bingham_test(ways),
        "direction: not towards the input": _beta_test(towards, n),
        "norm and direction: independent": _rank_test(norms.ravel(), towards.ravel()),
    }


def link_tests(noise: Noise) -> dict[str, float]:
    """Test one instance's draws for independence in and between calls; return p-values by name."""
    n = noise.shape[-1]
    norms, directions = _norms_and_directions(noise)
    within = _cosines(directions[:, :-1], directions[:, 1:])
    between = _cosines(directions[:-1], directions[1:])
    return {
        "within a call: directions": _beta_test(within, n),
        "within a call: no direction again": _closest_direction_test(within, n),
        "within a call: norms": _rank_test(norms[:, :-1].ravel(), norms[:, 1:].ravel()),
        "between calls: directions": _beta_test(between, n),
        "between calls: no direction again": _closest_direction_test(between, n),
        "between calls: norms": _rank_test(norms[:-1].ravel(), norms[1:].ravel()),
        "no draw twice": _no_repeat_test(noise.reshape(-1, n)),
    }


def sequence_tests(draws: NDArray[np.float64]) -> dict[str, float]:
    """Test a sequence of noise vectors for independence at every lag; return p-values by name.

    Parameters
    ----------
    draws : float64 array (m, n)
        Noise vectors; every two of them are compared, and every lag up to m/2 has a test.

    Notes
    -----
    Directions of independent draws have pairwise independent cosines c of variance 1/n, so the sum
    of √n·c over the pairs at a lag is normal and that of n·c² is χ², nearly; the latter sees draws
    that repeat with either sign. Each p-value is corrected for the number of pairs, or of lags.
    """
    m, n = draws.shape
    norms, ways = _norms_and_directions(draws)
    cosines, sums, squares = _lag_sums(ways.astype(np.float32))
    n_pairs = m - np.arange(1, m // 2 + 1)
    half = (n - 1) / 2
    closest = float(stats.beta(half, half).sf((1 + cosines) / 2))
    scores = stats.norm.ppf(stats.rankdata(norms) / (m + 1))
    spectrum = np.fft.rfft(scores / max(float(scores.std()), _TINY), 2 * m)
    lagged = np.fft.irfft(np.abs(spectrum) ** 2)[1 : m // 2 + 1]
    return {
        "any two draws: no direction again": min(1.0, closest * m * (m - 1)),
        "any lag: directions": _bonferroni(2 * stats.norm.sf(np.abs(sums) * np.sqrt(n / n_pairs))),
        "any lag: directions of either sign": _bonferroni(stats.chi2(n_pairs).sf(n * squares)),
        "any lag: norms": _bonferroni(2 * stats.norm.sf(np.abs(lagged) / np.sqrt(n_pairs))),
    }


def _lag_sums(
    ways: NDArray[np.float32],
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the greatest |cosine| of any two directions, and the sums of c and c² at each lag."""
    m = len(ways)
    greatest, sums, squares = 0.0, np.zeros(m), np.zeros(m)
    for start in range(0, m - 1, _BLOCK):
        block, rest = ways[start : start + _BLOCK], ways[start:]
        n_rows, width = len(block), len(rest)
        # Row i holds draw i with those from itself on, shifted so that a column is a lag.
        padded = np.zeros((n_rows, width + n_rows), np.float32)
        padded[:, :width] = block[::-1] @ rest.T
        shifted = padded.ravel()[: n_rows * (width + n_rows - 1)]
        shifted = shifted.reshape(n_rows, -1)[:, n_rows:]
        greatest = max(greatest, float(shifted.max()), -float(shifted.min()))
        sums[1:width] += shifted.sum(0)
        squares[1:width] += np.square(shifted).sum(0)
    return min(greatest, 1.0), sums[1 : m // 2 + 1], squares[1 : m // 2 + 1]


def _bonferroni(p_values: NDArray[np.float64]) -> float:
    """Return the least of several p-values, times their number (Bonferroni), at most 1."""
    return float(min(1.0, p_values.min() * p_values.size))


def twin_tests(one: Noise, other: Noise, what: str) -> dict[str, float]:
    """Test two sources' noise for the same inputs for independence; return p-values by name."""
    n = one.shape[-1]
    (norms, ways), (other_norms, other_ways) = (
        _norms_and_directions(one),
        _norms_and_directions(other),
    )
    cosines = _cosines(ways, other_ways)
    both = np.concatenate([one.reshape(-1, n), other.reshape(-1, n)])
    return {
        f"between {what}: directions": _beta_test(cosines, n),
        f"between {what}: no direction again": _closest_direction_test(cosines, n),
        f"between {what}: norms": _rank_test(norms.ravel(), other_norms.ravel()),
        f"between {what}: no draw twice": _no_repeat_test(both),
    }


def _norms_and_directions(
    vectors: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return norms and directions of vectors; a zero vector has direction zero."""
    norms = np.linalg.norm(vectors, axis=-1)
    return norms, vectors / np.maximum(norms, _TINY)[..., None]


def _cosines(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosine of each pair of corresponding unit vectors in two arrays."""
    return np.clip((one * other).sum(-1), -1, 1)


def _smooth_test(uniform: NDArray[np.float64]) -> float:
    """Return the p-value of Neyman's smooth test, of order 4, that values are uniform on [0, 1].

    It detects a wrong spread or skew, which Kolmogorov–Smirnov hardly does.
    """
    x, root = 2 * uniform - 1, np.sqrt(len(uniform))
    sums = [
        np.sqrt(2 * k + 1) * np.polynomial.legendre.legval(x, [0] * k + [1]).sum() / root
        for k in range(1, 5)
    ]
    return float(stats.chi2(4).sf(np.square(sums).sum()))


def _extreme_value_test(tail: float, m: int) -> float:
    """Return the p-value of the most extreme of m draws, given the tail probability beyond it."""
    return float(-np.expm1(m * np.log1p(-min(tail, 1 - 1e-16))))


def _cut_off_test(law: Any, norms: NDArray[np.float64]) -> float:
    """Return the p-value that no tail of norms is cut off: longest too short, shortest too long."""
    m = len(norms)
    longest, shortest = law.logcdf(norms.max()), law.logsf(norms.min())
    return float(min(1.0, 2 * np.exp(m * min(longest, shortest))))


def _kruskal_wallis_test(norms: NDArray[np.float64], inputs: NDArray[np.float64]) -> float:
    """Return the Kruskal–Wallis p-value that norms do not depend on the input."""
    known: dict[bytes, int] = {}
    which = np.array([known.setdefault(row.tobytes(), len(known)) for row in inputs])
    groups = [norms[:, which == i].ravel() for i in range(len(known))]
    return float(stats.kruskal(*groups).pvalue) if len(groups) > 1 else 1.0


def _rayleigh_test(ways: NDArray[np.float64]) -> float:
    """Return the Rayleigh p-value that unit vectors have uniform directions.

    n·m·‖mean direction‖² is χ² with n degrees of freedom.
    """
    m, n = ways.shape
    return float(stats.chi2(n).sf(n * m * np.square(ways.mean(0)).sum()))


def _bingham_test(ways: NDArray[np.float64]) -> float:
    """Return the Bingham p-value that unit vectors prefer no axis.

    m·n(n + 2)/2·(tr S² − 1/n) is χ² with (n − 1)(n + 2)/2 degrees of freedom.
    """
    m, n = ways.shape
    scatter = ways.T @ ways / m
    statistic = m * n * (n + 2) / 2 * (np.square(scatter).sum() - 1 / n)
    return float(stats.chi2((n - 1) * (n + 2) / 2).sf(statistic))


def _beta_test(cosines: NDArray[np.float64], n: int) -> float:
    """Return the Kolmogorov–Smirnov p-value that cosines are those of independent directions."""
    half = (n - 1) / 2
    return float(stats.kstest((1 + cosines.ravel()) / 2, stats.beta(half, half).cdf).pvalue)


def _closest_direction_test(cosines: NDArray[np.float64], n: int) -> float:
    """Return the p-value of the greatest cosine, if directions are independent."""
    half = (n - 1) / 2
    return _extreme_value_test(
        float(stats.beta(half, half).sf((1 + cosines.max()) / 2)), cosines.size
    )


def _rank_test(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return Spearman's p-value that two paired samples are independent; 1 if undefined."""
    found: Any = stats.spearmanr(one, other)
    return 1.0 if np.isnan(found.pvalue) else float(found.pvalue)


def _no_repeat_test(rows: NDArray[np.float64]) -> float:
    """Return 0 if two vectors are equal, which never happens by chance, else 1.

    On a grid equal noise is seen as equal on equal inputs alone: see `sequence_tests` for others.
    """
    return 1.0 if len({row.tobytes() for row in rows}) == len(rows) else 0.0


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
        """Build the four stars, scaled so that noise at η moves between the tokens of a star."""
        ends = np.concatenate([np.eye(DIMENSION), -np.eye(DIMENSION)])
        shape = np.concatenate([np.zeros((1, DIMENSION)), *(r * ends for r in (RING, *_RADII))])
        centres = np.array(_FROM_ORIGIN)[:, None] * np.eye(DIMENSION)
        table = (centres[:, None] + shape).reshape(-1, DIMENSION) / eta
        return cls(table.astype(np.float32), shape)

    @property
    def size(self) -> int:
        """The number of tokens of a star."""
        return len(self.shape)

    @property
    def centres(self) -> Tokens:
        """The token ids of the centres, which are the audit's inputs."""
        return np.arange(len(_FROM_ORIGIN)) * self.size

    def simulate_counts(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Simulate how often each token of a star comes out of its centre, in n draws."""
        ways = rng.standard_normal((n, DIMENSION))
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        noise = ways * rng.exponential(1.0, (n, DIMENSION)).sum(1, keepdims=True)
        nearer = noise @ self.shape.T - np.square(self.shape).sum(1) / 2
        return np.bincount(nearer.argmax(1), minlength=self.size)

    def ray(self, within: Tokens) -> Tokens:
        """Return the ray of each token, given by its place in a star; 0 for the centre."""
        return np.where(within == 0, 0, (within - 1) % (2 * DIMENSION) + 1)

    def step(self, within: Tokens) -> Tokens:
        """Return each token's steps from the centre, given its place in a star; centre: 0."""
        return np.where(within == 0, 0, (within - 1) // (2 * DIMENSION) + 1)


def output_tests(
    stars: Stars, centres: Tokens, found: Tokens, law: NDArray[np.int64]
) -> dict[str, float]:
    """Test the tokens that came out of centres against simulated counts; return p-values by name.

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
    """Test two sources' output tokens for independence; return p-values by name."""
    first, second = one % stars.size, other % stars.size
    return {
        f"between {what}: directions": _independence_test(stars.ray(first), stars.ray(second)),
        f"between {what}: lengths": _independence_test(stars.step(first), stars.step(second)),
    }


def _same_distribution_test(counts: NDArray[Any], law: NDArray[Any]) -> float:
    """Return the χ² p-value that two arrays of counts have one distribution; pools rare ones."""
    order = np.argsort(law, kind="stable")
    expected = law[order].cumsum() * (counts.sum() / law.sum())
    n_rare = int((expected < _FEWEST).sum()) + 1  # the rarest, until they are enough
    table = [[c[order[:n_rare]].sum(), *c[order[n_rare:]]] for c in (counts, law)]
    return chi_square_test(np.array(table, np.float64))


def _independence_test(one: Tokens, other: Tokens) -> float:
    """Return the χ² p-value that two arrays of outcomes are independent, ignoring rare ones."""
    first, second = one.ravel(), other.ravel()
    kept = np.isin(first, _select_frequent(first)) & np.isin(second, _select_frequent(second))
    if not kept.any():
        return 1.0
    return chi_square_test(stats.contingency.crosstab(first[kept], second[kept]).count)


def _select_frequent(values: Tokens) -> Tokens:
    """Return the distinct values that occur often enough for a χ² test."""
    found, counts = np.unique(values, return_counts=True)
    return found[counts >= np.sqrt(_FEWEST * len(values))]


def chi_square_test(table: NDArray[Any]) -> float:
    """Return the χ² p-value of a contingency table; 1 if it has a single row or column."""
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    return float(stats.chi2_contingency(table).pvalue) if min(table.shape) > 1 else 1.0
