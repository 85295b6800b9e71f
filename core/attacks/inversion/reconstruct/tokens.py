"""Sentences as a language model sees them: lower-cased words, numbers and marks, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from unicodedata import normalize

import numpy as np
import regex
from numpy.typing import NDArray

__all__ = ["BEGIN", "END", "N_SPECIAL", "UNKNOWN", "Lexicon", "joined", "tokens_of"]

BEGIN = 0
"""What stands before a sentence, twice."""

END = 1
"""What ends it."""

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
    """Return the tokens of a text in order, lower-cased.

    Examples
    --------
    >>> tokens_of("Dr. Ada's 2 cats don't mind (much).")
    ['dr', '.', 'ada', "'s", '2', 'cats', 'don', "'t", 'mind', '(', 'much', ')', '.']
    """
    found: list[str] = _TOKEN.findall(normalize("NFKC", text).lower())
    return [token.replace("’", "'") for token in found]


def joined(tokens: Sequence[str]) -> str:
    """Return tokens as a text that a person would read.

    Examples
    --------
    >>> joined(["ada", "'s", "cats", "(", "two", ")", ",", "asleep", "."])
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
    """The tokens that a language model knows, most frequent first after the special ones."""

    tokens: tuple[str, ...]

    @classmethod
    def count(cls, sentences: Iterable[Sequence[str]], size: int) -> Lexicon:
        """Return the `size` most frequent tokens; ties are alphabetical."""
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
        """Token to its number; special tokens cannot be written."""
        return {token: i for i, token in enumerate(self.tokens) if i >= N_SPECIAL}

    def ids(self, tokens: Iterable[str]) -> NDArray[np.int32]:
        """Return the numbers of tokens."""
        index = self.index
        return np.array([index.get(token, UNKNOWN) for token in tokens], dtype=np.int32)

    def places(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return which token each word is, -1 where it is none: shape (m,)."""
        index = self.index
        return np.array([index.get(word, -1) for word in words], dtype=np.int64)

    def text(self, ids: Iterable[int]) -> str:
        """Return what numbers say, as a text."""
        return joined([self.tokens[i] for i in ids])
