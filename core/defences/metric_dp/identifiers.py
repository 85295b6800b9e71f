"""Finds strings that look like identifiers: e-mail addresses, IBANs and long digit runs.

A mechanism of d_χ-privacy changes tokens of one column. Other columns, which are passed on, may
identify a person, and identifiers may come out of the mechanism unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from leakscope.core.corpora.rows import looks_like_vector
from leakscope.core.spreadsheets import neutral_cell

_MAIL, _IBAN, _DIGITS = "e-mail address", "IBAN", "number of 6 or more digits"
KINDS = {_MAIL: "e-mail addresses", _IBAN: "IBANs", _DIGITS: "numbers of 6 or more digits"}
"""What is counted, with its plural."""

_DATE = re.compile(r"\b(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4})\b")
_PATTERNS = {
    _MAIL: re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    _IBAN: re.compile(
        r"\b[A-Z]{2}\d{2} ?[A-Z0-9]{4}(?: ?(?=[A-Z]*\d)[A-Z0-9]{4}){1,6}(?: ?\d[A-Z0-9]{0,2})?\b",
        re.IGNORECASE,
    ),
    _DIGITS: re.compile(r"(?<![\w.])[+(]*\d(?:[ ./()-]{0,2}\d){5,}(?!\w)"),
}
_DECIMAL = re.compile(r"\d+\.\d+")
_BLANKS = re.compile(r"\s+")


def identifiers_in(text: str) -> Iterator[tuple[str, str]]:
    """Find strings in a text that look like identifiers; yield (kind, string), no overlaps.

    Dates and decimal numbers are none.

    Examples
    --------
    >>> list(identifiers_in("Call +43 660 1234567 or write to a.b@example.org on 2024-11-30."))
    [('e-mail address', 'a.b@example.org'), ('number of 6 or more digits', '+43 660 1234567')]
    >>> list(identifiers_in("0.73450123"))
    []
    """
    rest = _DATE.sub("¦", text)
    for kind, pattern in _PATTERNS.items():
        for found in pattern.finditer(rest):
            if not _DECIMAL.fullmatch(found[0]):
                yield kind, found[0].strip()
        rest = pattern.sub("¦", rest)


def _fold(text: str) -> str:
    """Return a text without white space, case-folded."""
    return _BLANKS.sub("", text).casefold()


@dataclass
class PassedThrough:
    """Counts what a privatised file keeps of its source: columns, vectors and identifiers.

    Attributes
    ----------
    columns : tuple of str
        Those of the table but that of the texts; none of plain text.
    vectors : tuple of str
        Those of `columns` whose cells are vectors, such as the texts' own before protection.
    in_columns : dict of str to Counter
        By column, the identifier-like strings by kind; columns without one are left out.
    in_texts, left_in_texts : Counter
        By kind, the identifier-like strings of the texts, and those of them that the privatised
        text still holds, blanks and case aside.
    n_neutral : int
        Cells that a spreadsheet would take for a formula, which got an apostrophe.
    """

    columns: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    in_columns: dict[str, Counter[str]] = field(default_factory=dict)
    in_texts: Counter[str] = field(default_factory=Counter)
    left_in_texts: Counter[str] = field(default_factory=Counter)
    n_neutral: int = 0

    def neutralise(self, cells: Iterable[str]) -> list[str]:
        """Return a row's cells, with those that spreadsheets would run escaped; count these."""
        before = list(cells)
        after = [neutral_cell(cell) for cell in before]
        self.n_neutral += sum(a != b for a, b in zip(before, after, strict=True))
        return after

    def count_cells(self, column: str, cells: Iterable[Any]) -> None:
        """Add the identifiers in cells of an unchanged column to the counts, by kind."""
        found: Counter[str] = Counter()
        for cell in cells:
            is_number = isinstance(cell, int) and not isinstance(cell, bool)
            if is_number or (isinstance(cell, str) and not looks_like_vector(cell)):
                found.update(kind for kind, _ in identifiers_in(str(cell)))
        if found:
            self.in_columns.setdefault(column, Counter()).update(found)

    def count_text(self, before: str, after: str | None) -> None:
        """Count a text's identifiers, and those left in its release (None if it is a vector)."""
        folded = None
        for kind, string in identifiers_in(before):
            self.in_texts[kind] += 1
            if after is not None:
                folded = _fold(after) if folded is None else folded
                self.left_in_texts[kind] += _fold(string) in folded

    @property
    def sentences(self) -> tuple[str, ...]:
        """Warnings for the person who releases the file, one sentence each."""
        lines = []
        if self.columns:
            lines.append(f"Passed through unchanged: {', '.join(self.columns)}.")
        for column, found in self.in_columns.items():
            lines.append(f"The column {column} contains {_format_counts(found)}, unchanged.")
        if self.vectors:
            are = "contains vectors" if len(self.vectors) == 1 else "contain vectors"
            lines.append(
                f"{', '.join(self.vectors)} {are}. Vectors of the unprotected texts reveal "
                "what the mechanism hides: remove them before you release the file."
            )
        if self.in_texts:
            n, left = self.in_texts.total(), self.left_in_texts.total()
            lines.append(
                f"{left:,} of {n:,} identifier-like string{'' if n == 1 else 's'} in the texts "
                f"{'is' if left == 1 else 'are'} in the output verbatim"
                f"{f' ({_format_counts(+self.left_in_texts)})' if left else ''}."
            )
        if self.n_neutral:
            are, they = ("cell that", "it") if self.n_neutral == 1 else ("cells that", "they")
            lines.append(
                f"{self.n_neutral:,} {are} a spreadsheet would take for a formula: {they} got a "
                "leading apostrophe. Parquet and JSON cells are not changed."
            )
        return tuple(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return column names and counts as a JSON-able dict, without content."""
        return {
            "columns": list(self.columns),
            "neutralised_cells": self.n_neutral,
            "vectors": list(self.vectors),
            "identifiers_in_columns": {k: dict(v) for k, v in self.in_columns.items()},
            "identifiers_in_texts": dict(self.in_texts),
            "identifiers_left_in_texts": dict(self.left_in_texts),
        }


def _format_counts(found: Counter[str]) -> str:
    """Format counts of identifiers by kind, such as `2 IBANs`."""
    return ", ".join(
        f"{found[kind]:,} {kind if found[kind] == 1 else plural}"
        for kind, plural in KINDS.items()
        if found[kind]
    )
