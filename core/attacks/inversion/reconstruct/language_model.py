"""A trigram language model: log-probabilities of sentences and edits, and likely neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.reconstruct.kernels import (
    cut_scores,
    edit_scores,
    fill_table,
    log_probabilities,
    move_scores,
    next_scores,
    pair_scores,
)
from leakscope.core.attacks.inversion.reconstruct.kneser_ney import Trigrams, estimate
from leakscope.core.attacks.inversion.reconstruct.tokens import N_SPECIAL, Lexicon, tokens_of
from leakscope.core.errors import InvalidInputError

_STEP = 0.0625
"""Quantization step of log-probabilities in nats, a byte each: down to e^-16."""

_KEPT_NEIGHBOURS = 40


@dataclass(frozen=True)
class EditScores:
    """The change of a sentence's log-probability under each edit of one token."""

    insert: NDArray[np.float32]
    """Of each of m candidates before each place, shape (n + 1, m)."""
    replace: NDArray[np.float32]
    """In each place, shape (n, m)."""
    delete: NDArray[np.float32]
    """Shape (n,)."""


@dataclass(frozen=True)
class LanguageModel:
    """A trigram model over a lexicon that scores sentences and edits and proposes tokens.

    A stronger model, such as a causal Transformer, could replace it for `log_probabilities`.
    """

    lexicon: Lexicon
    trigrams: Trigrams

    @classmethod
    def fit(cls, texts: Iterable[str], *, size: int = 30_000, least: int = 2) -> Self:
        """Count a lexicon of `size` tokens in texts of one sentence each; estimate trigrams."""
        sentences = [tokens_of(text) for text in texts]
        lexicon = Lexicon.count(sentences, size)
        ids = [lexicon.ids(sentence) for sentence in sentences]
        # Quantized as in storage, so that it answers the same before and after.
        model = cls(lexicon, estimate(ids, len(lexicon), least=least))
        return cls(lexicon, _trigrams_of_arrays(model.arrays(), len(lexicon)))

    @cached_property
    def tables(self) -> tuple[NDArray[Any], ...]:
        """The model's arrays and hash tables for the compiled loops."""
        kept = self.trigrams
        return (
            kept.single.astype(np.float32),
            kept.single_backoff.astype(np.float32),
            kept.pair_keys,
            _hash_table(kept.pair_keys),
            kept.pair.astype(np.float32),
            kept.pair_backoff.astype(np.float32),
            kept.triple_keys,
            _hash_table(kept.triple_keys),
            kept.triple.astype(np.float32),
        )

    def log_probabilities(self, sentences: Sequence[NDArray[np.int32]]) -> NDArray[np.float64]:
        """Return the log-probability of each sentence, its end included, in nats."""
        out = np.empty(len(sentences))
        if len(sentences):
            starts = np.cumsum([0, *map(len, sentences)])
            log_probabilities(np.concatenate(sentences), starts, self.tables, out)
        return out

    def next_scores(
        self, before: NDArray[np.int32], candidates: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return log P(c | a b) of n candidates c after each of m bigrams (a, b), (m, n)."""
        out = np.empty((len(before), len(candidates)))
        next_scores(before, candidates, self.tables, out)
        return out

    def edit_scores(self, tokens: NDArray[np.int32], candidates: NDArray[np.int32]) -> EditScores:
        """Return the change of log P by every insertion, replacement and deletion of one token."""
        n, m = len(tokens), len(candidates)
        insert = np.empty((n + 1, m), np.float32)
        replace, delete = np.empty((n, m), np.float32), np.empty(n, np.float32)
        edit_scores(tokens, candidates, self.tables, insert, replace, delete)
        return EditScores(insert, replace, delete)

    def move_scores(
        self, tokens: NDArray[np.int32], moves: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the change of log P by each of m moves of a phrase, (m,)."""
        out = np.empty(len(moves))
        move_scores(tokens, moves, self.tables, out)
        return out

    def cut_scores(self, tokens: NDArray[np.int32], cuts: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the change of log P when each of m phrases is deleted, (m,)."""
        out = np.empty(len(cuts))
        cut_scores(tokens, cuts, self.tables, out)
        return out

    def pair_scores(
        self, tokens: NDArray[np.int32], places: NDArray[np.int32], pairs: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the change of log P by inserting each of m token pairs at its position, (m,)."""
        out = np.empty(len(places))
        pair_scores(tokens, places, pairs, self.tables, out)
        return out

    @cached_property
    def followers(self) -> NDArray[np.int32]:
        """The 40 likeliest tokens after each token, (V, 40), padded with -1."""
        kept, size = self.trigrams, len(self.lexicon)
        return _neighbours(*np.divmod(kept.pair_keys, size), kept.pair, size)

    @cached_property
    def leaders(self) -> NDArray[np.int32]:
        """The 40 likeliest tokens before each token, (V, 40), padded with -1."""
        kept, size = self.trigrams, len(self.lexicon)
        first, second = np.divmod(kept.pair_keys, size)
        return _neighbours(second, first, kept.pair + kept.single[first], size)

    def stop_tokens(self, count: int) -> NDArray[np.int32]:
        """Return the numbers of the `count` most frequent tokens: stop words and punctuation."""
        return np.arange(N_SPECIAL, min(N_SPECIAL + count, len(self.lexicon)), dtype=np.int32)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store, by name: one byte a log-probability, two bytes a token."""
        kept, size = self.trigrams, len(self.lexicon)
        context = np.searchsorted(kept.pair_keys, kept.triple_keys // size)
        return {
            "single": kept.single.astype(np.float32),
            "single_backoff": kept.single_backoff.astype(np.float32),
            "pair_counts": np.bincount(kept.pair_keys // size, minlength=size).astype(np.uint16),
            "pair_tokens": (kept.pair_keys % size).astype(np.uint16),
            "pair": _quantize_logs(kept.pair),
            "pair_backoff": np.clip(np.rint(kept.pair_backoff / _STEP), -128, 127).astype(np.int8),
            "triple_counts": np.bincount(context, minlength=len(kept.pair_keys)).astype(np.uint16),
            "triple_tokens": (kept.triple_keys % size).astype(np.uint16),
            "triple": _quantize_logs(kept.triple),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], tokens: Sequence[str]) -> Self:
        """Build the model from what `arrays` returned and the lexicon's tokens.

        Raises
        ------
        InvalidInputError
            They do not fit each other.
        """
        lexicon = Lexicon(tuple(tokens))
        return cls(lexicon, _trigrams_of_arrays(arrays, len(lexicon)))


def _quantize_logs(logarithms: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Quantize log-probabilities to a byte each."""
    return np.clip(np.rint(-logarithms / _STEP), 0, 255).astype(np.uint8)


def _dequantize_logs(codes: NDArray[Any]) -> NDArray[np.float64]:
    """Convert quantized log-probabilities back to floats."""
    return -_STEP * codes.astype(np.float64)


def _trigrams_of_arrays(arrays: dict[str, NDArray[Any]], size: int) -> Trigrams:
    """Build the trigram model from stored arrays after checking that their shapes fit."""
    counts, pair_counts = arrays["triple_counts"], arrays["pair_counts"]
    n_pairs, n_triples = int(pair_counts.sum()), int(counts.sum())
    wanted = {
        **dict.fromkeys(("single", "single_backoff", "pair_counts"), size),
        **dict.fromkeys(("pair_tokens", "pair", "pair_backoff", "triple_counts"), n_pairs),
        **dict.fromkeys(("triple_tokens", "triple"), n_triples),
    }
    highest = max(int(arrays[k].max(initial=0)) for k in ("pair_tokens", "triple_tokens"))
    if any(arrays[k].shape != (n,) for k, n in wanted.items()) or highest >= size:
        raise InvalidInputError(
            "The language model's arrays are inconsistent. Restore the file or train the attack "
            "again."
        )
    first = np.repeat(np.arange(size, dtype=np.int64), pair_counts)
    pair_keys = first * size + arrays["pair_tokens"]
    triple_keys = np.repeat(pair_keys, counts) * size + arrays["triple_tokens"]
    return Trigrams(
        arrays["single"].astype(np.float64),
        arrays["single_backoff"].astype(np.float64),
        pair_keys,
        _dequantize_logs(arrays["pair"]),
        _STEP * arrays["pair_backoff"].astype(np.float64),
        triple_keys,
        _dequantize_logs(arrays["triple"]),
    )


def _hash_table(keys: NDArray[np.int64]) -> NDArray[np.int32]:
    """Build a hash table from n keys to their positions, at most half full."""
    places = np.full(1 << max(4, int(2 * len(keys)).bit_length()), -1, np.int32)
    fill_table(keys, places)
    return places


def _neighbours(
    of: NDArray[np.int64], who: NDArray[np.int64], score: NDArray[np.float64], size: int
) -> NDArray[np.int32]:
    """Return the 40 best-scored neighbours of each token, (size, 40), without special tokens."""
    real = (who >= N_SPECIAL) & np.isfinite(score)
    of, who, score = of[real], who[real], score[real]
    order = np.lexsort((who, -score, of))
    of, who = of[order], who[order]
    rank = np.arange(len(of)) - np.searchsorted(of, of)
    near = rank < _KEPT_NEIGHBOURS
    table = np.full((size, _KEPT_NEIGHBOURS), -1, np.int32)
    table[of[near], rank[near]] = who[near]
    return table
