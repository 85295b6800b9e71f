"""Alignment from k pairs of a known and a foreign vector of the same text.

A rotation is orthogonal: Procrustes. Another encoder is not: ridge regression, whose penalty the
pairs left out choose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from leakscope.core.audit.alignment.linear import Floats, LinearAlignment, orthogonal_factor
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import bootstrap_interval
from leakscope.core.protocols import Vectors
from leakscope.core.results import Score
from leakscope.core.units import units_of_vectors
from leakscope.core.vectors import unit

LEAST_PAIRS = 10
"""Fewer pairs do not suffice to choose a penalty."""

CURVE_SIZES = (10, 30, 100, 300, 1_000, 3_000)
"""Numbers of pairs on a learning curve."""

N_FOLDS = 10

_PENALTIES = np.logspace(-6, 3, 28)
"""Penalties of the ridge, in units of the mean variance of a coordinate."""

_POWERS = (0.0, 0.5, 1.0)
"""How far foreign coordinates are whitened before the ridge: λ to the power of -½ times each."""


class Method(StrEnum):
    """The method to fit a paired map."""

    BEST = "best"
    PROCRUSTES = "procrustes"
    RIDGE = "ridge"


@dataclass(frozen=True)
class PairedAlignment:
    """A map fitted on pairs, with its cosine on held-out pairs.

    Attributes
    ----------
    map : LinearAlignment
    n_pairs : int
    held_out : Score
        Mean cosine of a known vector with the map of its foreign one, each left out of the fit;
        n is the distinct pairs, chance the cosine with the mean direction of the known vectors.
    """

    map: LinearAlignment
    n_pairs: int
    held_out: Score


def fit_paired(
    known: Vectors,
    theirs: Vectors,
    *,
    method: Method | str = Method.BEST,
    seed: int = 0,
) -> PairedAlignment:
    """Fit a map from foreign vectors to known ones on k pairs; measure it on held-out pairs.

    Parameters
    ----------
    known : ndarray of float32, shape (k, d)
        The known encoder's vectors of the texts, at least 10.
    theirs : ndarray of float32, shape (k, d')
        The foreign vectors of the same texts.
    method : Method
        `procrustes`: the orthogonal map (Schönemann 1966), for equal widths. `ridge`: ridge
        regression with an intercept (Hoerl & Kennard 1970); power of whitening and penalty
        maximise the mean cosine of left-out pairs, in closed form. `best`: the one with the
        greater mean cosine on held-out pairs.
    seed : int
        Of the folds and of the interval.

    Raises
    ------
    InvalidInputError
        Fewer than 10 pairs, unequal numbers, vectors that are not finite, or `procrustes` for
        vectors of unequal widths.
    """
    _check_pairs(known, theirs)
    first: dict[object, int] = {}
    for row, unit_of_row in enumerate(units_of_vectors(theirs)):
        first.setdefault(unit_of_row, row)
    rows = list(first.values())
    known, theirs = known[rows], theirs[rows]  # the fit would contain copies of held-out pairs
    if len(theirs) < LEAST_PAIRS:
        raise InvalidInputError(
            f"At least {LEAST_PAIRS} different pairs are needed, got {len(theirs)}. Add pairs."
        )
    method = _parse_method(method)
    y, x = unit(known.astype(np.float64)), unit(theirs.astype(np.float64))
    is_square = x.shape[1] == y.shape[1]
    if method == Method.PROCRUSTES and not is_square:
        raise InvalidInputError(
            f"method 'procrustes' needs vectors of equal width, got {x.shape[1]} and "
            f"{y.shape[1]}. Use 'ridge' or 'best'."
        )
    tried: list[tuple[LinearAlignment, Floats]] = []
    if method != Method.RIDGE and is_square:
        zero = np.zeros(x.shape[1])
        rotation = LinearAlignment(orthogonal_factor(x.T @ y), zero, zero, Method.PROCRUSTES)
        tried.append((rotation, _left_out_cosines(x, y, seed)))
    if method != Method.PROCRUSTES:
        tried.append(_fit_ridge(x, y))
    found, cosines = max(tried, key=lambda one: one[1].mean())
    interval = bootstrap_interval(cosines, bounds=(-1.0, 1.0), seed=seed)
    chance = float((y @ unit(y.mean(axis=0)[None])[0]).mean())
    score = Score(float(cosines.mean()), interval, len(cosines), chance)
    return PairedAlignment(found, len(x), score)


def _check_pairs(known: Vectors, theirs: Vectors) -> None:
    """Raise InvalidInputError unless the pairs are enough, finite and of matching shapes."""
    if known.ndim != 2 or theirs.ndim != 2 or len(known) != len(theirs):
        raise InvalidInputError(
            f"known and theirs must have one row per pair each, got {known.shape} and "
            f"{theirs.shape}. Leave out texts that have only one vector."
        )
    if len(known) < LEAST_PAIRS:
        raise InvalidInputError(
            f"At least {LEAST_PAIRS} pairs are needed, got {len(known)}. Add pairs, or align "
            "without pairs if the foreign vectors are rotated ones of a known encoder."
        )
    if not (np.isfinite(known).all() and np.isfinite(theirs).all()):
        raise InvalidInputError("known and theirs must be finite. Leave out rows with NaN or ∞.")


def _parse_method(method: Method | str) -> Method:
    """Convert a method name to `Method`; raise InvalidInputError if it is unknown."""
    try:
        return Method(method)
    except ValueError as error:
        known = ", ".join(Method)
        raise InvalidInputError(f"method must be one of {known}, got {method!r}.") from error


def _left_out_cosines(x: Floats, y: Floats, seed: int) -> Floats:
    """Fit a Procrustes map without each fold; return each left-out pair's cosine, shape (k,)."""
    cosines = np.zeros(len(x))
    fold = np.random.default_rng(seed).permutation(len(x)) % N_FOLDS
    for left_out in (fold == i for i in range(N_FOLDS)):
        rotation = orthogonal_factor(x[~left_out].T @ y[~left_out])
        cosines[left_out] = (unit(x[left_out] @ rotation) * y[left_out]).sum(axis=1)
    return cosines


@dataclass(frozen=True)
class _Ridge:
    """Singular value decomposition of whitened foreign vectors, for ridge regression."""

    whitener: Floats
    u: Floats
    s: Floats
    vt: Floats

    def left_out(self, targets: Floats, penalty: float) -> Floats:
        """Return the leave-one-out predictions of the centred targets, shape (k, d).

        With hat matrix H = 11ᵀ/k + U S² (S² + λ)⁻¹ Uᵀ the residual of a pair that was left out is
        that of the fit over 1 − H_ii (Allen 1974).
        """
        shrunk = self.s**2 / (self.s**2 + penalty)
        residual = targets - (self.u * shrunk) @ (self.u.T @ targets)
        leverage = 1 / len(targets) + (self.u**2 @ shrunk)
        predicted: Floats = targets - residual / np.maximum(1 - leverage, 1e-6)[:, None]
        return predicted

    def weights(self, targets: Floats, penalty: float) -> Floats:
        """Return the ridge weights W = V S (S² + λ)⁻¹ Uᵀ Y, shape (d', d)."""
        inner = (self.vt.T * (self.s / (self.s**2 + penalty))) @ (self.u.T @ targets)
        weights: Floats = self.whitener @ inner
        return weights


def _fit_ridge(x: Floats, y: Floats) -> tuple[LinearAlignment, Floats]:
    """Fit the best ridge map; return it and each pair's leave-one-out cosine, shape (k,)."""
    centre, mean = x.mean(axis=0), y.mean(axis=0)
    targets = y - mean
    best: tuple[float, _Ridge, float, Floats] | None = None
    for ridge in _whitened_decompositions(x - centre):
        for penalty in _PENALTIES * float((ridge.s**2).mean()):
            cosines = (unit(ridge.left_out(targets, penalty) + mean) * y).sum(axis=1)
            if best is None or cosines.mean() > best[0]:
                best = float(cosines.mean()), ridge, penalty, cosines
    assert best is not None
    _, ridge, penalty, cosines = best
    return LinearAlignment(ridge.weights(targets, penalty), centre, mean, Method.RIDGE), cosines


def _whitened_decompositions(centred: Floats) -> Iterator[_Ridge]:
    """Yield the singular value decomposition of centred vectors after each degree of whitening."""
    variances, axes = np.linalg.eigh(np.cov(centred.T))
    scale = np.maximum(variances, 1e-3 * variances.mean())
    for power in _POWERS:
        whitener = axes * scale ** (-power / 2)
        u, s, vt = np.linalg.svd(centred @ whitener, full_matrices=False)
        yield _Ridge(whitener, u, s, vt)


def learning_curve(
    known: Vectors, theirs: Vectors, *, seed: int = 0
) -> tuple[tuple[int, Score], ...]:
    """Fit maps on 10, 30, 100, … pairs; return each number with the cosine on held-out pairs.

    A fifth of the pairs is held out, and k others are drawn once. The interval of a score is over
    the held-out pairs, its n their number, its chance the cosine with the mean direction of the
    known vectors. Empty where fewer than 10 pairs are left to draw from.

    Parameters
    ----------
    known, theirs : ndarray of float32, shapes (n, d) and (n, d')
        Pairs of different texts.
    seed : int
        Of the held-out pairs and of the draw.
    """
    different = list(
        {unit_of_row: i for i, unit_of_row in enumerate(units_of_vectors(theirs))}.values()
    )
    order = np.random.default_rng(seed).permutation(different)
    test, rest = np.split(order, [len(order) // 5])
    if not len(test):
        return ()
    y = unit(known[test].astype(np.float64))
    chance = float((y @ unit(known[rest].astype(np.float64).mean(axis=0)[None])[0]).mean())
    curve = []
    for k in (size for size in CURVE_SIZES if size <= len(rest)):
        rows = np.random.default_rng([seed, k]).permutation(rest)[:k]
        found = fit_paired(known[rows], theirs[rows], seed=seed)
        cosines = (found.map.apply(theirs[test]).astype(np.float64) * y).sum(axis=1)
        interval = bootstrap_interval(cosines, bounds=(-1.0, 1.0), seed=seed)
        curve.append((k, Score(float(cosines.mean()), interval, len(test), chance)))
    return tuple(curve)
