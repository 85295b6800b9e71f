"""Tests of visible noise: its norm, its direction, and the independence of draws.

The law is that of Qu et al. (2021), Eq. 3: a norm of Gamma(n, 1/η) and, independent of it, a
direction uniform on the sphere. Each test returns a p-value that is uniform, or nearly, where the
law holds; `mechanism` corrects for their number. The cosine c of two independent directions, or of
one with anything fixed, has (1 + c)/2 ~ Beta((n − 1)/2, (n − 1)/2).
"""

from __future__ import annotations

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
    """Test norms and directions of noise against their specified distributions.

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
    """Test that draws of one instance are independent, within calls and between them."""
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
    """Test that consecutive draws are independent at every lag.

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
    """Return the least p-value, corrected for their number (Bonferroni)."""
    return float(min(1.0, p_values.min() * p_values.size))


def twin_tests(one: Noise, other: Noise, what: str) -> dict[str, float]:
    """Test that two sources, such as processes, draw independent noise for the same inputs."""
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
    """Return the cosines of two arrays of unit vectors."""
    return np.clip((one * other).sum(-1), -1, 1)


def _smooth_test(uniform: NDArray[np.float64]) -> float:
    """Return the p-value of Neyman's smooth test of uniformity, of order 4.

    It detects a wrong spread or skew, which Kolmogorov–Smirnov hardly does.
    """
    x, root = 2 * uniform - 1, np.sqrt(len(uniform))
    sums = [
        np.sqrt(2 * k + 1) * np.polynomial.legendre.legval(x, [0] * k + [1]).sum() / root
        for k in range(1, 5)
    ]
    return float(stats.chi2(4).sf(np.square(sums).sum()))


def _extreme_value_test(tail: float, m: int) -> float:
    """Return the probability that the most extreme of m draws lies this far in a tail."""
    return float(-np.expm1(m * np.log1p(-min(tail, 1 - 1e-16))))


def _cut_off_test(law: Any, norms: NDArray[np.float64]) -> float:
    """Return the p-value of a longest norm this short, or a shortest this long (Bonferroni)."""
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
    """Return the Rayleigh p-value of uniform directions.

    n·m·‖mean direction‖² is χ² with n degrees of freedom.
    """
    m, n = ways.shape
    return float(stats.chi2(n).sf(n * m * np.square(ways.mean(0)).sum()))


def _bingham_test(ways: NDArray[np.float64]) -> float:
    """Return the Bingham p-value of directions without a preferred axis.

    m·n(n + 2)/2·(tr S² − 1/n) is χ² with (n − 1)(n + 2)/2 degrees of freedom.
    """
    m, n = ways.shape
    scatter = ways.T @ ways / m
    statistic = m * n * (n + 2) / 2 * (np.square(scatter).sum() - 1 / n)
    return float(stats.chi2((n - 1) * (n + 2) / 2).sf(statistic))


def _beta_test(cosines: NDArray[np.float64], n: int) -> float:
    """Return the Kolmogorov–Smirnov p-value of cosines of independent directions."""
    half = (n - 1) / 2
    return float(stats.kstest((1 + cosines.ravel()) / 2, stats.beta(half, half).cdf).pvalue)


def _closest_direction_test(cosines: NDArray[np.float64], n: int) -> float:
    """Return the probability of a cosine as near to 1 as the greatest one."""
    half = (n - 1) / 2
    return _extreme_value_test(
        float(stats.beta(half, half).sf((1 + cosines.max()) / 2)), cosines.size
    )


def _rank_test(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return Spearman's p-value that two samples are independent."""
    found: Any = stats.spearmanr(one, other)
    return 1.0 if np.isnan(found.pvalue) else float(found.pvalue)


def _no_repeat_test(rows: NDArray[np.float64]) -> float:
    """Return 0 if two vectors are equal, which never happens by chance, else 1.

    On a grid equal noise is seen as equal on equal inputs alone: see `sequence_tests` for others.
    """
    return 1.0 if len({row.tobytes() for row in rows}) == len(rows) else 0.0
