"""Token-set scores of attacks (precision, recall, F1), with intervals.

Scores are percentages in [0, 100] averaged over samples, as Corò (2022, §4.3.2) defines them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import percent_interval
from leakscope.core.results import NO_INTERVAL, Interval, Score, Scores
from leakscope.core.text import words_with_digits
from leakscope.core.units import units_of


def token_set_scores(
    true: AbstractSet[str],
    answered: AbstractSet[str],
    weight: Callable[[str], float] = lambda _: 1.0,
) -> tuple[float, float, float]:
    """Compare one answered word set with the true one; return precision, recall and F1 in [0, 1].

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
    """Compute from word sets each word's inverse document frequency (Corò 2022, Eq. 4.8).

    Words that no target holds weigh log(|D|+1): look them up with that default.
    """
    counts = Counter(w for target in targets for w in target)
    n = len(targets)
    return {w: float(np.log((n + 1) / (c + 1))) for w, c in counts.items()}


def mean_over_seeds(scores: Sequence[Score], *, is_same_sample: bool = False) -> Score:
    """Average scores of runs that differ only in their seed; return a Score with an interval.

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
    >>> mean_over_seeds([Score(4.0, Interval(3.0, 6.0), 50, 1.0)]).format()
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


def simultaneous_intervals(
    runs: Sequence[Sequence[Score]], n_compared: int, *, is_same_sample: bool = False
) -> list[Interval]:
    """Return an interval of each setting's mean over seeds, Bonferroni-corrected for n compared.

    Bonferroni: each end is at 1 - 0.025 / n_compared, so that the upper end of a setting chosen as
    the least of `n_compared` still holds in 97.5 of 100, whatever the choice looked at and however
    the settings depend on each other. The variance between seeds, of which three runs of one
    setting tell little, is pooled: its ratio to the variance within a seed is taken to be the same
    for all `runs`, and Student's t has the degrees of freedom of all of them where it exceeds 1.
    No interval is narrower than that of `mean_over_seeds`.

    Parameters
    ----------
    runs : sequence of sequence of Score
        Scores over seeds, for each setting and attacker.
    n_compared : int
        Settings that are compared; attackers of one setting count once where the greatest of their
        upper ends is taken.
    is_same_sample : bool
        As of `mean_over_seeds`.

    Returns
    -------
    list of Interval
        One for each of `runs`; NO_INTERVAL where a score has none.

    Raises
    ------
    InvalidInputError
        Fewer than one comparison, or a setting without a score.

    Examples
    --------
    >>> one = [Score(20.0, Interval(18.04, 21.96), 100)]
    >>> [ends.format() for ends in simultaneous_intervals([one, one], 10)]
    ['17.2–22.8', '17.2–22.8']
    """
    if n_compared < 1:
        raise InvalidInputError(f"n_compared must be 1 or more, got {n_compared}.")
    tail = 0.025 / n_compared
    normal, usual = float(ndtri(1 - tail)), float(ndtri(0.975))
    ratios, freedom = [], 0
    for scores in runs:
        known, between = _variances(scores)
        if len(scores) > 1 and known > 0:
            ratios.append(between / known)
            freedom += len(scores) - 1
    ratio = float(np.mean(ratios)) if ratios else 0.0
    student = float(stdtrit(freedom, 1 - tail)) if freedom else normal
    found = []
    for scores in runs:
        mean = mean_over_seeds(scores, is_same_sample=is_same_sample)
        if not mean.has_interval:
            found.append(NO_INTERVAL)
            continue
        low, high = mean.value - mean.ci95.low, mean.ci95.high - mean.value
        if len(scores) == 1:
            low, high = (max(side, side * normal / usual) for side in (low, high))
        else:
            known, _ = _variances(scores)
            shared = ratio * known / len(scores)
            squared = normal**2 * known + student**2 * shared
            if not is_same_sample:
                squared = (student**2 * shared) if ratio > 1 else normal**2 * known / len(scores)
            low, high = (max(side, float(np.sqrt(squared))) for side in (low, high))
        found.append(Interval(mean.value - low, mean.value + high))
    return found


def _variances(scores: Sequence[Score]) -> tuple[float, float]:
    """Return the mean squared standard error within seeds, and the variance between seeds."""
    halves = np.array([(score.ci95.high - score.ci95.low) / 2 for score in scores])
    values = np.array([score.value for score in scores])
    between = float(values.var(ddof=1)) if len(scores) > 1 else 0.0
    return float(np.mean((halves / 1.96) ** 2)), between


def score_words(
    answers: Sequence[AbstractSet[str]],
    targets: Sequence[AbstractSet[str]],
    *,
    revealing: Sequence[AbstractSet[str]] | None = None,
    rare: AbstractSet[str] = frozenset(),
    weights: Mapping[str, float] | None = None,
    texts: Sequence[str] | None = None,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Scores:
    """Score answered word sets against true ones: mean precision, recall and F1 with intervals.

    Parameters
    ----------
    answers, targets : sequence of set of str
        One pair a sample; samples whose target is empty are left out of n.
    revealing : sequence of set of str, optional
        The names and numbers of each sample, scored by recall apart, and numbers once more.
    rare : set of str, optional
        Words of any sample, likewise.
    weights : mapping, optional
        α_w; by default `idf_weights` of the targets of distinct texts.
    texts : sequence of str, optional
        The text of each sample: intervals are of distinct texts, which copies do not narrow.
    groups : sequence, optional
        The document of each sample, where samples come in documents: intervals are of documents.
    seed : int
        Seed of the bootstrap.

    Raises
    ------
    InvalidInputError
        Unequal lengths, or no sample has a word to find.
    """
    if len(answers) != len(targets):
        raise InvalidInputError(f"{len(answers)} answers for {len(targets)} targets.")
    if groups is not None and len(groups) != len(targets):
        raise InvalidInputError(f"{len(groups)} groups for {len(targets)} targets.")
    if texts is not None and len(texts) != len(targets):
        raise InvalidInputError(f"{len(texts)} texts for {len(targets)} targets.")
    kept = [i for i, target in enumerate(targets) if target]
    if not kept:
        raise InvalidInputError(
            "No sample holds a word to find: the texts have stop words or unknown words only."
        )
    distinct: Sequence[Hashable] = kept if texts is None else units_of([texts[i] for i in kept])
    # Copies of a text make none of its words more frequent.
    first = list(dict(zip(distinct, kept, strict=True)).values())
    alpha = idf_weights([targets[i] for i in first]) if weights is None else weights
    unseen = float(np.log(len(first) + 1))
    plain = np.array([token_set_scores(targets[i], answers[i]) for i in kept]) * 100
    weighted = 100 * np.array(
        [token_set_scores(targets[i], answers[i], lambda w: alpha.get(w, unseen)) for i in kept]
    )
    own = None if groups is None else [groups[i] for i in kept]
    units: Sequence[Hashable] | None = own
    if texts is not None:
        units = units_of([texts[i] for i in kept], own)
    interval = partial(percent_interval, groups=units, seed=seed)
    return Scores(
        n=len(kept),
        n_documents=None if own is None else len(set(units or own)),
        n_distinct=None if texts is None else len(first),
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
        **_subset_recalls(answers, targets, revealing, rare),
    )


def _subset_recalls(
    answers: Sequence[AbstractSet[str]],
    targets: Sequence[AbstractSet[str]],
    revealing: Sequence[AbstractSet[str]] | None,
    rare: AbstractSet[str],
) -> dict[str, Any]:
    """Compute the recalls of names and numbers, of numbers only, and of rare words, by name."""
    revealing = [frozenset()] * len(targets) if revealing is None else revealing
    each = list(zip(revealing, targets, answers, strict=True))
    names = [(mine & target, answer) for mine, target, answer in each]
    numbers = [(words_with_digits(sought), answer) for sought, answer in names]
    rarely = [(target & rare, answer) for _, target, answer in each]
    n_names, name_recall = _pooled_recall(names)
    n_numbers, number_recall = _pooled_recall(numbers)
    n_rare, rare_recall = _pooled_recall(rarely)
    return {
        "n_names": n_names,
        "name_recall": name_recall,
        "n_numbers": n_numbers,
        "number_recall": number_recall,
        "n_rare": n_rare,
        "rare_recall": rare_recall,
    }


def _pooled_recall(pairs: Sequence[tuple[AbstractSet[str], AbstractSet[str]]]) -> tuple[int, float]:
    """Pool (sought, answered) word sets; return the number sought and the per cent recovered."""
    n = sum(len(sought) for sought, _ in pairs)
    n_found = sum(len(sought & answer) for sought, answer in pairs)
    return n, 100 * n_found / n if n else float("nan")
