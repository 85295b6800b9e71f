"""Tables for spreadsheets: CSV in which no cell is a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["as_csv", "neutral_cell", "table_csv"]

_FORMULA_STARTS = ("=", "+", "-", "@")
_NUMBER = r"[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?(?: ?%)?"
_NUMBERS = re.compile(rf"\s*{_NUMBER}(?:(?: to | \[|,? ){_NUMBER})*\]?(?: %)?\s*")
"""A number, several, a range or a number with its interval, as tables write them."""

_ENDS = re.compile(r"([;|\t\r\n])")
"""What may end a cell: a list separator of some country or program, or the end of a row."""


def neutral_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula: a text gets a leading apostrophe.

    So does what follows a list separator within it, which may begin a cell of its own where that
    separator is in use. Numbers stay numbers, also where they are written as text.

    Examples
    --------
    >>> neutral_cell("=1+1"), neutral_cell(-0.5), neutral_cell("-0.5"), neutral_cell("-3 to -2")
    ("'=1+1", -0.5, '-0.5', '-3 to -2')
    >>> neutral_cell("a;=1+1")
    "a;'=1+1"
    """
    if not isinstance(value, str):
        return value
    parts = _ENDS.split(value)
    is_blank = len(parts) > 1 and not parts[0].strip() and parts[1] in "\t\r\n"
    # Programs that drop blanks at the start find the formula after them.
    return "'" * is_blank + "".join(map(_neutral, parts))


def _neutral(part: str) -> str:
    """Return one part of a cell, a text or a separator, with an apostrophe before a formula."""
    if not part.lstrip(" ").startswith(_FORMULA_STARTS) or _ENDS.fullmatch(part):
        return part
    return part if _NUMBERS.fullmatch(part) else f"'{part}"


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows for a spreadsheet, no cell a formula; the first names the columns."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerows([neutral_cell(cell) for cell in row] for row in rows)
    return out.getvalue()


def table_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows under the names of their columns, as `as_csv`."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return as_csv([names, *([row.get(name, "") for name in names] for row in rows)])
