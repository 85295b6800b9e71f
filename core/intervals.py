"""Confidence intervals of means, shares and ratios, and shares of trials with their interval."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from leakscope.core.errors import InvalidInputError
from leakscope.core.results import NO_INTERVAL, Interval, Score
from leakscope.core.units import TextUnit, cluster_ids, effective_size


def clopper_pearson(found: int, n: int, *, level: float = 0.95) -> Interval:
    """Return the exact (Clopper–Pearson) interval, in [0, 1], of `found` successes in n trials.

    Clopper & Pearson (1934): the ends are quantiles of Beta(k, n − k + 1) and Beta(k + 1, n − k).

    Examples
    --------
    >>> clopper_pearson(0, 10).format(3)
    '0.000–0.308'
    """
    if not 0 <= found <= n:
        raise InvalidInputError(f"A share must be of at least as many trials, got {found} of {n}.")
    tail = (1 - level) / 2
    low = float(betaincinv(found, n - found + 1, tail)) if found else 0.0
    high = float(betaincinv(found + 1, n - found, 1 - tail)) if found < n else 1.0
    return Interval(low, high, level)


def bootstrap_interval(
    values: NDArray[np.float64],
    *,
    groups: Sequence[Hashable] | None = None,
    bounds: tuple[float, float] | None = None,
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Return the percentile bootstrap interval of the mean of independent samples.

    Implements the bootstrap of clusters (Davison & Hinkley 1997, §3.8, strategy 1) where samples
    come in groups: whole groups are drawn, and the mean is that of all samples in them.
    Differs from the book: the bootstrap of few groups is too narrow, so that its ends stand
    t_{G-1} / z · √(G / (G - 1)) times as far from the mean (Cameron, Gelbach & Miller 2008, §II.C);
    copies of a text (`leakscope.core.units.units_of`) are one sample, and give the interval of that
    sample.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    groups : sequence, optional
        The unit of each sample: samples of one unit are not independent. By default every sample is
        a unit of its own.
    bounds : (float, float), optional
        The least and the greatest value that a sample can have. No end lies beyond them, and where
        all samples are equal the interval is that of `constant_interval`.
    seed : int
        Seed of the resampling.

    Returns
    -------
    Interval
        NO_INTERVAL for a single unit: nothing shows how units differ.
    """
    found = ratio_interval(
        values,
        np.ones(len(values)),
        groups=groups,
        seed=seed,
        n_resamples=n_resamples,
        level=level,
    )
    if bounds is None or math.isnan(found.low):
        return found
    least, greatest = bounds
    if values.min() == values.max():
        n = len(values) if groups is None else len(set(groups))
        return constant_interval(float(values[0]), n, least, greatest, level=level)
    return Interval(max(least, found.low), min(greatest, found.high), level)


def ratio_interval(
    values: NDArray[np.float64],
    over: NDArray[np.float64],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Return the bootstrap interval of Σ values / Σ over, resampling the samples of both together.

    As `bootstrap_interval`, which is that of the ratio to as many ones; draws in which the sum
    below is not above 0 are left out.

    Parameters
    ----------
    values, over : ndarray of float64, shape (n,)
    groups, seed, n_resamples, level
        As of `bootstrap_interval`.

    Returns
    -------
    Interval
        NO_INTERVAL for a single unit, or where no draw has a sum above 0.
    """
    if len(values) == 0:
        raise InvalidInputError("A bootstrap interval needs at least one sample, got none.")
    if len(over) != len(values):
        raise InvalidInputError(f"A ratio of {len(values)} samples to {len(over)} is not paired.")
    sums, below = _group_sums(values, groups), _group_sums(over, groups)
    if len(sums) == 1:
        return NO_INTERVAL
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(max(1, n_resamples // 100)):
        drawn = rng.integers(len(sums), size=(100, len(sums)))
        top, bottom = sums[drawn].sum(1), below[drawn].sum(1)
        ratios.append(top[bottom > 0] / bottom[bottom > 0])
    found = np.concatenate(ratios)
    if not len(found):
        return NO_INTERVAL
    ends = _percentiles(found, level)
    if over.sum() > 0:
        centre = values.sum() / over.sum()
        if len(sums) < len(values) and not _are_copies(groups):
            ends = centre + (ends - centre) * _few_groups_factor(len(sums), level)
        ends = np.array([min(ends[0], centre), max(ends[1], centre)])  # few draws may miss it
    return Interval(float(ends[0]), float(ends[1]), level)


def percent_interval(
    values: NDArray[np.float64], *, groups: Sequence[Hashable] | None = None, seed: int = 0
) -> Interval:
    """Return the bootstrap interval of the mean of per-sample percentages, within [0, 100]."""
    return bootstrap_interval(values, groups=groups, bounds=(0.0, 100.0), seed=seed)


def balanced_interval(
    hits: NDArray[np.float64],
    labels: NDArray[np.intp],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Return the bootstrap interval of balanced accuracy, from each sample's hit and label.

    As `bootstrap_interval`, but units are drawn among those of the same labels, so that no label
    loses its last unit. Where all samples are hits, or none is, it is `constant_interval` for as
    many units as the rarest label has.

    Parameters
    ----------
    hits : ndarray of float64, shape (n,)
        0 or 1.
    labels : ndarray of int, shape (n,)
        The label of each, from 0 on without a gap.
    groups, seed, n_resamples, level
        As of `bootstrap_interval`.

    Returns
    -------
    Interval
        In [0, 1]; NO_INTERVAL where a label has a single unit, or where no draw differs, since
        each label is found always or never.
    """
    rows = cluster_ids(groups, len(hits))
    n_units, n_labels = int(rows.max()) + 1, int(labels.max()) + 1
    found, held = np.zeros((2, n_units, n_labels))
    np.add.at(found, (rows, labels), hits)
    np.add.at(held, (rows, labels), 1.0)
    n_fewest = int((held > 0).sum(0).min())
    if n_fewest < 2:
        return NO_INTERVAL
    if hits.min() == hits.max():
        return constant_interval(float(hits[0]), n_fewest, 0.0, 1.0, level=level)
    kinds = np.unique(held > 0, axis=0, return_inverse=True)[1].ravel()
    strata = [np.flatnonzero(kinds == kind) for kind in range(int(kinds.max()) + 1)]
    rng = np.random.default_rng(seed)
    means = []
    for _ in range(max(1, n_resamples // 100)):
        weights = np.zeros((100, n_units))
        for units in strata:
            share = np.full(len(units), 1 / len(units))
            weights[:, units] = rng.multinomial(len(units), share, 100)
        with np.errstate(invalid="ignore"):
            means.append(np.nanmean((weights @ found) / (weights @ held), axis=1))
    value = float(np.mean(found.sum(0) / held.sum(0)))
    ends = _percentiles(np.concatenate(means), level)
    if ends[0] == ends[1]:
        return NO_INTERVAL
    ends = value + (ends - value) * _few_groups_factor(n_fewest, level)
    return Interval(max(0.0, min(ends[0], value)), min(1.0, max(ends[1], value)), level)


def constant_interval(
    value: float, n: int, low: float, high: float, *, level: float = 0.95
) -> Interval:
    """Return the interval of a bounded mean when all n samples have the same value.

    No resample of equal samples varies. But with probability above (1 - level) / 2 all n are equal
    only where at least a share p = ((1 - level) / 2)^(1/n) of what they are drawn from is so; the
    rest may lie at either bound. At a bound this is the interval of Clopper & Pearson (1934).

    Returns
    -------
    Interval
        NO_INTERVAL for a single sample, or where a bound is infinite.

    Examples
    --------
    >>> constant_interval(100.0, 10, 0.0, 100.0).format()
    '69.2–100.0'
    """
    if n < 2 or math.isinf(low) or math.isinf(high):
        return NO_INTERVAL
    share = ((1 - level) / 2) ** (1 / n)
    return Interval(low + share * (value - low), high - share * (high - value), level)


def student_interval(
    values: NDArray[np.float64], *, low: float = -math.inf, high: float = math.inf
) -> Interval:
    """Return Student's 95 % interval of the mean of a few samples, clipped to [low, high].

    The bootstrap of so few is too narrow: of 8 it holds a normal mean in 87 of 100 cases.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    low, high : float
        What no mean can lie beyond.

    Returns
    -------
    Interval
        NO_INTERVAL for a single sample; `constant_interval` where all are equal.

    Examples
    --------
    >>> round(student_interval(np.array([1.0, 2.0, 3.0])).high, 3)
    4.484
    """
    n = len(values)
    if n < 2:
        return NO_INTERVAL
    if values.min() == values.max():
        return constant_interval(float(values[0]), n, low, high)
    half = float(stdtrit(n - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(n)
    mean = float(values.mean())
    return Interval(max(low, mean - half), min(high, mean + half))


def _percentiles(found: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """Return the two percentiles that enclose the central `level` share of bootstrap draws."""
    ends: NDArray[np.float64] = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return ends


def _are_copies(groups: Sequence[Hashable] | None) -> bool:
    """Return whether each group is a `TextUnit`: its samples are copies of one text."""
    return groups is not None and all(isinstance(unit, TextUnit) for unit in groups)


def _few_groups_factor(n_groups: int, level: float) -> float:
    """Return the factor by which an interval from n_groups groups is widened (Student's t)."""
    quantile = (1 + level) / 2
    narrow = np.sqrt(n_groups / (n_groups - 1)) / ndtri(quantile)
    return float(stdtrit(n_groups - 1, quantile) * narrow)


def _group_sums(
    values: NDArray[np.float64], groups: Sequence[Hashable] | None
) -> NDArray[np.float64]:
    """Return the sum of the samples' values in each group; the values themselves without groups."""
    if groups is None:
        return values
    if len(groups) != len(values):
        raise InvalidInputError(f"{len(groups)} groups for {len(values)} samples.")
    rows = cluster_ids(groups, len(values))
    return np.bincount(rows, weights=values).astype(np.float64)


def wilson_interval(found: float, n: float, *, level: float = 0.95) -> Interval:
    """Return Wilson's interval, in per cent, of `found` successes in n independent trials.

    Parameters
    ----------
    found, n : float
        Successes and trials; not whole where n is an effective size
        (`rate_by_document`).

    Returns
    -------
    Interval
        All of [0, 100] where there was no trial.

    Examples
    --------
    >>> wilson_interval(8, 10).format()
    '49.0–94.3'
    """
    if not n:
        return Interval(0.0, 100.0, level)
    z = float(ndtri((1 + level) / 2))
    share, below = found / n, 2 * (n + z**2)
    centre = (2 * n * share + z**2) / below
    half = z / below * math.sqrt(4 * n * share * (1 - share) + z**2)
    low, high = 0.0 if found == 0 else centre - half, 1.0 if found == n else centre + half
    return Interval(100 * low, 100 * high, level)


def rate_of(found: int, n: int) -> Score:
    """Return `found` successes in n independent trials as a Score: per cent and Wilson interval.

    With Wilson's interval. With no trial, value and interval are NaN and [0, 100].
    """
    return Score(100 * found / n if n else float("nan"), wilson_interval(found, n), n)


def rate_by_document(
    hits: NDArray[np.bool_], documents: Sequence[Hashable] | None, *, seed: int = 0
) -> Score:
    """Return the share of hits as a Score in per cent; its interval resamples whole documents.

    Parameters
    ----------
    hits : ndarray of bool, shape (n,)
    documents : sequence of n, optional
        The unit of each trial, such as `leakscope.core.units.units_of` returns. Where units hold
        several trials, whole units are resampled; else the interval is Wilson's. Copies of a text
        count as `leakscope.core.units.effective_size` says in Wilson's interval.
    """
    if documents is None or len(set(documents)) == len(documents):
        return rate_of(int(hits.sum()), len(hits))
    if all(isinstance(unit, TextUnit) for unit in documents):
        share, n = float(hits.mean()), effective_size(documents)
        return Score(100 * share, wilson_interval(share * n, n), len(hits))
    return mean_rate(hits.astype(np.float64), documents=documents, seed=seed)


def mean_rate(
    shares: NDArray[np.float64],
    *,
    documents: Sequence[Hashable] | None = None,
    n_trials: int | None = None,
    seed: int = 0,
) -> Score:
    """Return the mean of per-sample shares in [0, 1] as a Score in per cent, by bootstrap.

    Trials within a sample depend on each other, so the samples are resampled (bootstrap), and by
    whole documents where these are given; n counts samples. NaN shares, of samples without a
    trial, are left out. Where all shares are 0, or all are 1, resampling knows no doubt: Wilson's
    interval for as many trials as there are documents, or samples, stands in. One document with
    several samples has no interval.
    """
    is_kept = ~np.isnan(shares)
    kept = 100 * shares[is_kept]
    if not len(kept):
        return rate_of(0, 0)
    units = (
        None
        if documents is None
        else [one for one, is_there in zip(documents, is_kept, strict=True) if is_there]
    )
    n_units = len(kept) if units is None else len(set(units))
    if n_units > 1 and kept.min() == kept.max() and kept[0] in (0, 100):
        alike = rate_of(n_units if kept[0] else 0, n_units)
        return replace(alike, n=len(kept), n_trials=n_trials)
    interval = NO_INTERVAL if n_units == 1 else percent_interval(kept, groups=units, seed=seed)
    return Score(float(kept.mean()), interval, len(kept), n_trials=n_trials)
