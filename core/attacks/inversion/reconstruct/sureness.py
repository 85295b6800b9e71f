"""How sure answers were beside how many were right: the expected calibration error, with doubt."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.reconstruct.confidence import Answer, Confidence, right_words
from core.attacks.inversion.reconstruct.scores import spoken
from core.intervals import percent_interval
from core.rates import rate_by_document
from core.results import NO_INTERVAL, Interval, Recovery, Score, Sentence
from core.units import unit_rows

__all__ = ["calibration_error", "calibration_interval", "sentences_after", "sureness"]

_BINS = 10
_RESAMPLES = 2000


def calibration_error(
    told: Sequence[float], is_right: Sequence[bool] | NDArray[np.bool_], n_bins: int = _BINS
) -> float:
    """Return the expected calibration error, in points of a hundred; NaN of nothing.

    Implements Eq. 3 of Guo et al. (2017), "On Calibration of Modern Neural Networks": the mean
    distance of confidence and share of right ones over bins of equal width, each weighted by how
    many fall into it.
    Differs from the paper: nothing.

    Examples
    --------
    >>> calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
    0.0
    """
    p, right = np.asarray(told, dtype=np.float64), np.asarray(is_right, dtype=np.float64)
    if not len(p):
        return math.nan
    bins = _bins(p, n_bins)
    gaps = [abs(float((p - right)[bins == b].sum())) for b in np.unique(bins)]
    return 100 * sum(gaps) / len(p)


def _bins(told: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]:
    """Return which of so many bins of equal width each confidence falls into."""
    return np.minimum((told * n_bins).astype(np.int64), n_bins - 1)


def calibration_interval(
    told: Sequence[float],
    is_right: Sequence[bool] | NDArray[np.bool_],
    groups: Sequence[Hashable],
    *,
    seed: int = 0,
) -> Interval:
    """Return the 95 % interval of `calibration_error`, whole groups drawn together.

    Implements the basic bootstrap (Davison & Hinkley 1997, §5.2): 2θ less the quantiles of what
    draws give. A draw strays from its sample as the sample does from what it is of, upwards, since
    distances are added up without their sign; percentiles would count that twice.
    Differs from the book: no end lies beyond 0 and 100.

    Parameters
    ----------
    told : sequence of n float in [0, 1]
    is_right : sequence of n bool
    groups : sequence of n
        What each comes from: its sentence, or its document.
    seed : int
        Of the resampling.

    Returns
    -------
    Interval
        In points; NO_INTERVAL of a single group.
    """
    p, right = np.asarray(told, dtype=np.float64), np.asarray(is_right, dtype=np.float64)
    rows = unit_rows(groups, len(p))
    n_groups = int(rows.max()) + 1
    if n_groups < 2:
        return NO_INTERVAL
    gaps = np.zeros((n_groups, _BINS))
    np.add.at(gaps, (rows, _bins(p, _BINS)), p - right)
    sizes = np.bincount(rows).astype(np.float64)
    rng = np.random.default_rng(seed)
    times = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=_RESAMPLES)
    drawn = 100 * np.abs(times @ gaps).sum(axis=1) / (times @ sizes)
    error = calibration_error(told, is_right)
    low, high = 2 * error - np.quantile(drawn, [0.975, 0.025])
    low, high = min(low, error), max(high, error)  # draws stray upwards, so that both may be below
    return Interval(max(0.0, float(low)), min(100.0, float(high)))


def sentences_after(
    answers: Sequence[Recovery],
    beliefs: Sequence[Mapping[str, float]],
    n_queries: int,
    confidence: Confidence | None,
) -> list[Sentence | None]:
    """Return what stood in each answer after so many queries, with how sure that was.

    Parameters
    ----------
    answers : sequence of n Recovery
    beliefs : sequence of n mappings
        What the classifier underneath read, with P(word).
    """
    found: list[Sentence | None] = []
    for answer, believed in zip(answers, beliefs, strict=True):
        sentence = answer.sentence
        if sentence is not None:
            last = sentence.after(n_queries)
            sentence = replace(sentence, text=last.text, cosine=last.cosine)
            if confidence is not None:
                sentence = confidence.told(sentence, Answer(last, believed))
        found.append(sentence)
    return found


def sureness(
    true: Sequence[str],
    answers: Sequence[Sentence | None],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> dict[str, Score]:
    """Return, in per cent, how sure answers were, how many right, and the calibration error.

    Of words and of whole sentences; nothing of no answers, or where they tell no confidence.
    Intervals are of whole sentences, or of the units in `groups`.
    """
    told: dict[str, list[float]] = {"words": [], "sentences": []}
    right: dict[str, list[bool]] = {"words": [], "sentences": []}
    of: dict[str, list[Hashable]] = {"words": [], "sentences": []}
    units = range(len(true)) if groups is None else groups
    for text, found, unit in zip(true, answers or [None] * len(true), units, strict=True):
        if found is None or not found.words:
            continue
        told["words"] += [word.score for word in found.words]
        right["words"] += right_words(text, found.text).tolist()
        of["words"] += [("words of", unit)] * len(found.words)  # they differ: no copies of a text
        told["sentences"].append(found.confidence)
        right["sentences"].append(spoken(text) == spoken(found.text))
        of["sentences"].append(unit)
    scores = {}
    for part, n in ((part, len(each)) for part, each in told.items() if each):
        error = calibration_error(told[part], right[part])
        interval = calibration_interval(told[part], right[part], of[part], seed=seed)
        scores[f"calibration_{part}"] = Score(error, interval, n)
        scores[f"told_{part}"] = _mean(told[part], of[part], seed)
        if part == "words":
            scores["right_words"] = _mean(right[part], of[part], seed)
        else:
            hits = np.array(right[part])
            scores["right_sentences"] = rate_by_document(hits, of[part], seed=seed)
    return scores


def _mean(each: Sequence[float], groups: Sequence[Hashable], seed: int) -> Score:
    values = 100 * np.array(each, dtype=np.float64)
    return Score(
        float(values.mean()), percent_interval(values, groups=groups, seed=seed), len(each)
    )
