"""Similarity of a reconstructed sentence to the true one: words, order and exact match."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

import numpy as np

from leakscope.core.attacks.inversion.reconstruct.tokens import tokens_of
from leakscope.core.intervals import bootstrap_interval, rate_by_document
from leakscope.core.results import Score

MEASURES = {
    "rouge_l": "ROUGE-L",
    "bleu_2": "BLEU-2",
    "bleu_4": "BLEU-4",
    "exact": "exact match",
    "token_f1": "token F1",
    "kendall_tau": "Kendall's τ",
}
"""The measures of a reconstructed sentence, by key; all in per cent."""


def word_tokens(text: str) -> list[str]:
    """Return the word and number tokens of a text, without punctuation.

    Examples
    --------
    >>> word_tokens("Ada's cats, 2 of them.")
    ['ada', "'s", 'cats', '2', 'of', 'them']
    """
    return [token for token in tokens_of(text) if any(c.isalnum() for c in token)]


class _WordTokenizer:
    """Tokenizer for rouge-score, whose own knows only the letters a to z."""

    def tokenize(self, text: str) -> list[str]:
        """Return the word and number tokens of a text."""
        return word_tokens(text)


@cache
def _rouge() -> Any:
    """Return the cached ROUGE-L scorer."""
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=_WordTokenizer())


@cache
def _bleu(order: int) -> Any:
    """Return the cached scorer of sentence BLEU with n-grams up to an order."""
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(lowercase=True, max_ngram_order=order, effective_order=True)


def rouge_l(true: str, read: str) -> float:
    """Return the ROUGE-L F-measure of two sentences over words, in [0, 100].

    Examples
    --------
    >>> rouge_l("The cat sat.", "the cat sat")
    100.0
    """
    return 100 * float(_rouge().score(true, read)["rougeL"].fmeasure)


def score_sentence(true: str, read: str) -> dict[str, float]:
    """Score a reconstructed sentence by every measure: a dict in [0, 100], τ in [-100, 100] or NaN.

    ROUGE-L is that of `rouge_l`, BLEU-n that of sacrebleu
    (its own cut, lower-cased, effective order), exact match that of words without marks, token F1
    that of words with their repetitions, τ that of `word_order_tau`.
    """
    a, b = word_tokens(true), word_tokens(read)
    n_common = sum((Counter(a) & Counter(b)).values())
    return {
        "rouge_l": rouge_l(true, read),
        "bleu_2": float(_bleu(2).sentence_score(read, [true]).score),
        "bleu_4": float(_bleu(4).sentence_score(read, [true]).score),
        "exact": 100.0 * (a == b),
        "token_f1": 200 * n_common / max(len(a) + len(b), 1),
        "kendall_tau": 100 * word_order_tau(a, b),
    }


def word_order_tau(true: Sequence[str], read: Sequence[str]) -> float:
    """Return Kendall's τ of the order of words that occur once in both; NaN for fewer than two.

    Examples
    --------
    >>> word_order_tau(["a", "b", "c"], ["a", "x", "b", "c"])
    1.0
    >>> word_order_tau(["a", "b"], ["b", "a"])
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
    """Average every measure over sentence pairs; return a dict of scores with intervals.

    Intervals stay within the range of the measure. Exact matches are a share of trials:
    Wilson's interval, or of documents `leakscope.core.intervals.mean_rate`, which stays open where
    none matched.
    """
    each = [score_sentence(a, b) for a, b in zip(true, read, strict=True)]
    found = {}
    for measure in MEASURES:
        values = np.array([one[measure] for one in each])
        known = np.flatnonzero(np.isfinite(values))
        own = None if groups is None else [groups[int(i)] for i in known]
        if not len(known):
            found[measure] = Score(math.nan)
        elif measure == "exact":
            found[measure] = rate_by_document(values == 100, own, seed=seed)
        else:
            bounds = (-100.0 if measure == "kendall_tau" else 0.0, 100.0)
            interval = bootstrap_interval(values[known], groups=own, bounds=bounds, seed=seed)
            found[measure] = Score(float(values[known].mean()), interval, len(known))
    return found
