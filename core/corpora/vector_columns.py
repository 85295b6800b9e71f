"""Columns of a file that hold vectors: told apart from texts, and named to whoever sends them."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import Any

from core.corpora.memory_file import File
from core.corpora.parquet_table import ParquetTable
from core.corpora.tables import open_table
from core.errors import InvalidInputError

__all__ = ["looks_like_vector", "vector_columns"]

_LEAST = 8
"""Numbers that make a vector."""
_WRITTEN = re.compile(r"\s*[\[(][-+0-9.eE,;\s]+[\])]\s*")
_SAMPLE = 5
"""Rows that are looked at."""


def looks_like_vector(cell: Any) -> bool:
    """Return whether a cell holds numbers in a row, as a list or written as one.

    Examples
    --------
    >>> looks_like_vector("[0.1, -2e-05, 3, 4, 5, 6, 7, 8]"), looks_like_vector([0.5] * 384)
    (True, True)
    >>> looks_like_vector("[sic] he said"), looks_like_vector("[1, 2]")
    (False, False)
    """
    if isinstance(cell, list | tuple):
        return len(cell) >= _LEAST and all(isinstance(v, int | float) for v in cell[:_LEAST])
    if not isinstance(cell, str) or not cell.lstrip().startswith(("[", "(")):
        return False
    return (
        bool(_WRITTEN.fullmatch(cell)) and len(re.split(r"[,;\s]+", cell.strip(" []()"))) >= _LEAST
    )


def vector_columns(file: File) -> tuple[str, ...]:
    """Return the columns of a table whose first rows hold vectors; none of plain text.

    Raises
    ------
    InvalidInputError
        It is not what its name says.
    """
    table = open_table(file)
    if table is None:
        return ()
    if isinstance(table, ParquetTable):
        return table.list_names
    rows: list[Any] = []
    with suppress(InvalidInputError):  # whoever reads the file says what is wrong
        rows += [cells for _, cells in islice(table.rows(table.names), _SAMPLE)]
    return tuple(
        name
        for name, cells in zip(table.names, zip(*rows, strict=True), strict=True)
        if any(map(looks_like_vector, cells))
    )
