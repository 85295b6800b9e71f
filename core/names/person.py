"""A person's name: first name and surname, found and replaced in texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from unicodedata import normalize

import regex

from leakscope.core.errors import InvalidInputError
from leakscope.core.text import check_text, word_set

MAX_NAME_CHARACTERS = 80


@dataclass(frozen=True)
class PersonName:
    """A surname, and the first name if known.

    Parameters
    ----------
    surname : str
        One or several words, including hyphens and apostrophes.
    first : str
        Empty if unknown.
    """

    surname: str
    first: str = ""

    @property
    def full(self) -> str:
        """First name and surname."""
        return f"{self.first} {self.surname}".strip()

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the surname as attacks answer them; all must be recovered.

        Examples
        --------
        >>> sorted(PersonName("O'Tarrow-Lind").words)
        ['lind', 'tarrow']
        """
        return word_set(self.surname)


PLACEHOLDER = PersonName("[name]")
"""Placeholder in sentences written for any name."""


def parse_name(text: str) -> PersonName:
    """Parse `First Last`, `Last` or `Last, First` into a PersonName.

    The surname is the last word with the lower-case words right before it (`van der`); write
    `Last, First` where it has several capitalised words.

    Raises
    ------
    InvalidInputError
        Empty, damaged or too long; a surname without a word of two letters; or something that is
        not a name because it contains a digit, @ or / (a telephone number, an account, an address).

    Examples
    --------
    >>> parse_name("Ada van der Quell").surname
    'van der Quell'
    >>> parse_name("De Tarrow, Ada").full
    'Ada De Tarrow'
    """
    given = " ".join(normalize("NFKC", check_text(text, name="the name")).split())
    if len(given) > MAX_NAME_CHARACTERS:
        raise InvalidInputError(
            f"A name has {len(given):,} characters; at most {MAX_NAME_CHARACTERS} are accepted. "
            "Write one name per line."
        )
    if any(c.isdigit() or c in "@/" for c in given):
        raise InvalidInputError(
            f"{given!r} contains a digit, @ or /, so it is not a person's name and cannot be "
            "tested as one. Remove it from the names; it may stay in the sentence. Telephone "
            "numbers and IBANs were measured for an attacker with a list: see the Trade-off page "
            "and `leakscope study listed`. Addresses were not tested, which is no evidence of "
            "safety."
        )
    surname, comma, first = (part.strip() for part in given.partition(","))
    if not comma:
        parts = given.split()
        start = len(parts) - 1
        while start > 0 and parts[start - 1].islower():
            start -= 1
        # "van der Quell" alone is a surname; "ada quell" typed without capitals is a whole name.
        if start == 0 and given.islower():
            start = len(parts) - 1
        first, surname = " ".join(parts[:start]), " ".join(parts[start:])
    name = PersonName(surname, first)
    if not name.words:
        raise InvalidInputError(
            f"{given!r} has no surname with a word of at least two letters, so no attack can "
            "answer it. Write the surname in full."
        )
    return name


def parse_names(lines: Sequence[str], *, most: int = 1000) -> tuple[PersonName, ...]:
    """Parse one name per line; raise InvalidInputError for duplicates or invalid names.

    Raises
    ------
    InvalidInputError
        No name, more than `most`, an invalid one, or two with the same surname: recovering it
        would not show which person was named.
    """
    written = [line for line in lines if line.strip()]
    if not written:
        raise InvalidInputError("There is no name. Write at least two, one per line.")
    if len(written) > most:
        raise InvalidInputError(f"There are {len(written):,} names; at most {most} are accepted.")
    names: dict[frozenset[str], PersonName] = {}
    for line in written:
        name = parse_name(line)
        if name.words in names:
            raise InvalidInputError(
                f"{names[name.words].full!r} and {name.full!r} have the same surname, so a "
                "recovered surname would not show which one it is. Remove one of them."
            )
        names[name.words] = name
    return tuple(names.values())


_LETTER = r"\p{L}\p{N}\p{M}"
_BEFORE = rf"(?<![{_LETTER}])(?<!\p{{Lu}}[\p{{L}}\p{{M}}]*[-‐])(?<!\p{{L}}['’])"
"""No letter; not the second half of Ashe-Quell; not what follows an O'. "pro-Quell" matches."""
_AFTER = rf"(?![{_LETTER}])(?![-‐]\p{{Lu}})"
"""No letter; not the first half of Quell-Ashe. "Quell's" and "Quell-led" match."""
_INITIALS = r"(?:\s+\p{Lu}\.?(?=\s))*"


def contains_name(text: str, name: PersonName) -> bool:
    """Return whether a text contains a name's surname as whole words.

    A capital of the name must be a capital in the text; a lower-case letter may be either:
    `Brown` is not found in `a brown bag`.

    Examples
    --------
    >>> [
    ...     contains_name(t, PersonName("Quell"))
    ...     for t in ("QUELL's boat", "to quell it", "Ashe-Quell")
    ... ]
    [True, False, False]
    """
    return _name_pattern(name).search(normalize("NFKC", text)) is not None


def replace_name(text: str, name: PersonName, other: PersonName) -> str:
    """Return a text with every occurrence of a name replaced by another name.

    Implements the substitution of Corò (2022), §5.2.3: on the surname and, where it appears, on
    the first name.
    Differs from the paper: a first name is replaced only directly before its surname, with the
    initials in between; elsewhere it may be another person's.

    Examples
    --------
    >>> replace_name(
    ...     "Ada B. Quell left. Quell's boat stayed.",
    ...     PersonName("Quell", "Ada"),
    ...     PersonName("Orrin", "Tom"),
    ... )
    "Tom Orrin left. Orrin's boat stayed."
    """
    is_whole = name == PLACEHOLDER

    def written(match: regex.Match[str]) -> str:
        """Return the other name in full where the match is in full, else its surname."""
        return other.full if match["first"] or is_whole else other.surname

    return _name_pattern(name).sub(written, normalize("NFKC", text))


@lru_cache(maxsize=4096)
def _name_pattern(name: PersonName) -> regex.Pattern[str]:
    """Compile the regular expression that matches a name in a text."""
    first = (
        rf"(?P<first>{_part_pattern(name.first)}{_INITIALS}\s+)?" if name.first else "(?P<first>)"
    )
    return regex.compile(f"{_BEFORE}{first}{_part_pattern(name.surname)}{_AFTER}")


def _part_pattern(part: str) -> str:
    """Build a regular expression for a first name or surname, tolerant of spaces and hyphens."""
    return "".join(_character_pattern(c) for c in " ".join(normalize("NFKC", part).split()))


def _character_pattern(c: str) -> str:
    """Build a regular expression for one character of a name."""
    if c == " ":
        return r"\s+"
    if c in "'’":
        return "['’]"
    if c in "-‐":
        return "[-‐]"
    if c.islower() and c.upper() != c and len(c.upper()) == 1:
        return f"[{c}{c.upper()}]"
    return regex.escape(c)
