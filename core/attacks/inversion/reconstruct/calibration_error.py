"""The expected calibration error of reconstruction confidences, with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.reconstruct.confidence import Answer, Confidence, right_words
from leakscope.core.attacks.inversion.reconstruct.scores import word_tokens
from leakscope.core.intervals import percent_interval, rate_by_document
from leakscope.core.results import NO_INTERVAL, Interval, Recovery, Score, Sentence
from leakscope.core.units import cluster_ids

_BINS = 10
_RESAMPLES = 2000


def calibration_error(
    confidences: Sequence[float], is_right: Sequence[bool] | NDArray[np.bool_], n_bins: int = _BINS
) -> float:
    """Return the expected calibration error of confidences, in percentage points; NaN if empty.

    Implements Eq. 3 of Guo et al. (2017), "On Calibration of Modern Neural Networks": the mean
    distance of confidence and share of right ones over bins of equal width, each weighted by how
    many fall into it.
    Differs from the paper: nothing.

    Examples
    --------
    >>> calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
    0.0
    """
    p, right = np.asarray(confidences, dtype=np.float64), np.asarray(is_right, dtype=np.float64)
    if not len(p):
        return math.nan
    bins = _bins(p, n_bins)
    gaps = [abs(float((p - right)[bins == b].sum())) for b in np.unique(bins)]
    return 100 * sum(gaps) / len(p)


def _bins(confidences: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]:
    """Return the equal-width bin of each confidence in [0, 1]."""
    return np.minimum((confidences * n_bins).astype(np.int64), n_bins - 1)


def calibration_interval(
    confidences: Sequence[float],
    is_right: Sequence[bool] | NDArray[np.bool_],
    groups: Sequence[Hashable],
    *,
    seed: int = 0,
) -> Interval:
    """Return the 95 % interval of `calibration_error` by a bootstrap of groups.

    Implements the basic bootstrap (Davison & Hinkley 1997, §5.2): 2θ less the quantiles of what
    draws give. A draw deviates upwards from its sample, as the sample does from the population,
    since absolute distances are added up; percentiles would count that twice.
    Differs from the book: no end lies beyond 0 and 100.

    Parameters
    ----------
    confidences : sequence of n float in [0, 1]
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
    p, right = np.asarray(confidences, dtype=np.float64), np.asarray(is_right, dtype=np.float64)
    rows = cluster_ids(groups, len(p))
    n_groups = int(rows.max()) + 1
    if n_groups < 2:
        return NO_INTERVAL
    gaps = np.zeros((n_groups, _BINS))
    np.add.at(gaps, (rows, _bins(p, _BINS)), p - right)
    sizes = np.bincount(rows).astype(np.float64)
    rng = np.random.default_rng(seed)
    times = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=_RESAMPLES)
    drawn = 100 * np.abs(times @ gaps).sum(axis=1) / (times @ sizes)
    error = calibration_error(confidences, is_right)
    low, high = 2 * error - np.quantile(drawn, [0.975, 0.025])
    low, high = (
        min(low, error),
        max(high, error),
    )  # bootstrap samples are biased upwards, so both may be below
    return Interval(max(0.0, float(low)), min(100.0, float(high)))


def sentences_after(
    answers: Sequence[Recovery],
    beliefs: Sequence[Mapping[str, float]],
    n_queries: int,
    confidence: Confidence | None,
) -> list[Sentence | None]:
    """Return each answer's best sentence after a number of queries, with its confidence.

    Parameters
    ----------
    answers : sequence of n Recovery
    beliefs : sequence of n mappings
        The word classifier's probabilities, by word.
    """
    found: list[Sentence | None] = []
    for answer, believed in zip(answers, beliefs, strict=True):
        sentence = answer.sentence
        if sentence is not None:
            last = sentence.after(n_queries)
            sentence = replace(sentence, text=last.text, cosine=last.cosine)
            if confidence is not None:
                sentence = confidence.annotate(sentence, Answer(last, believed))
        found.append(sentence)
    return found


def calibration_scores(
    true: Sequence[str],
    answers: Sequence[Sentence | None],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> dict[str, Score]:
    """Score confidences: mean confidence, share right and calibration error, in per cent.

    For words and for whole sentences; empty without answers, or where they have no confidence.
    Intervals are of whole sentences, or of the units in `groups`.
    """
    confidences: dict[str, list[float]] = {"words": [], "sentences": []}
    right: dict[str, list[bool]] = {"words": [], "sentences": []}
    of: dict[str, list[Hashable]] = {"words": [], "sentences": []}
    units = range(len(true)) if groups is None else groups
    for text, found, unit in zip(true, answers or [None] * len(true), units, strict=True):
        if found is None or not found.words:
            continue
        confidences["words"] += [word.score for word in found.words]
        right["words"] += right_words(text, found.text).tolist()
        of["words"] += [("words of", unit)] * len(
            found.words
        )  # they differ, so they are not copies of a text
        confidences["sentences"].append(found.confidence)
        right["sentences"].append(word_tokens(text) == word_tokens(found.text))
        of["sentences"].append(unit)
    scores = {}
    for part, n in ((part, len(each)) for part, each in confidences.items() if each):
        error = calibration_error(confidences[part], right[part])
        interval = calibration_interval(confidences[part], right[part], of[part], seed=seed)
        scores[f"calibration_{part}"] = Score(error, interval, n)
        scores[f"told_{part}"] = _mean_percent(confidences[part], of[part], seed)
        if part == "words":
            scores["right_words"] = _mean_percent(right[part], of[part], seed)
        else:
            hits = np.array(right[part])
            scores["right_sentences"] = rate_by_document(hits, of[part], seed=seed)
    return scores


def _mean_percent(each: Sequence[float], groups: Sequence[Hashable], seed: int) -> Score:
    """Return the mean of fractions in per cent, with a bootstrap interval over groups."""
    values = 100 * np.array(each, dtype=np.float64)
    return Score(
        float(values.mean()), percent_interval(values, groups=groups, seed=seed), len(each)
    )
