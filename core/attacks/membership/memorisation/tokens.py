"""Tokenisers of the language models: bytes, which cover every script, or words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

TOKENS = ("bytes", "words")

_WORD = re.compile(r"[^\W\d_]+|[^\s]")
"""A run of letters, or one digit or sign: numbers are spelt, so any number is known."""


class Tokens(Protocol):
    """The protocol of a tokeniser: texts to numbers below `size` and back."""

    @property
    def size(self) -> int:
        """The vocabulary size: every token id lies below it; each kind of tokens defines it."""
        ...

    @property
    def start(self) -> int:
        """The token id before each text."""
        ...

    @property
    def end(self) -> int:
        """The token id after each text."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without start and end."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, without start and end."""
        ...


@dataclass(frozen=True)
class ByteTokens:
    """A tokeniser of UTF-8 bytes: 256 tokens, a start and an end.

    Examples
    --------
    >>> ByteTokens().encode("é!"), ByteTokens().decode([195, 169, 33, 257])
    ([195, 169, 33], 'é!')
    """

    size: int = field(default=258, init=False)
    start: int = field(default=256, init=False)
    end: int = field(default=257, init=False)

    def encode(self, text: str) -> list[int]:
        """Return the UTF-8 bytes of a text."""
        return list(text.encode(errors="replace"))

    def decode(self, ids: Sequence[int]) -> str:
        """Decode byte values to text; invalid UTF-8 becomes replacement characters."""
        return bytes(i for i in ids if i < 256).decode(errors="replace")


@dataclass(frozen=True)
class WordTokens:
    """A tokeniser of words, single digits and punctuation; others become [UNK]."""

    words: tuple[str, ...]

    start = 0
    end = 1
    unknown = 2

    @property
    def size(self) -> int:
        """The number of words and of the three special tokens."""
        return len(self.words) + 3

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's words; unknown words become [UNK]."""
        known = self.__dict__.get("_index")
        if known is None:  # made once: a frozen dataclass keeps it aside
            known = {word: i for i, word in enumerate(self.words, 3)}
            object.__setattr__(self, "_index", known)
        return [known.get(word, self.unknown) for word in split_words(text)]

    def decode(self, ids: Sequence[int]) -> str:
        """Join the words of token ids by spaces, but the digits of a number without a space."""
        found = ["[UNK]" if i == self.unknown else self.words[i - 3] for i in ids if i >= 2]
        return re.sub(r"(?<=\d) (?=\d)", "", " ".join(found))


def split_words(text: str) -> list[str]:
    """Split a text into words, single digits and single punctuation marks.

    Examples
    --------
    >>> split_words("Flat 12b, Rome")
    ['Flat', '1', '2', 'b', ',', 'Rome']
    """
    return _WORD.findall(text)


def make_tokens(
    kind: str, texts: Iterable[str], also: Iterable[str] = (), n_words: int = 5000
) -> Tokens:
    """Build a tokeniser of bytes or words; words are counted in the texts.

    Parameters
    ----------
    also : iterable of str
        Texts whose words are all included: the canary and its candidates, since otherwise only the
        canary's own words would be known.
    """
    if kind == "bytes":
        return ByteTokens()
    counts = Counter(word for text in texts for word in split_words(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[:n_words]
    more = sorted({word for text in also for word in split_words(text)})
    return WordTokens(tuple(dict.fromkeys([*ranked, *more])))
