"""Words, word sets and attack vocabularies.

One definition of a word holds everywhere: a run of at least two letters, digits or combining
marks, lower-cased after Unicode NFKC. Training, answering and scoring all use it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import regex
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.assets import ASSETS
from leakscope.core.errors import InvalidInputError

MAX_CHARACTERS = 20_000
"""Longest text accepted; encoders cut far earlier (MiniLM at 256 word pieces)."""

_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]{2,}")
_UNWRITTEN = regex.compile(r"[\p{Cc}\p{Cf}\p{Cs}\p{Z}]")


def read_words(path: Path) -> frozenset[str]:
    """Read the words of a word-list file; lines that begin with # are comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(w for line in lines if not line.startswith("#") for w in line.split())


STOP_WORDS: frozenset[str] = read_words(ASSETS / "stop_words_en.txt")
"""English function words, excluded by attacks by default (assets/stop_words_en.txt)."""


def words(text: str) -> list[str]:
    """Split a text into its words, lower-cased, in order and with repetitions.

    Examples
    --------
    >>> words("Dr. Ada's 2 cats, 300 dogs")
    ['dr', 'ada', 'cats', '300', 'dogs']
    """
    return _WORD.findall(normalize("NFKC", text).lower())


def word_set(text: str) -> frozenset[str]:
    """Split a text into words and return the set W(x) of them."""
    return frozenset(words(text))


def revealing_words(text: str) -> frozenset[str]:
    """Find the words of a text that look like names or numbers: capitalised or with a digit.

    The first word of a text does not count as capitalised unless it has a second capital.
    """
    found = [(m.start(), m.group()) for m in _WORD.finditer(normalize("NFKC", text))]
    first = found[0][0] if found else -1
    return frozenset(
        w.lower()
        for start, w in found
        if any(c.isdigit() for c in w)
        or (w[0].isupper() and (start != first or any(c.isupper() for c in w[1:])))
    )


def words_with_digits(words: Iterable[str]) -> frozenset[str]:
    """Return the words that contain a digit.

    Examples
    --------
    >>> words_with_digits({"bo", "1984", "b12"}) == {"1984", "b12"}
    True
    """
    return frozenset(word for word in words if any(c.isdigit() for c in word))


def mark_words(text: str) -> list[tuple[str, str | None]]:
    """Split a text into (piece, word) pairs; word is None for the pieces between words.

    The pieces joined give the NFKC form of the text, so a page can mark words in place.

    Examples
    --------
    >>> mark_words("Hi, Bo!")
    [('Hi', 'hi'), (', ', None), ('Bo', 'bo'), ('!', None)]
    """
    text = normalize("NFKC", text)
    pieces: list[tuple[str, str | None]] = []
    end = 0
    for match in _WORD.finditer(text):
        if match.start() > end:
            pieces.append((text[end : match.start()], None))
        pieces.append((match.group(), match.group().lower()))
        end = match.end()
    if end < len(text):
        pieces.append((text[end:], None))
    return pieces


def check_text(text: str, *, name: str = "text") -> str:
    """Return a text unchanged, or raise InvalidInputError saying why it cannot be encoded.

    Raises
    ------
    InvalidInputError
        Not a string; empty or only white space and control characters; holding a null byte or
        a lone surrogate; longer than MAX_CHARACTERS.
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"{name} must be a string, got {type(text).__name__}.")
    if len(text) > MAX_CHARACTERS:
        raise InvalidInputError(
            f"{name} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are accepted. "
            "Split it into sentences and take them one by one."
        )
    if "\0" in text:
        raise InvalidInputError(
            f"{name} holds a null byte, so it is probably not text. Remove it or check the file."
        )
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise InvalidInputError(
            f"{name} holds a broken character (lone surrogate). Re-read it as UTF-8."
        )
    if not _UNWRITTEN.sub("", text):
        raise InvalidInputError(f"{name} is empty. Type at least one word.")
    return text


def check_texts(texts: Sequence[str]) -> list[str]:
    """Return texts as a list, or raise InvalidInputError naming the first invalid row (from 1)."""
    if isinstance(texts, str):
        raise InvalidInputError("texts must be a list of strings, got one string: wrap it in [].")
    return [check_text(text, name=f"text {i}") for i, text in enumerate(texts, 1)]


@dataclass(frozen=True)
class Vocabulary:
    """The words an attack can answer, in a fixed order, with their document frequencies.

    The order (most frequent first, ties alphabetical) is part of a trained attack and is stored
    with it.

    Parameters
    ----------
    words : tuple of str
        V, without repetition.
    document_frequency : tuple of int
        Number of auxiliary texts that hold each word.
    n_texts : int
        Number of auxiliary texts counted.
    stop_words : frozenset of str
        Words left out when it was counted; empty when stop words are kept (SR20).
    """

    words: tuple[str, ...]
    document_frequency: tuple[int, ...]
    n_texts: int
    stop_words: frozenset[str] = frozenset()

    @classmethod
    def count(
        cls,
        texts: Iterable[str],
        *,
        size: int = 20_000,
        stop_words: frozenset[str] = STOP_WORDS,
    ) -> Vocabulary:
        """Build the vocabulary of the `size` words that occur in the most texts (C22 §4.3.1)."""
        counts: Counter[str] = Counter()
        n_texts = 0
        for text in texts:
            n_texts += 1
            counts.update(word_set(text))
        kept = [(w, c) for w, c in counts.items() if w not in stop_words]
        kept.sort(key=lambda pair: (-pair[1], pair[0]))
        if not kept:
            raise InvalidInputError(
                "No word is left for the vocabulary: the texts hold stop words only. "
                "Give more texts or keep stop words."
            )
        top = kept[:size]
        return cls(tuple(w for w, _ in top), tuple(c for _, c in top), n_texts, stop_words)

    def __len__(self) -> int:
        """Return the number |V| of words."""
        return len(self.words)

    @cached_property
    def index(self) -> dict[str, int]:
        """The position in the vocabulary of each word, by word."""
        return {w: i for i, w in enumerate(self.words)}

    @cached_property
    def log_odds(self) -> NDArray[np.float32]:
        """Log-odds that a text contains each word, from auxiliary counts, shape (|V|,)."""
        share = (np.asarray(self.document_frequency, dtype=np.float64) + 0.5) / (self.n_texts + 1)
        return np.log(share / (1 - share)).astype(np.float32)

    def targets(self, text: str) -> frozenset[str]:
        """Return the set W(x) ∩ V: the words of a text that are in the vocabulary."""
        return word_set(text) & self.index.keys()

    def rows(self, texts: Iterable[str]) -> list[NDArray[np.int32]]:
        """Return, for each text, the sorted vocabulary positions of its words."""
        index = self.index
        return [
            np.array(sorted(index[w] for w in word_set(text) if w in index), dtype=np.int32)
            for text in texts
        ]

    def matrix(self, texts: Iterable[str]) -> sparse.csr_array:
        """Return the binary (n, |V|) text-word matrix as float32 CSR."""
        rows = self.rows(texts)
        indptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
        indices = np.concatenate(rows) if rows else np.empty(0, np.int32)
        data = np.ones(len(indices), dtype=np.float32)
        return sparse.csr_array((data, indices, indptr), shape=(len(rows), len(self)))

    def to_dict(self) -> dict[str, Any]:
        """Return the vocabulary as a dictionary for JSON."""
        return {
            "words": list(self.words),
            "document_frequency": list(self.document_frequency),
            "n_texts": self.n_texts,
            "stop_words": sorted(self.stop_words),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Vocabulary:
        """Restore what `to_dict` returned."""
        return cls(
            tuple(data["words"]),
            tuple(data["document_frequency"]),
            int(data["n_texts"]),
            frozenset(data["stop_words"]),
        )
