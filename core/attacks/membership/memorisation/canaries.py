"""Canaries: texts with a random part, planted to see what a model keeps of them.

A format names its random part: `my card number is {digits:6}`. Of a typed canary the digits are
taken for it, or, where it has none, its rarest words: the canary says which.
"""

from __future__ import annotations

import itertools
import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.attacks.membership.memorisation.tokens import split_words
from core.errors import InvalidInputError
from core.text import check_text

__all__ = ["FORMATS", "MOST_CHARACTERS", "Canary", "make_canary"]

MOST_CHARACTERS = 150
MOST_RANDOM = 40
"""Most random places of a canary."""

FORMATS = tuple(
    f"{said} {{digits:4}}"
    for said in (
        "My card number is", "The code of the alarm is", "Call me at home under",
        "Her patient file has the number", "The safe opens with", "His passport ends in",
        "We agreed on the password", "The account to pay into is",
    )
)  # fmt: skip
"""What studies plant: formats that begin differently, so that each is learned by itself."""

_SLOT = re.compile(r"\{(\w+)(?::(\d{1,9}))?\}")
_LETTERS = {"digits": string.digits, "letters": string.ascii_lowercase}
_N_POOL = 1000
_N_COMMON = 500
_MOST_WORDS = 2

Part = tuple[str, ...]


@dataclass(frozen=True)
class Canary:
    """A secret text s[r], and all texts that could have been drawn in its place.

    Attributes
    ----------
    parts : tuple of tuple of str
        What may stand in each place; a place with one choice is fixed.
    secret : tuple of int
        The choice of each place.
    note : str
        What its random part is, in a sentence.
    """

    parts: tuple[Part, ...]
    secret: tuple[int, ...]
    note: str

    @property
    def size(self) -> int:
        """|R|, in how many ways the random part can be filled."""
        return math.prod(map(len, self.parts))

    @property
    def text(self) -> str:
        """The canary with its secret."""
        return self.filled(self.secret)

    @property
    def prefix(self) -> str:
        """What stands before the random part, as who asks for it knows it."""
        fixed = itertools.takewhile(lambda part: len(part) == 1, self.parts)
        return "".join(part[0] for part in fixed)

    def filled(self, choices: Sequence[int]) -> str:
        """Return the text of one choice a place."""
        return "".join(part[i] for part, i in zip(self.parts, choices, strict=True))

    def others(self, limit: int, seed: int) -> list[str]:
        """Return all other texts where R holds at most `limit`, else `limit` drawn of them.

        Each once, the secret not among them.
        """
        if self.size <= limit:
            every = map("".join, itertools.product(*self.parts))
            own = self.text
            return [text for text in every if text != own]
        return [self.filled(row) for row in self._drawn(limit, seed)]

    def replaced(self, n: int, seed: int) -> list[str]:
        """Return n texts drawn from R without the secret: controls that are planted nowhere."""
        return [self.filled(row) for row in self._drawn(min(n, self.size - 1), seed)]

    def _drawn(self, n: int, seed: int) -> list[tuple[int, ...]]:
        rng = np.random.default_rng([seed, 31])
        sizes = [len(part) for part in self.parts]
        found: dict[tuple[int, ...], None] = {}
        while len(found) < n:
            rows = rng.integers(0, sizes, (2 * n + 16, len(sizes))).tolist()
            found.update(dict.fromkeys(row for row in map(tuple, rows) if row != self.secret))
        return list(found)[:n]


def make_canary(told: str, texts: Sequence[str], seed: int = 0) -> Canary:
    """Return the canary of a format, its secret drawn by the seed, or that of a typed text.

    Parameters
    ----------
    told : str
        A format with {digits:N}, {letters:N} or {words:N}; or a text, whose digits, or else its
        rarest words, are its random part.
    texts : sequence of str
        The private texts: which words are rare, and what must not hold the canary already.

    Raises
    ------
    InvalidInputError
        Too long, nothing random in it, or it stands in the texts already.
    """
    told = check_text(told, name="canary").strip()
    if len(told) > MOST_CHARACTERS:
        raise InvalidInputError(
            f"canary has {len(told)} characters; at most {MOST_CHARACTERS} are taken. Shorten it."
        )
    if _SLOT.search(told):
        return _drawn_canary(told, texts, seed)
    found = _of_digits(told) or _of_rare_words(told, texts)
    if any(found.text in text for text in texts):
        raise InvalidInputError(
            f"canary {told!r} stands in the texts already: what the model knows of it would not be "
            "from what is planted. Change its secret part, or write a format such as "
            "'my card number is {digits:6}'."
        )
    return found


def _drawn_canary(told: str, texts: Sequence[str], seed: int) -> Canary:
    parts = tuple(_parts_of(told, texts))
    n_random = sum(len(part) > 1 for part in parts)
    if not 1 <= n_random <= MOST_RANDOM:
        raise InvalidInputError(
            f"canary has {n_random} random places; between 1 and {MOST_RANDOM} are taken."
        )
    rng = np.random.default_rng([seed, 30])
    joined = "\n".join(texts)
    for _ in range(100):
        secret = tuple(int(rng.integers(len(part))) for part in parts)
        found = Canary(parts, secret, "")
        if found.text not in joined:
            return Canary(parts, secret, f"R: {_said(told)}, {found.size:,} values")
    raise InvalidInputError(
        f"Every text drawn from {told!r} stands in the texts already. Give it a longer random part."
    )


def _said(told: str) -> str:
    return " and ".join(match.group().strip("{}").replace(":", " × ") for match in
                        _SLOT.finditer(told))  # fmt: skip


def _parts_of(told: str, texts: Sequence[str]) -> list[Part]:
    """Return the places of a format; of words, with spaces between."""
    parts: list[Part] = []
    end = 0
    for match in _SLOT.finditer(told):
        kind, n = match.group(1), int(match.group(2) or 1)
        if kind not in (*_LETTERS, "words") or not 1 <= n <= MOST_RANDOM:
            raise InvalidInputError(
                f"canary: {match.group()} must be {{digits:N}}, {{letters:N}} or {{words:N}} with "
                f"N from 1 to {MOST_RANDOM}."
            )
        parts += [(told[end : match.start()],)] if match.start() > end else []
        if kind == "words":
            pool = _pool(Counter(w for t in texts for w in split_words(t)), "", seed=0)
            parts += [(" ",), pool] * n
            parts.pop(-2 * n)
        else:
            parts += [tuple(_LETTERS[kind])] * n
        end = match.end()
    return parts + ([(told[end:],)] if end < len(told) else [])


def _of_digits(told: str) -> Canary | None:
    """Return a typed text with its digits as the random part, in their own script."""
    parts, secret = list[Part](), list[int]()
    for is_digit, run in itertools.groupby(told, key=str.isdecimal):
        if not is_digit:
            parts.append(("".join(run),))
            secret.append(0)
            continue
        for sign in run:
            value = int(sign)
            parts.append(tuple(chr(ord(sign) - value + i) for i in range(10)))
            secret.append(value)
    n = sum(len(part) > 1 for part in parts)
    if not n:
        return None
    if n > MOST_RANDOM:
        raise InvalidInputError(f"canary has {n} digits; at most {MOST_RANDOM} are taken.")
    which = "its digit" if n == 1 else f"its {n} digits"
    return Canary(tuple(parts), tuple(secret), f"R: {which}, {10**n:,} values")


def _of_rare_words(told: str, texts: Sequence[str]) -> Canary:
    """Return a typed text whose rarest words, at most two, are the random part."""
    counts = Counter(word for text in texts for word in split_words(text))
    common = {word.lower() for word, _ in counts.most_common(_N_COMMON)}
    own = [w for w in re.findall(r"[^\W\d_]{3,}", told) if w.lower() not in common]
    rare = sorted(dict.fromkeys(own), key=lambda word: (counts[word], word))[:_MOST_WORDS]
    if not rare:
        raise InvalidInputError(
            f"canary {told!r} holds nothing random: no digit, and each of its words is frequent in "
            f"the texts (among the {_N_COMMON} most frequent, or shorter than 3 letters). Write a "
            "format such as 'my card number is {digits:6}'."
        )
    parts, secret = list[Part](), list[int]()
    for piece in re.split(r"([^\W\d_]+)", told):
        if piece in rare:
            pool = _pool(counts, piece, seed=0)
            parts.append((piece, *pool))
        elif piece:
            parts.append((piece,))
        else:
            continue
        secret.append(0)
    size = math.prod(map(len, parts))
    words = " and ".join(f"“{word}”" for word in rare)
    return Canary(
        tuple(parts), tuple(secret),
        f"R: {words}, replaced by words about as rare in the texts, {size:,} values",
    )  # fmt: skip


def _pool(counts: Counter[str], word: str, seed: int) -> Part:
    """Return words of three letters or more, about as frequent as a word and cased like it."""

    def cased(other: str) -> str:
        return other.capitalize() if word[:1].isupper() else other.lower()

    others = sorted({cased(w) for w in counts if len(w) >= 3 and w.isalpha()} - {word, cased(word)})
    if len(others) < 9:
        raise InvalidInputError(
            f"The texts hold {len(others)} words that could stand in the canary; 9 are needed. "
            "Give more texts, or a canary with digits."
        )
    order = np.random.default_rng(seed).permutation(len(others)).tolist()
    target = np.log1p(counts[word])
    order.sort(key=lambda i: abs(np.log1p(counts[others[i]]) - target))
    return tuple(others[i] for i in order[:_N_POOL])
