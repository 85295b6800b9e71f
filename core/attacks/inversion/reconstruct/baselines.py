"""Baselines of reconstruction without the vector: a typical sentence, or one of similar length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.reconstruct.scores import rouge_l, word_tokens
from leakscope.core.corpora import load_bundled
from leakscope.core.errors import InvalidInputError

_MOST_WORDS = 48
_COMPARED = 200
"""Sentences to compare with each other; with more, the best is no closer to new ones."""


@cache
def _bundled_sentences() -> tuple[str, ...]:
    """Load the bundled sentences of 1 to 48 words; cached."""
    return load_bundled().sentences(1, _MOST_WORDS).texts


def sentences_between(low: int, high: int, most: int) -> list[str]:
    """Return the first bundled sentences of `low` to `high` words, at most `most` of them.

    Raises
    ------
    InvalidInputError
        There is none.
    """
    found = list(
        islice((t for t in _bundled_sentences() if low <= len(word_tokens(t)) <= high), most)
    )
    if not found:
        raise InvalidInputError(
            f"No bundled sentence has {low} to {high} words, so there is no baseline without the "
            f"vector. Choose lengths between 1 and {_MOST_WORDS}."
        )
    return found


@lru_cache(maxsize=8)
def most_typical_sentence(known: tuple[str, ...], *, seed: int = 0) -> str:
    """Draw up to 200 known sentences; return the one with the highest mean ROUGE-L to others.

    It is a constant answer without the vector for texts of that length, compared with as many
    others.

    Raises
    ------
    InvalidInputError
        No sentence is known.
    """
    if not known:
        raise InvalidInputError("The baseline needs at least one sentence, got none.")
    order = np.random.default_rng([seed, 34]).permutation(len(known))
    drawn = [known[int(i)] for i in order[:_COMPARED]]
    others = [known[int(i)] for i in order[_COMPARED : 2 * _COMPARED]] or drawn
    near = [sum(rouge_l(other, each) for other in others if other != each) for each in drawn]
    return drawn[int(np.argmax(near))]


def similar_length_sentences(texts: Sequence[str], *, seed: int = 0, most: int = 2000) -> list[str]:
    """Draw, for each text, another bundled sentence of similar length.

    Of the first `most` bundled ones.
    """
    known, lengths = _sentences_with_lengths(most)
    rng = np.random.default_rng([seed, 33])
    found = []
    for text in texts:
        apart = np.abs(lengths - len(word_tokens(text)))
        near = [int(i) for i in np.argsort(apart, kind="stable") if known[int(i)] != text][:20]
        found.append(known[int(rng.choice(near))])
    return found


@lru_cache(maxsize=2)
def _sentences_with_lengths(most: int) -> tuple[Sequence[str], NDArray[np.int64]]:
    """Return the first `most` bundled sentences and the number of words of each; cached."""
    known = _bundled_sentences()[:most]
    return known, np.array([len(word_tokens(text)) for text in known], np.int64)
