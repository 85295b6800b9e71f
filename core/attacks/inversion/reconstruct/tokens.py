"""Tokens of sentences for the language model: lower-cased words, numbers and punctuation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from unicodedata import normalize

import numpy as np
import regex
from numpy.typing import NDArray

BEGIN = 0
"""The token that precedes a sentence, twice."""

END = 1
"""The token that ends a sentence."""

UNKNOWN = 2
"""Any token that is not in the lexicon."""

N_SPECIAL = 3

_TOKEN = regex.compile(
    r"\p{N}+(?:[.,]\p{N}+)*\p{L}*"  # 1,204.5 and 20th
    r"|(?<=[\p{L}\p{N}])['’]\p{L}{1,2}(?![\p{L}\p{N}])"  # the end of it's, don't, they've
    r"|[\p{L}\p{M}\p{N}]+"
    r"|[.,;:!?()\"-]"
)
_CLINGS = frozenset(".,;:!?)")


def tokens_of(text: str) -> list[str]:
    """Split a text into lower-cased word, number and punctuation tokens.

    Examples
    --------
    >>> tokens_of("Dr. Ada's 2 cats don't mind (much).")
    ['dr', '.', 'ada', "'s", '2', 'cats', 'don', "'t", 'mind', '(', 'much', ')', '.']
    """
    found: list[str] = _TOKEN.findall(normalize("NFKC", text).lower())
    return [token.replace("’", "'") for token in found]


def detokenize(tokens: Sequence[str]) -> str:
    """Join tokens into readable text, with spaces only where they belong.

    Examples
    --------
    >>> detokenize(["ada", "'s", "cats", "(", "two", ")", ",", "asleep", "."])
    "ada's cats (two), asleep."
    """
    pieces: list[str] = []
    opens = False
    for token in tokens:
        clings = token in _CLINGS or token.startswith("'") or opens
        pieces.append(token if clings or not pieces else f" {token}")
        opens = token == "("
    return "".join(pieces)


@dataclass(frozen=True)
class Lexicon:
    """A token vocabulary: special tokens, then the most frequent tokens."""

    tokens: tuple[str, ...]

    @classmethod
    def count(cls, sentences: Iterable[Sequence[str]], size: int) -> Lexicon:
        """Count tokens of sentences; build a lexicon of the `size` most frequent."""
        counts: Counter[str] = Counter()
        for sentence in sentences:
            counts.update(sentence)
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        return cls(("<begin>", "<end>", "<unknown>", *ranked[:size]))

    def __len__(self) -> int:
        """Return the number of tokens, special ones included."""
        return len(self.tokens)

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each regular token, by token."""
        return {token: i for i, token in enumerate(self.tokens) if i >= N_SPECIAL}

    def ids(self, tokens: Iterable[str]) -> NDArray[np.int32]:
        """Return the number of each token; UNKNOWN for tokens outside the lexicon."""
        index = self.index
        return np.array([index.get(token, UNKNOWN) for token in tokens], dtype=np.int32)

    def places(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the token number of each word, (m,), -1 for words outside the lexicon."""
        index = self.index
        return np.array([index.get(word, -1) for word in words], dtype=np.int64)

    def text(self, ids: Iterable[int]) -> str:
        """Convert token numbers to a readable text."""
        return detokenize([self.tokens[i] for i in ids])
