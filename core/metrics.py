"""Token-set scores with intervals: pure sets and arrays in, numbers out.

Scores are percentages in [0, 100] averaged over samples, as Corò (2022, §4.3.2) defines them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from core.errors import InvalidInputError
from core.results import NO_INTERVAL, Interval, Score, Scores
from core.text import numbers_of
from core.units import unit_rows

__all__ = [
    "bootstrap_interval",
    "idf_weights",
    "mean_over_seeds",
    "percent_interval",
    "ratio_interval",
    "score_words",
    "student_interval",
    "token_set_scores",
    "wilson_interval",
]


def token_set_scores(
    true: AbstractSet[str],
    answered: AbstractSet[str],
    weight: Callable[[str], float] = lambda _: 1.0,
) -> tuple[float, float, float]:
    """Return (precision, recall, F1) of one answer, each in [0, 1].

    Implements Eq. 4.6 of Corò (2022) and, with weights, Eq. 4.7: sums of α_w over the words
    answered correctly, over those answered (precision) and over those true (recall).
    Differs from the paper: an empty answer has precision 0 (the paper leaves 0/0 undefined).

    Examples
    --------
    >>> token_set_scores({"a", "b", "c", "d"}, {"a", "b", "x"})
    (0.6666666666666666, 0.5, 0.5714285714285715)
    """
    hit = sum(weight(w) for w in true & answered)
    said = sum(weight(w) for w in answered)
    held = sum(weight(w) for w in true)
    precision = hit / said if said else 0.0
    recall = hit / held if held else 0.0
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0


def idf_weights(targets: Sequence[AbstractSet[str]]) -> dict[str, float]:
    """Return α_w = log((|D|+1)/(c(w)+1)) of every word of the targets (Corò 2022, Eq. 4.8).

    Words that no target holds weigh log(|D|+1): look them up with that default.
    """
    counts = Counter(w for target in targets for w in target)
    n = len(targets)
    return {w: float(np.log((n + 1) / (c + 1))) for w, c in counts.items()}


def bootstrap_interval(
    values: NDArray[np.float64],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Return the percentile bootstrap interval of the mean of independent samples.

    Implements the bootstrap of clusters (Davison & Hinkley 1997, §3.8, strategy 1) where samples
    come in groups: whole groups are drawn, and the mean is that of all samples in them.
    Differs from the book: the bootstrap of few groups is too narrow, so that its ends stand
    t_{G-1} / z · √(G / (G - 1)) times as far from the mean (Cameron, Gelbach & Miller 2008, §II.C).

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    groups : sequence, optional
        Of each sample, what it comes from: samples of one group are not independent. Every sample
        is one of its own where it is left out.
    seed : int
        Of the resampling.

    Returns
    -------
    Interval
        NO_INTERVAL where several samples are all of one group: nothing tells how groups differ.
    """
    return ratio_interval(
        values,
        np.ones(len(values)),
        groups=groups,
        seed=seed,
        n_resamples=n_resamples,
        level=level,
    )


def ratio_interval(
    values: NDArray[np.float64],
    over: NDArray[np.float64],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Return the interval of Σ values / Σ over, of the same samples: both are drawn together.

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
        NO_INTERVAL where several samples are all of one group, or no draw has a sum above 0.
    """
    if len(values) == 0:
        raise InvalidInputError("A bootstrap interval needs at least one sample, got none.")
    if len(over) != len(values):
        raise InvalidInputError(f"A ratio of {len(values)} samples to {len(over)} is not paired.")
    sums, below = _by_group(values, groups), _by_group(over, groups)
    if len(sums) == 1 < len(values):
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
    ends = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    if len(sums) < len(values) and over.sum() > 0:
        centre = values.sum() / over.sum()
        ends = centre + (ends - centre) * _widening(len(sums), level)
    return Interval(float(ends[0]), float(ends[1]), level)


def percent_interval(
    values: NDArray[np.float64], *, groups: Sequence[Hashable] | None = None, seed: int = 0
) -> Interval:
    """Return `bootstrap_interval` of per cent, within [0, 100]; all of it for a single group."""
    found = bootstrap_interval(values, groups=groups, seed=seed)
    if math.isnan(found.low):  # all of one document: it may be anything
        return Interval(0.0, 100.0, found.level)
    return Interval(max(0.0, found.low), min(100.0, found.high), found.level)


def student_interval(
    values: NDArray[np.float64], *, low: float = -math.inf, high: float = math.inf
) -> Interval:
    """Return Student's 95 % interval of the mean of a few independent samples, cut at its bounds.

    The bootstrap of so few is too narrow: of 8 it holds a normal mean in 87 of 100 cases.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    low, high : float
        What no mean can lie beyond.

    Returns
    -------
    Interval
        NO_INTERVAL for a single sample.

    Examples
    --------
    >>> round(student_interval(np.array([1.0, 2.0, 3.0])).high, 3)
    4.484
    """
    n = len(values)
    if n < 2:
        return NO_INTERVAL
    half = float(stdtrit(n - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(n)
    mean = float(values.mean())
    return Interval(max(low, mean - half), min(high, mean + half))


def _widening(n_groups: int, level: float) -> float:
    """Return how much farther from the mean the ends of an interval of so many groups stand."""
    quantile = (1 + level) / 2
    narrow = np.sqrt(n_groups / (n_groups - 1)) / ndtri(quantile)
    return float(stdtrit(n_groups - 1, quantile) * narrow)


def _by_group(
    values: NDArray[np.float64], groups: Sequence[Hashable] | None
) -> NDArray[np.float64]:
    """Return the sum of the values of each group."""
    if groups is None:
        return values
    if len(groups) != len(values):
        raise InvalidInputError(f"{len(groups)} groups for {len(values)} samples.")
    rows = unit_rows(groups, len(values))
    return np.bincount(rows, weights=values).astype(np.float64)


def wilson_interval(found: int, n: int, *, level: float = 0.95) -> Interval:
    """Return Wilson's score interval of a share of n independent trials, in [0, 100].

    All of [0, 100] where there was no trial.
    """
    if not n:
        return Interval(0.0, 100.0, level)
    from scipy.stats import binomtest  # loading it takes a third of a second

    bounds = binomtest(found, n).proportion_ci(level, method="wilson")
    return Interval(100 * float(bounds.low), 100 * float(bounds.high), level)


def mean_over_seeds(scores: Sequence[Score], *, is_same_sample: bool = False) -> Score:
    """Average the scores of runs that differ in their seed alone.

    The squared standard error is the greater of the mean squared error within seeds and the
    variance between them, over their number; where the latter decides, Student's t stands in for
    1.96, since few values tell little of it. The interval of a single seed stays as it is.

    Parameters
    ----------
    is_same_sample : bool
        Whether all were tested on the same samples, or draws of one pool, so that their errors do
        not average out: the mean within seeds, and the variance between them over their number.

    Raises
    ------
    InvalidInputError
        No score.

    Examples
    --------
    >>> mean_over_seeds([Score(4.0, Interval(3.0, 6.0), 50, 1.0)]).said()
    '4.0 [3.0, 6.0]'
    """
    if not scores:
        raise InvalidInputError("A mean over seeds needs at least one score, got none.")
    if len(scores) == 1:
        return scores[0]
    values = np.array([score.value for score in scores])
    mean, chance = float(values.mean()), float(np.mean([score.chance for score in scores]))
    n = sum(score.n for score in scores)
    widths = np.array([score.ci95.high - score.ci95.low for score in scores])
    known, between = float(np.mean((widths / 2) ** 2)), float(values.var(ddof=1))
    estimated = float(stdtrit(len(values) - 1, 0.975)) ** 2 * between / len(values)
    if is_same_sample:
        n, squared = scores[0].n, known + estimated
    else:
        squared = estimated if between > known / 1.96**2 else known / len(values)
    half = float(np.sqrt(squared))
    return Score(mean, Interval(mean - half, mean + half), n, chance, len(scores))


def score_words(
    answers: Sequence[AbstractSet[str]],
    targets: Sequence[AbstractSet[str]],
    *,
    revealing: Sequence[AbstractSet[str]] | None = None,
    rare: AbstractSet[str] = frozenset(),
    weights: Mapping[str, float] | None = None,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Scores:
    """Score the answers of an attack against the true word sets.

    Parameters
    ----------
    answers, targets : sequence of set of str
        One pair a sample; samples whose target is empty are left out of n.
    revealing : sequence of set of str, optional
        The names and numbers of each sample, scored by recall apart, and numbers once more.
    rare : set of str, optional
        Words of any sample, likewise.
    weights : mapping, optional
        α_w; by default `idf_weights(targets)`.
    groups : sequence, optional
        The document of each sample, where samples come in documents: intervals are of documents.
    seed : int
        Of the bootstrap.

    Raises
    ------
    InvalidInputError
        Unequal lengths, or no sample has a word to find.
    """
    if len(answers) != len(targets):
        raise InvalidInputError(f"{len(answers)} answers for {len(targets)} targets.")
    if groups is not None and len(groups) != len(targets):
        raise InvalidInputError(f"{len(groups)} groups for {len(targets)} targets.")
    kept = [i for i, target in enumerate(targets) if target]
    if not kept:
        raise InvalidInputError(
            "No sample holds a word to find: the texts have stop words or unknown words only."
        )
    alpha = idf_weights([targets[i] for i in kept]) if weights is None else weights
    unseen = float(np.log(len(kept) + 1))
    plain = np.array([token_set_scores(targets[i], answers[i]) for i in kept]) * 100
    weighted = 100 * np.array(
        [token_set_scores(targets[i], answers[i], lambda w: alpha.get(w, unseen)) for i in kept]
    )
    units = None if groups is None else [groups[i] for i in kept]

    interval = partial(percent_interval, groups=units, seed=seed)
    return Scores(
        n=len(kept),
        n_documents=None if units is None else len(set(units)),
        precision=float(plain[:, 0].mean()),
        precision_ci95=interval(plain[:, 0]),
        recall=float(plain[:, 1].mean()),
        recall_ci95=interval(plain[:, 1]),
        token_set_f1=float(plain[:, 2].mean()),
        token_set_f1_ci95=interval(plain[:, 2]),
        weighted_precision=float(weighted[:, 0].mean()),
        weighted_recall=float(weighted[:, 1].mean()),
        weighted_f1=float(weighted[:, 2].mean()),
        weighted_f1_ci95=interval(weighted[:, 2]),
        exact_set_rate=100 * float(np.mean([targets[i] == answers[i] for i in kept])),
        mean_words_true=float(np.mean([len(targets[i]) for i in kept])),
        mean_words_answered=float(np.mean([len(answers[i]) for i in kept])),
        **_apart(answers, targets, revealing, rare),
    )


def _apart(
    answers: Sequence[AbstractSet[str]],
    targets: Sequence[AbstractSet[str]],
    revealing: Sequence[AbstractSet[str]] | None,
    rare: AbstractSet[str],
) -> dict[str, Any]:
    """Return the recall of names and numbers, of numbers alone, and of rare words."""
    revealing = [frozenset()] * len(targets) if revealing is None else revealing
    each = list(zip(revealing, targets, answers, strict=True))
    names = [(mine & target, answer) for mine, target, answer in each]
    numbers = [(numbers_of(sought), answer) for sought, answer in names]
    rarely = [(target & rare, answer) for _, target, answer in each]
    n_names, name_recall = _recall_of(names)
    n_numbers, number_recall = _recall_of(numbers)
    n_rare, rare_recall = _recall_of(rarely)
    return {
        "n_names": n_names,
        "name_recall": name_recall,
        "n_numbers": n_numbers,
        "number_recall": number_recall,
        "n_rare": n_rare,
        "rare_recall": rare_recall,
    }


def _recall_of(pairs: Sequence[tuple[AbstractSet[str], AbstractSet[str]]]) -> tuple[int, float]:
    """Return how many words there are to find, and the per cent found: of all together."""
    n = sum(len(sought) for sought, _ in pairs)
    n_found = sum(len(sought & answer) for sought, answer in pairs)
    return n, 100 * n_found / n if n else float("nan")
