"""Strings that look like identifiers: e-mail addresses, IBANs, and runs of six or more digits.

A mechanism of d_χ-privacy changes tokens of one column. What identifies a person may stand in
other columns, which are passed on, and may come out of the mechanism as it went in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from core.corpora.rows import looks_like_vector
from core.spreadsheets import neutral_cell

__all__ = ["KINDS", "PassedThrough", "identifiers_in"]

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
    """Yield what looks like an identifier, as its kind and the string; no part counts twice.

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


def _folded(text: str) -> str:
    return _BLANKS.sub("", text).casefold()


@dataclass
class PassedThrough:
    """What a privatised file holds as its source did.

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

    def neutral(self, cells: Iterable[str]) -> list[str]:
        """Return the cells of a row, none of them a formula, and count those that were."""
        before = list(cells)
        after = [neutral_cell(cell) for cell in before]
        self.n_neutral += sum(a != b for a, b in zip(before, after, strict=True))
        return after

    def count_cells(self, column: str, cells: Iterable[Any]) -> None:
        """Count the identifiers in cells of a column that is passed on."""
        found: Counter[str] = Counter()
        for cell in cells:
            is_number = isinstance(cell, int) and not isinstance(cell, bool)
            if is_number or (isinstance(cell, str) and not looks_like_vector(cell)):
                found.update(kind for kind, _ in identifiers_in(str(cell)))
        if found:
            self.in_columns.setdefault(column, Counter()).update(found)

    def count_text(self, before: str, after: str | None) -> None:
        """Count the identifiers of a text, and those left in what is released; None for vectors."""
        folded = None
        for kind, string in identifiers_in(before):
            self.in_texts[kind] += 1
            if after is not None:
                folded = _folded(after) if folded is None else folded
                self.left_in_texts[kind] += _folded(string) in folded

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a person who releases the file has to know, a sentence each."""
        told = []
        if self.columns:
            told.append(f"Passed through unchanged: {', '.join(self.columns)}.")
        for column, found in self.in_columns.items():
            told.append(f"The column {column} holds {_counted(found)}, unchanged.")
        if self.vectors:
            are = "holds vectors" if len(self.vectors) == 1 else "hold vectors"
            told.append(
                f"{', '.join(self.vectors)} {are}: if they are of the texts before protection, "
                "they reveal what the mechanism hides. Remove them before you release the file."
            )
        if self.in_texts:
            n, left = self.in_texts.total(), self.left_in_texts.total()
            told.append(
                f"Of {n:,} identifier-like string{'' if n == 1 else 's'} in the texts, {left:,} "
                f"{'is' if left == 1 else 'are'} in the output verbatim"
                f"{f' ({_counted(+self.left_in_texts)})' if left else ''}."
            )
        if self.n_neutral:
            are, they = ("cell that", "it") if self.n_neutral == 1 else ("cells that", "they")
            told.append(
                f"{self.n_neutral:,} {are} a spreadsheet would take for a formula: {they} got a "
                "leading apostrophe. Parquet and JSON are written as they are."
            )
        return tuple(told)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form; it names columns and counts, and quotes nothing."""
        return {
            "columns": list(self.columns),
            "neutralised_cells": self.n_neutral,
            "vectors": list(self.vectors),
            "identifiers_in_columns": {k: dict(v) for k, v in self.in_columns.items()},
            "identifiers_in_texts": dict(self.in_texts),
            "identifiers_left_in_texts": dict(self.left_in_texts),
        }


def _counted(found: Counter[str]) -> str:
    return ", ".join(
        f"{found[kind]:,} {kind if found[kind] == 1 else plural}"
        for kind, plural in KINDS.items()
        if found[kind]
    )
