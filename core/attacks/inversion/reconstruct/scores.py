"""How near a sentence that was read comes to the true one: words, order, and all of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.reconstruct.tokens import tokens_of
from core.intervals import bootstrap_interval
from core.rates import rate_by_document
from core.results import Score

__all__ = ["MEASURES", "order_of", "rouge_l", "score_sentence", "score_sentences", "spoken"]

MEASURES = {
    "rouge_l": "ROUGE-L",
    "bleu_2": "BLEU-2",
    "bleu_4": "BLEU-4",
    "exact": "exact match",
    "token_f1": "token F1",
    "kendall_tau": "Kendall's τ",
}
"""What is measured of a sentence; all in per cent."""


def spoken(text: str) -> list[str]:
    """Return the tokens of a text but its marks: what is heard when it is read aloud.

    Examples
    --------
    >>> spoken("Ada's cats, 2 of them.")
    ['ada', "'s", 'cats', '2', 'of', 'them']
    """
    return [token for token in tokens_of(text) if any(c.isalnum() for c in token)]


class _Spoken:
    """Cuts texts for rouge-score, whose own way knows the letters a to z alone."""

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        return spoken(text)


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=_Spoken())


@cache
def _bleu(order: int) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(lowercase=True, max_ngram_order=order, effective_order=True)


def rouge_l(true: str, read: str) -> float:
    """Return the F-measure of rouge-score over words without marks, in [0, 100].

    Examples
    --------
    >>> rouge_l("The cat sat.", "the cat sat")
    100.0
    """
    return 100 * float(_rouge().score(true, read)["rougeL"].fmeasure)


def score_sentence(true: str, read: str) -> dict[str, float]:
    """Return every measure of one sentence, in [0, 100]; τ in [-100, 100] or NaN.

    ROUGE-L is that of `rouge_l`, BLEU-n that of sacrebleu
    (its own cut, lower-cased, effective order), exact match that of words without marks, token F1
    that of words with their repetitions, τ that of `order_of`.
    """
    a, b = spoken(true), spoken(read)
    n_common = sum((Counter(a) & Counter(b)).values())
    return {
        "rouge_l": rouge_l(true, read),
        "bleu_2": float(_bleu(2).sentence_score(read, [true]).score),
        "bleu_4": float(_bleu(4).sentence_score(read, [true]).score),
        "exact": 100.0 * (a == b),
        "token_f1": 200 * n_common / max(len(a) + len(b), 1),
        "kendall_tau": 100 * order_of(a, b),
    }


def order_of(true: Sequence[str], read: Sequence[str]) -> float:
    """Return Kendall's τ of the words that stand once in both; NaN for fewer than two.

    Examples
    --------
    >>> order_of(["a", "b", "c"], ["a", "x", "b", "c"])
    1.0
    >>> order_of(["a", "b"], ["b", "a"])
    -1.0
    """
    from scipy.stats import kendalltau

    ours, theirs = Counter(true), Counter(read)
    shared = [word for word in true if ours[word] == 1 and theirs[word] == 1]
    if len(shared) < 2:
        return math.nan
    return float(kendalltau(range(len(shared)), [list(read).index(w) for w in shared]).statistic)


def score_sentences(
    true: Sequence[str],
    read: Sequence[str],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> dict[str, Score]:
    """Return the mean of every measure, its interval of sentences, or of units in `groups`.

    No end of an interval lies beyond what the measure can be. Exact matches are a share of trials:
    Wilson's interval, or of documents `core.rates.mean_rate`, which stays open where none matched.
    """
    each = [score_sentence(a, b) for a, b in zip(true, read, strict=True)]
    found = {}
    for measure in MEASURES:
        values = np.array([one[measure] for one in each])
        known = np.flatnonzero(np.isfinite(values))
        own = None if groups is None else [groups[int(i)] for i in known]
        if measure == "exact":
            found[measure] = _rate(values == 100, own, seed)
            continue
        least = -100.0 if measure == "kendall_tau" else 0.0
        found[measure] = _mean(values[known], own, seed, least)
    return found


def _rate(hits: NDArray[np.bool_], groups: Sequence[Hashable] | None, seed: int) -> Score:
    if not len(hits):
        return Score(math.nan)
    return rate_by_document(hits, groups, seed=seed)


def _mean(
    values: np.ndarray[Any, Any], groups: Sequence[Hashable] | None, seed: int, least: float
) -> Score:
    if not len(values):
        return Score(math.nan)
    interval = bootstrap_interval(values, groups=groups, bounds=(least, 100.0), seed=seed)
    return Score(float(values.mean()), interval, len(values))
