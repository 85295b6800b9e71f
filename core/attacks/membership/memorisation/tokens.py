"""What a language model reads: bytes, which spell every script, or words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["TOKENS", "ByteTokens", "Tokens", "WordTokens", "make_tokens", "split_words"]

TOKENS = ("bytes", "words")

_WORD = re.compile(r"[^\W\d_]+|[^\s]")
"""A run of letters, or one digit or sign: a number is spelt, so that any number is known."""


class Tokens(Protocol):
    """Turns texts into numbers below `size` and back."""

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    @property
    def start(self) -> int:
        """Stands before each text."""
        ...

    @property
    def end(self) -> int:
        """Stands after each text."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without start and end."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens; start, end and what is no text are left out."""
        ...


@dataclass(frozen=True)
class ByteTokens:
    """UTF-8 bytes: 256, a start and an end.

    Examples
    --------
    >>> ByteTokens().encode("é!"), ByteTokens().decode([195, 169, 33, 257])
    ([195, 169, 33], 'é!')
    """

    size: int = field(default=258, init=False)
    start: int = field(default=256, init=False)
    end: int = field(default=257, init=False)

    def encode(self, text: str) -> list[int]:
        """Return the bytes of a text."""
        return list(text.encode(errors="replace"))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of bytes; those that are no UTF-8 are shown as such."""
        return bytes(i for i in ids if i < 256).decode(errors="replace")


@dataclass(frozen=True)
class WordTokens:
    """Runs of letters, single digits and signs; what is not in `words` is [UNK]."""

    words: tuple[str, ...]

    start = 0
    end = 1
    unknown = 2

    @property
    def size(self) -> int:
        """The words, and three tokens of their own."""
        return len(self.words) + 3

    def encode(self, text: str) -> list[int]:
        """Return the words of a text by number."""
        known = self.__dict__.get("_index")
        if known is None:  # made once: a frozen dataclass keeps it aside
            known = {word: i for i, word in enumerate(self.words, 3)}
            object.__setattr__(self, "_index", known)
        return [known.get(word, self.unknown) for word in split_words(text)]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words with spaces between; numbers are written in one."""
        found = ["[UNK]" if i == self.unknown else self.words[i - 3] for i in ids if i >= 2]
        return re.sub(r"(?<=\d) (?=\d)", "", " ".join(found))


def split_words(text: str) -> list[str]:
    """Return the words of a text, each digit and each sign by itself.

    Examples
    --------
    >>> split_words("Flat 12b, Rome")
    ['Flat', '1', '2', 'b', ',', 'Rome']
    """
    return _WORD.findall(text)


def make_tokens(
    kind: str, texts: Iterable[str], also: Iterable[str] = (), n_words: int = 5000
) -> Tokens:
    """Return the tokens of a kind, those of words with the most frequent of some texts.

    Parameters
    ----------
    also : iterable of str
        Texts of which every word is known: the canary and all that could stand in its place, or
        its own words alone would give it away.
    """
    if kind == "bytes":
        return ByteTokens()
    counts = Counter(word for text in texts for word in split_words(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[:n_words]
    more = sorted({word for text in also for word in split_words(text)})
    return WordTokens(tuple(dict.fromkeys([*ranked, *more])))
