"""A trigram model by interpolated Kneser–Ney smoothing, estimated in whole arrays.

docs/decisions/0031-sentences-in-order.md names the libraries that were considered; the tests
compare the estimates with NLTK's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.reconstruct.tokens import BEGIN, END

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trigrams:
    """A trigram model in back-off form: unlisted trigrams have P(c|ab) = β(ab)·P(c|b).

    Keys are ascending: a·V + b of pairs, (a·V + b)·V + c of triples.
    """

    single: _Floats
    """log P(c), shape (V,)."""
    single_backoff: _Floats
    """log β(b), shape (V,)."""
    pair_keys: _Ints
    pair: _Floats
    pair_backoff: _Floats
    triple_keys: _Ints
    triple: _Floats


@dataclass(frozen=True)
class _OrderCounts:
    """Counts of one n-gram order: per n-gram and per context, with the discount."""

    keys: _Ints
    counts: _Floats
    contexts: _Ints
    """Position of each n-gram's context among the distinct contexts."""
    context_keys: _Ints
    totals: _Floats
    """Sum of the counts, by context."""
    kinds: _Floats
    """Different continuations, by context."""
    discount: float


def estimate(
    sentences: Iterable[NDArray[np.int32]],
    size: int,
    *,
    least: int = 2,
    discount: float | None = None,
) -> Trigrams:
    """Estimate a trigram model from sentences of token numbers below `size`.

    Implements interpolated Kneser–Ney smoothing (Kneser & Ney 1995; Chen & Goodman 1999, Eq. 13):
    P(c|ab) = max(n(abc) − D, 0)/n(ab·) + D·N₁₊(ab·)/n(ab·) · P(c|b), the lower orders of the
    numbers of different words before.
    Differs from the paper: bigrams at the start of a sentence keep their counts, since only BEGIN
    precedes them; trigrams seen fewer than `least` times are left to the back-off, whose weights
    make all continuations still sum to one.

    Parameters
    ----------
    discount : float, optional
        D of every order; by default n₁/(n₁ + 2n₂) of each.
    """
    keys, counts = np.unique(_trigram_keys(sentences, size), return_counts=True)
    top = _order_counts(keys, counts.astype(np.float64), size, discount)
    middle = _order_counts(*_continuation_counts(top, size), size, discount)
    single = _unigram_probabilities(
        np.bincount(middle.keys % size, minlength=size).astype(np.float64)
    )
    pair = _interpolated(middle, single[middle.keys % size])
    below = pair[np.searchsorted(middle.keys, top.keys % size**2)]
    triple = _interpolated(top, below)
    kept = top.counts >= least
    backoff = _backoff(top, triple, below, kept)
    # What begins a sentence follows a pair that ends no triple: it is put first, its key is 0.
    pair_keys = np.concatenate([[BEGIN], middle.keys])
    pair_backoff = np.zeros(len(pair_keys))
    pair_backoff[np.searchsorted(pair_keys, top.context_keys)] = backoff
    single_backoff = np.zeros(size)
    single_backoff[middle.context_keys] = np.log(middle.discount * middle.kinds / middle.totals)
    return Trigrams(
        np.log(single),
        single_backoff,
        pair_keys,
        np.concatenate([[np.log(single[BEGIN])], np.log(pair)]),
        pair_backoff,
        top.keys[kept],
        np.log(triple[kept]),
    )


def _trigram_keys(sentences: Iterable[NDArray[np.int32]], size: int) -> _Ints:
    """Return the key of each trigram that ends in a token or in END, with repetitions."""
    begin, end = np.array([BEGIN, BEGIN]), np.array([END])
    flat = np.concatenate([part for ids in sentences for part in (begin, ids, end)])
    a, b, c = (flat[i : len(flat) - 2 + i].astype(np.int64) for i in range(3))
    inside = (c != BEGIN) & (b != END) & (a != END)
    keys: _Ints = ((a * size + b) * size + c)[inside]
    return keys


def _continuation_counts(top: _OrderCounts, size: int) -> tuple[_Ints, _Floats]:
    """Return the bigrams that end trigrams, and how many different tokens precede each."""
    ends = top.keys % size**2
    begins = ends // size == BEGIN
    keys, inverse = np.unique(ends, return_inverse=True)
    weights = np.where(begins, top.counts, 1.0)
    return keys, np.bincount(inverse, weights=weights, minlength=len(keys)).astype(np.float64)


def _order_counts(keys: _Ints, counts: _Floats, size: int, discount: float | None) -> _OrderCounts:
    """Count the contexts of one n-gram order; estimate its discount if none is given."""
    context_keys, contexts = np.unique(keys // size, return_inverse=True)
    if discount is None:
        once, twice = int((counts == 1).sum()), int((counts == 2).sum())
        discount = min(max(once / max(once + 2 * twice, 1), 0.1), 0.95)
    totals = np.bincount(contexts, weights=counts).astype(np.float64)
    kinds = np.bincount(contexts).astype(np.float64)
    return _OrderCounts(keys, counts, contexts, context_keys, totals, kinds, discount)


def _unigram_probabilities(kinds: _Floats) -> _Floats:
    """Return P(c) of each token c from the number of different tokens before it, at least ½."""
    kinds = np.maximum(kinds, 0.5)
    kinds[BEGIN] = 1e-6  # never follows
    share: _Floats = kinds / kinds.sum()
    return share


def _interpolated(level: _OrderCounts, below: _Floats) -> _Floats:
    """Return each n-gram's interpolated probability, given those of the order below."""
    totals, kinds = level.totals[level.contexts], level.kinds[level.contexts]
    found: _Floats = (
        np.maximum(level.counts - level.discount, 0.0) / totals
        + level.discount * kinds / totals * below
    )
    return found


def _backoff(
    level: _OrderCounts, found: _Floats, below: _Floats, kept: NDArray[np.bool_]
) -> _Floats:
    """Return log β of each context: its unlisted mass over the lower order's unlisted mass."""
    n = len(level.context_keys)
    listed = np.bincount(level.contexts, weights=np.where(kept, found, 0.0), minlength=n)
    lower = np.bincount(level.contexts, weights=np.where(kept, below, 0.0), minlength=n)
    left: _Floats = np.log(np.maximum(1 - listed, 1e-9) / np.maximum(1 - lower, 1e-9))
    return left
