"""Columns of a file that hold vectors, not texts."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from core.corpora.memory_file import File
from core.corpora.parquet_table import ParquetTable
from core.corpora.rows import looks_like_vector
from core.corpora.tables import Table, open_table
from core.errors import InvalidInputError

__all__ = ["looks_like_vector", "vector_columns", "vectors_of"]

_SAMPLE = 5
"""Rows that are looked at."""


def vector_columns(file: File) -> tuple[str, ...]:
    """Return the columns of a table whose first rows hold vectors; none of plain text.

    Raises
    ------
    InvalidInputError
        It is not what its name says.
    """
    table = open_table(file)
    return () if table is None else vectors_of(table)


def vectors_of(table: Table) -> tuple[str, ...]:
    """Return the columns of an opened table whose first rows hold vectors."""
    if isinstance(table, ParquetTable):
        return table.vector_names
    names = list(dict.fromkeys(table.names))
    found: dict[str, None] = {}
    with suppress(InvalidInputError):  # whoever reads the file says what is wrong
        for _, cells in islice(table.rows(names), _SAMPLE):
            held = zip(names, cells, strict=True)
            found.update({name: None for name, cell in held if looks_like_vector(cell)})
    return tuple(name for name in names if name in found)
