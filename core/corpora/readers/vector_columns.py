"""Find the columns of a file that hold vectors, not texts."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.corpora.readers.parquet_table import ParquetTable
from leakscope.core.corpora.readers.tables import Table, open_table
from leakscope.core.corpora.rows import looks_like_vector
from leakscope.core.errors import InvalidInputError

_SAMPLE = 5
"""Number of rows inspected."""


def vector_columns(file: File) -> tuple[str, ...]:
    """Read a file's first rows; return the names of the columns that hold vectors.

    Raises
    ------
    InvalidInputError
        It is not what its name says.
    """
    table = open_table(file)
    return () if table is None else table_vector_columns(table)


def table_vector_columns(table: Table) -> tuple[str, ...]:
    """Read an opened table's first rows; return the names of columns that hold vectors."""
    if isinstance(table, ParquetTable):
        return table.vector_names
    names = list(dict.fromkeys(table.names))
    found: dict[str, None] = {}
    with suppress(InvalidInputError):  # a full read reports what is wrong
        for _, cells in islice(table.rows(names), _SAMPLE):
            held = zip(names, cells, strict=True)
            found.update({name: None for name, cell in held if looks_like_vector(cell)})
    return tuple(name for name in names if name in found)
