"""CSV tables in which no cell is a spreadsheet formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA_STARTS = ("=", "+", "-", "@")
_NUMBER = r"[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?(?: ?%)?"
_NUMBERS = re.compile(rf"\s*{_NUMBER}(?:(?: to | \[|,? ){_NUMBER})*\]?(?: %)?\s*")
"""Numbers, a range, or a number with its interval, as tables write them."""

_ENDS = re.compile(r"([;|\t\r\n])")
"""Characters that may end a cell: list separators of various locales, or line ends."""


def neutral_cell(value: Any) -> Any:
    """Return a cell, with an apostrophe before it if a spreadsheet would run it as a formula.

    The same holds after a list separator within the text, which may start a new cell in locales
    that use it. Numbers stay numbers, even if written as text.

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
    return "'" * is_blank + "".join(map(_neutral_piece, parts))


def _neutral_piece(part: str) -> str:
    """Return a piece of a cell's text, with an apostrophe before it if it is a formula."""
    if not part.lstrip(" ").startswith(_FORMULA_STARTS) or _ENDS.fullmatch(part):
        return part
    return part if _NUMBERS.fullmatch(part) else f"'{part}"


def rows_to_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Write rows as CSV text in which no cell is a formula; the first row names the columns."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerows([neutral_cell(cell) for cell in row] for row in rows)
    return out.getvalue()


def table_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write dictionaries, one per row, as CSV text with a header, in which no cell is a formula."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return rows_to_csv([names, *([row.get(name, "") for name in names] for row in rows)])
