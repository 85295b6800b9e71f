"""Find a name in a text as whole words, and replace it by another."""

from __future__ import annotations

from functools import lru_cache
from unicodedata import normalize

import regex

from leakscope.core.names.person import PLACEHOLDER, PersonName

_LETTER = r"\p{L}\p{N}\p{M}"
_BEFORE = rf"(?<![{_LETTER}])(?<!\p{{Lu}}[\p{{L}}\p{{M}}]*[-‐])(?<!\p{{L}}['’])"
"""No letter; not the second half of Ashe-Quell; not what follows an O'. "pro-Quell" matches."""
_AFTER = rf"(?![{_LETTER}])(?![-‐]\p{{Lu}})"
"""No letter; not the first half of Quell-Ashe. "Quell's" and "Quell-led" match."""
_INITIALS = r"(?:\s+\p{Lu}\.?(?=\s))*"


def contains_name(text: str, name: PersonName) -> bool:
    """Return whether a text contains the surname as whole words.

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
    return _pattern(name).search(normalize("NFKC", text)) is not None


def replace_name(text: str, name: PersonName, other: PersonName) -> str:
    """Replace every occurrence of a name in a text by another name.

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
        return other.full if match["first"] or is_whole else other.surname

    return _pattern(name).sub(written, normalize("NFKC", text))


@lru_cache(maxsize=4096)
def _pattern(name: PersonName) -> regex.Pattern[str]:
    """Return the compiled regular expression that matches a name."""
    first = (
        rf"(?P<first>{_part_pattern(name.first)}{_INITIALS}\s+)?" if name.first else "(?P<first>)"
    )
    return regex.compile(f"{_BEFORE}{first}{_part_pattern(name.surname)}{_AFTER}")


def _part_pattern(part: str) -> str:
    """Return a regular expression for part of a name, tolerant of spaces and hyphens."""
    return "".join(_character_pattern(c) for c in " ".join(normalize("NFKC", part).split()))


def _character_pattern(c: str) -> str:
    """Return a regular expression for one character of a name."""
    if c == " ":
        return r"\s+"
    if c in "'’":
        return "['’]"
    if c in "-‐":
        return "[-‐]"
    if c.islower() and c.upper() != c and len(c.upper()) == 1:
        return f"[{c}{c.upper()}]"
    return regex.escape(c)
