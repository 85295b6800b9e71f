"""Data augmentation for a black-box attacker: auxiliary texts with words substituted.

Substitution breaks the collocations of the auxiliary domain ("minister" follows "prime"), so that
a classifier has to read each word from the vector. Ours; neither paper does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leakscope.core.text import Vocabulary, mark_words

_ENDINGS = ("ing", "ed", "ly", "s")
_Kind = tuple[str, bool]


def substitute_words(
    texts: Sequence[str], vocabulary: Vocabulary, *, rate: float = 0.4, seed: int = 0
) -> list[str]:
    """Return the texts with a random share of words replaced by others of the same kind.

    A kind is an ending (-ing, -ed, -ly, -s, number, other) and whether the word is mostly
    capitalised. Substitutes are drawn with the square root of their frequency, so that rare
    words are seen more often than the corpus shows them. Capitalisation is kept.

    Parameters
    ----------
    texts : sequence of str
    vocabulary : Vocabulary
        The words that may be exchanged, and be exchanged for.
    rate : float
        Probability that a word is exchanged.
    seed : int
    """
    rng = np.random.default_rng(seed)
    kinds = _kinds(texts, vocabulary)
    members: dict[_Kind, list[int]] = {}
    for i, word in enumerate(vocabulary.words):
        members.setdefault(kinds[word], []).append(i)
    frequency = np.sqrt(np.asarray(vocabulary.document_frequency, dtype=np.float64))
    draws = {kind: _WeightedSampler(np.array(rows), frequency) for kind, rows in members.items()}

    def exchange(piece: str, word: str | None) -> str:
        """Return a piece of text, or at random another word of the same kind for it."""
        if word not in kinds or rng.random() >= rate:
            return piece
        other = vocabulary.words[draws[kinds[word]].one(rng)]
        return other.capitalize() if piece[0].isupper() else other

    return ["".join(exchange(p, w) for p, w in mark_words(text)) for text in texts]


class _WeightedSampler:
    """A weighted random sampler of row numbers, by inverting the cumulative sum."""

    def __init__(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
        self.rows = rows
        self.cumulative = np.cumsum(weights[rows])

    def one(self, rng: np.random.Generator) -> int:
        """Draw one row number in proportion to its weight."""
        at = np.searchsorted(self.cumulative, rng.random() * self.cumulative[-1], side="right")
        return int(self.rows[min(at, len(self.rows) - 1)])


def _kinds(texts: Sequence[str], vocabulary: Vocabulary) -> dict[str, _Kind]:
    """Return a dict from each vocabulary word to its ending and whether it is mostly capitalised.

    The first word of a text does not count as capitalised.
    """
    seen: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for text in texts[:100_000]:
        marked = [(p, w) for p, w in mark_words(text) if w is not None]
        for piece, word in marked[1:]:
            seen[word] += 1
            capital[word] += piece[0].isupper()
    return {w: (_ending(w), capital[w] > 0.5 * max(seen[w], 1)) for w in vocabulary.words}


def _ending(word: str) -> str:
    """Return "number", the ending of a word (-ing, -ed, -ly, -s), or "" for any other."""
    if word[0].isdigit():
        return "number"
    return next((e for e in _ENDINGS if word.endswith(e) and len(word) > len(e) + 2), "")
