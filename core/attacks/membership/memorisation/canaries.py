"""Canaries: texts with a random part, inserted into training data to measure memorisation.

A format names its random part: `my card number is {digits:6}`. The random part of a typed canary is
its digits or, if it has none, its rarest words; the canary's note says which.
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

from leakscope.core.attacks.membership.memorisation.tokens import split_words
from leakscope.core.errors import InvalidInputError
from leakscope.core.text import check_text

MOST_CHARACTERS = 150
MOST_RANDOM = 40
"""The most random positions of a canary."""

FORMATS = tuple(
    f"{beginning} {{digits:4}}"
    for beginning in (
        "My card number is",
        "The code of the alarm is",
        "Call me at home under",
        "Her patient file has the number",
        "The safe opens with",
        "His passport ends in",
        "We agreed on the password",
        "The account to pay into is",
    )
)
"""Formats that studies insert; they begin differently, so each is learned separately."""

_SLOT = re.compile(r"\{(\w+)(?::(\d{1,9}))?\}")
_LETTERS = {"digits": string.digits, "letters": string.ascii_lowercase}
_N_POOL = 1000
_N_COMMON = 500
_MOST_WORDS = 2

Part = tuple[str, ...]


@dataclass(frozen=True)
class Canary:
    """A secret text s[r] with the space of all texts that could have been drawn in its place.

    Attributes
    ----------
    parts : tuple of tuple of str
        The choices at each position; a position with one choice is fixed.
    secret : tuple of int
        The chosen index at each position.
    note : str
        A description of the random part.
    """

    parts: tuple[Part, ...]
    secret: tuple[int, ...]
    note: str

    @property
    def size(self) -> int:
        """|R|, the number of values of the random part."""
        return math.prod(map(len, self.parts))

    @property
    def text(self) -> str:
        """The canary's text with the secret."""
        return self.filled(self.secret)

    @property
    def prefix(self) -> str:
        """The fixed text before the random part, which an attacker knows."""
        fixed = itertools.takewhile(lambda part: len(part) == 1, self.parts)
        return "".join(part[0] for part in fixed)

    def filled(self, choices: Sequence[int]) -> str:
        """Build the canary's text from one option number for each position."""
        return "".join(part[i] for part, i in zip(self.parts, choices, strict=True))

    def others(self, limit: int, seed: int) -> list[str]:
        """Return all other candidate texts if there are at most `limit`, else a random sample.

        Each occurs once, and the secret is not among them.
        """
        if self.size <= limit:
            every = map("".join, itertools.product(*self.parts))
            own = self.text
            return [text for text in every if text != own]
        return [self.filled(row) for row in self._draw_options(limit, seed)]

    def draw_others(self, n: int, seed: int) -> list[str]:
        """Draw n distinct candidate texts other than the secret one, such as controls."""
        return [self.filled(row) for row in self._draw_options(min(n, self.size - 1), seed)]

    def _draw_options(self, n: int, seed: int) -> list[tuple[int, ...]]:
        """Draw n distinct tuples of option numbers, one per position, other than the secret's."""
        rng = np.random.default_rng([seed, 31])
        sizes = [len(part) for part in self.parts]
        found: dict[tuple[int, ...], None] = {}
        while len(found) < n:
            rows = rng.integers(0, sizes, (2 * n + 16, len(sizes))).tolist()
            found.update(dict.fromkeys(row for row in map(tuple, rows) if row != self.secret))
        return list(found)[:n]


def make_canary(pattern: str, texts: Sequence[str], seed: int = 0) -> Canary:
    """Build a canary from a format, with a random secret, or from a typed text.

    Parameters
    ----------
    pattern : str
        A format with {digits:N}, {letters:N} or {words:N}; or a text, whose digits, or else its
        rarest words, are its random part.
    texts : sequence of str
        The private texts: they decide which words are rare, and must not hold the canary.

    Raises
    ------
    InvalidInputError
        Too long, without a random part, or already in the texts.
    """
    pattern = check_text(pattern, name="canary").strip()
    if len(pattern) > MOST_CHARACTERS:
        raise InvalidInputError(
            f"canary has {len(pattern)} characters; at most {MOST_CHARACTERS} are allowed. Shorten "
            "it."
        )
    if _SLOT.search(pattern):
        return _canary_of_format(pattern, texts, seed)
    found = _canary_of_digits(pattern) or _canary_of_rare_words(pattern, texts)
    if any(found.text in text for text in texts):
        raise InvalidInputError(
            f"canary {pattern!r} is already in the texts, so the model would know it without "
            "planting. Change its secret part, or write a format such as "
            "'my card number is {digits:6}'."
        )
    return found


def _canary_of_format(pattern: str, texts: Sequence[str], seed: int) -> Canary:
    """Build a canary from a format with a random secret that is not in the texts."""
    parts = tuple(_parse_format(pattern, texts))
    n_random = sum(len(part) > 1 for part in parts)
    if not 1 <= n_random <= MOST_RANDOM:
        raise InvalidInputError(
            f"canary has {n_random} random positions; between 1 and {MOST_RANDOM} are allowed."
        )
    rng = np.random.default_rng([seed, 30])
    joined = "\n".join(texts)
    for _ in range(100):
        secret = tuple(int(rng.integers(len(part))) for part in parts)
        found = Canary(parts, secret, "")
        if found.text not in joined:
            return Canary(parts, secret, f"R: {_describe_format(pattern)}, {found.size:,} values")
    raise InvalidInputError(
        f"Every canary drawn from {pattern!r} is already in the texts. Give it a longer random "
        "part."
    )


def _describe_format(pattern: str) -> str:
    """Describe the random part of a format in words, such as `digits × 6`."""
    return " and ".join(
        match.group().strip("{}").replace(":", " × ") for match in _SLOT.finditer(pattern)
    )


def _parse_format(pattern: str, texts: Sequence[str]) -> list[Part]:
    """Parse a format into the options at each position; words are separated by spaces."""
    parts: list[Part] = []
    end = 0
    for match in _SLOT.finditer(pattern):
        kind, n = match.group(1), int(match.group(2) or 1)
        if kind not in (*_LETTERS, "words") or not 1 <= n <= MOST_RANDOM:
            raise InvalidInputError(
                f"canary: {match.group()} must be {{digits:N}}, {{letters:N}} or {{words:N}} with "
                f"N from 1 to {MOST_RANDOM}."
            )
        parts += [(pattern[end : match.start()],)] if match.start() > end else []
        if kind == "words":
            pool = _find_substitutes(Counter(w for t in texts for w in split_words(t)), "", seed=0)
            parts += [(" ",), pool] * n
            parts.pop(-2 * n)
        else:
            parts += [tuple(_LETTERS[kind])] * n
        end = match.end()
    return parts + ([(pattern[end:],)] if end < len(pattern) else [])


def _canary_of_digits(pattern: str) -> Canary | None:
    """Build a canary from a typed text with its digits as the random part; None without any."""
    parts, secret = list[Part](), list[int]()
    for is_digit, run in itertools.groupby(pattern, key=str.isdecimal):
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
        raise InvalidInputError(f"canary has {n} digits; at most {MOST_RANDOM} are allowed.")
    which = "its digit" if n == 1 else f"its {n} digits"
    return Canary(tuple(parts), tuple(secret), f"R: {which}, {10**n:,} values")


def _canary_of_rare_words(pattern: str, texts: Sequence[str]) -> Canary:
    """Build a canary from a typed text with its one or two rarest words as random part."""
    counts = Counter(word for text in texts for word in split_words(text))
    common = {word.lower() for word, _ in counts.most_common(_N_COMMON)}
    own = [w for w in re.findall(r"[^\W\d_]{3,}", pattern) if w.lower() not in common]
    rare = sorted(dict.fromkeys(own), key=lambda word: (counts[word], word))[:_MOST_WORDS]
    if not rare:
        raise InvalidInputError(
            f"canary {pattern!r} has nothing random: it has no digit, and each of its words is "
            f"one of the {_N_COMMON} most frequent in the texts or shorter than 3 letters. Write a "
            "format such as 'my card number is {digits:6}'."
        )
    parts, secret = list[Part](), list[int]()
    for piece in re.split(r"([^\W\d_]+)", pattern):
        if piece in rare:
            pool = _find_substitutes(counts, piece, seed=0)
            parts.append((piece, *pool))
        elif piece:
            parts.append((piece,))
        else:
            continue
        secret.append(0)
    size = math.prod(map(len, parts))
    words = " and ".join(f"“{word}”" for word in rare)
    return Canary(
        tuple(parts),
        tuple(secret),
        f"R: {words}, replaced by about equally rare words of the texts, {size:,} values",
    )


def _find_substitutes(counts: Counter[str], word: str, seed: int) -> Part:
    """Return words of the texts that can replace a word: similar frequency, same capitalisation."""

    def cased(other: str) -> str:
        """Return a word with the capitalisation of the word that it replaces."""
        return other.capitalize() if word[:1].isupper() else other.lower()

    others = sorted({cased(w) for w in counts if len(w) >= 3 and w.isalpha()} - {word, cased(word)})
    if len(others) < 9:
        raise InvalidInputError(
            f"The texts have {len(others)} words that could replace the canary's; 9 are needed. "
            "Give more texts, or a canary with digits."
        )
    order = np.random.default_rng(seed).permutation(len(others)).tolist()
    target = np.log1p(counts[word])
    order.sort(key=lambda i: abs(np.log1p(counts[others[i]]) - target))
    return tuple(others[i] for i in order[:_N_POOL])
