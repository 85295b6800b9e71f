"""Tokens of a text (words and punctuation) for attacks on raw text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import regex
from numpy.typing import NDArray

_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{L}\p{N}\p{M}\s]")


def tokens_of(text: str) -> list[str]:
    """Split a text into lower-cased words and single punctuation marks.

    Function words and punctuation are kept, because they carry style.

    Examples
    --------
    >>> tokens_of("Well, it is!")
    ['well', ',', 'it', 'is', '!']
    """
    found: list[str] = _TOKEN.findall(text.lower())
    return found


class TokenNumbers:
    """A token vocabulary counted from texts: each token's number, 0 for unknown tokens."""

    def __init__(self, texts: Sequence[str], most: int) -> None:
        counts = Counter(token for text in texts for token in tokens_of(text))
        self.numbers = {t: i for i, (t, _) in enumerate(counts.most_common(most), 1)}

    def __len__(self) -> int:
        """Return the size of the vocabulary, the number 0 included."""
        return len(self.numbers) + 1

    def read(self, texts: Sequence[str], n: int) -> NDArray[np.int64]:
        """Return the numbers of the first n tokens of each text, (n_texts, n), padded with 0."""
        found = np.zeros((len(texts), n), np.int64)
        for i, text in enumerate(texts):
            numbers = [self.numbers.get(token, 0) for token in tokens_of(text)[:n]]
            found[i, : len(numbers)] = numbers
        return found
