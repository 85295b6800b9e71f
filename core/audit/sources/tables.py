"""Table files with vectors as vector sources: Parquet, CSV, TSV, JSONL and JSON."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.audit.sources.arrays import as_float
from leakscope.core.audit.sources.protocol import ROWS, Batch, refusal, stack_vectors, widths_differ
from leakscope.core.corpora.guess import longest_text_column
from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.corpora.readers.parquet_table import ParquetTable
from leakscope.core.corpora.readers.tables import Table, open_table
from leakscope.core.corpora.readers.vector_columns import table_vector_columns
from leakscope.core.errors import InvalidInputError

_LEAST_WIDE = 8
"""Number of consecutive columns, such as dim_0 to dim_383, that count as a vector."""

_KEYS = ("id", "ids", "key", "uuid", "pk", "doc_id", "_id")


class TableSource:
    """A table with vectors in one column, or one number per column; the collection names it.

    Texts come from the longest text column, and row names from a column `id`, if there are any.
    """

    def __init__(self, path: File, collection: str = "") -> None:
        self.label = f"{path}" + f"#{collection}" * bool(collection)
        self.path, self.column = path, collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Open the table and yield an iterator over batches; rows without a vector are skipped."""
        table = open_table(self.path)
        if table is None:
            raise refusal(self.label, "is not a table. Give it the extension of its format.")
        column = self._find_vector_column(table)
        wide = () if column else _wide_columns(table.names)
        if not column and not wide:
            raise self._no_vectors_error(table)
        used = {column, *wide}
        others = [name for name in dict.fromkeys(table.text_names) if name not in used]
        text = self._find_text_column(table, others)
        key = next((name for name in table.names if name.lower() in _KEYS), None)
        if isinstance(table, ParquetTable) and column:
            yield self._arrow_batches(table, column, text, key)
        else:
            yield self._batches(table, list(wide) or [column], text, key)

    def _find_vector_column(self, table: Table) -> str:
        """Return the name of the vector column; empty if no single column holds vectors."""
        if self.column:
            if self.column not in table.names:
                raise refusal(
                    self.label, f"has no column {self.column!r}; it has {', '.join(table.names)}."
                )
            return self.column
        found = table_vector_columns(table)
        if len(found) > 1:
            raise refusal(
                self.label,
                f"has {len(found)} columns of vectors, {', '.join(found)}. Name one: "
                f"{self.path}#{found[0]}.",
            )
        return found[0] if found else ""

    def _no_vectors_error(self, table: Table) -> InvalidInputError:
        """Build, without raising it, the error for a table without vectors."""
        return refusal(
            self.label,
            f"no column contains vectors; the columns are {', '.join(table.names[:20]) or 'none'}. "
            "Write each vector as [0.1, 0.2, …] in one column, or its numbers in columns dim_0, "
            "dim_1, ….",
        )

    def _find_text_column(self, table: Table, names: Sequence[str]) -> str | None:
        """Read first rows; return the name of the column with the longest texts, or None."""
        names = [name for name in names if name.lower() not in _KEYS][:50]
        if not names:
            return None
        return longest_text_column(names, (cells for _, cells in table.rows(names)))

    def _batches(
        self, table: Table, columns: list[str], text: str | None, key: str | None
    ) -> Iterator[Batch]:
        """Read a table and yield its vectors, row names and texts in batches."""
        asked = [*columns, *(name for name in (text, key) if name)]
        n = len(columns)
        found = enumerate(table.rows(asked))
        while rows := list(islice(found, ROWS)):
            held: list[Any] = []
            ids: list[str] = []
            texts: list[str | None] = []
            for number, (_, cells) in rows:
                rest = list(cells[n:])
                text_cell = rest.pop(0) if text else None
                row = str(rest[0]) if key and rest[0] is not None else str(number)
                cell = cells[0] if n == 1 else list(cells[:n])
                if cell is None or cell == "":
                    continue
                held.append(cell)
                ids.append(row)
                texts.append(
                    text_cell if isinstance(text_cell, str) and text_cell.strip() else None
                )
            if held:
                yield Batch(stack_vectors(self.label, ids, held), ids, texts if text else None)

    def _arrow_batches(
        self, table: ParquetTable, column: str, text: str | None, key: str | None
    ) -> Iterator[Batch]:
        """Read a Parquet table and yield its vectors, row names and texts in batches."""
        number = 0
        # A nested column needs its outermost struct.
        tops = list(dict.fromkeys(table.paths[name][0] for name in (column, text, key) if name))
        with table.opened() as parquet:
            for batch in table.batches(parquet, tops):
                ids = (
                    row_names(table.column_of(batch, key).to_pylist(), number)
                    if key
                    else [str(number + i) for i in range(batch.num_rows)]
                )
                texts = table.column_of(batch, text).to_pylist() if text else None
                vectors, held = arrow_vectors(self.label, table.column_of(batch, column), ids)
                number += batch.num_rows
                if len(held) < batch.num_rows:
                    ids = [ids[i] for i in held]
                    texts = None if texts is None else [texts[i] for i in held]
                if len(ids):
                    yield Batch(vectors, ids, texts)


def row_names(keys: Sequence[Any], start: int) -> list[str]:
    """Return each row's key as a string, or its number where the key is None."""
    return [str(start + i) if key is None else str(key) for i, key in enumerate(keys)]


def arrow_vectors(
    label: str, column: Any, ids: Sequence[str]
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Convert an Arrow list column to a matrix; return it and the indices of rows with a vector.

    Parameters
    ----------
    column : pyarrow.Array
        Of lists, large lists or lists of fixed size, of numbers.
    ids : sequence of str
        The rows' names, for messages.

    Raises
    ------
    InvalidInputError
        It holds something else, a list with a gap, or lists of different lengths.
    """
    import pyarrow as pa

    kind = column.type
    if not (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ) or not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise refusal(label, f"the column contains {kind}, not lists of numbers. Name another.")
    held = np.flatnonzero(np.asarray(column.is_valid()))
    full = column.drop_null()
    flat = full.flatten()
    if flat.null_count:
        raise refusal(label, "a vector has a missing number. Leave these rows out.")
    numbers = as_float(np.asarray(flat.to_numpy(zero_copy_only=False)))
    if pa.types.is_fixed_size_list(kind):
        return numbers.reshape(len(full), kind.list_size), held
    widths = np.asarray(full.value_lengths())
    if not len(widths):
        return numbers.reshape(0, 0), held
    odd = np.flatnonzero(widths != widths[0])
    if len(odd):
        raise widths_differ(label, ids[held[odd[0]]], int(widths[odd[0]]), int(widths[0]))
    return numbers.reshape(len(full), int(widths[0])), held


def _wide_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the column names with one stem and consecutive numbers, such as dim_0, dim_1.

    Examples
    --------
    >>> _wide_columns(["id", *(f"dim_{i}" for i in range(9))])[-2:]
    ('dim_7', 'dim_8')
    >>> _wide_columns(["id", "text", "label_1"])
    ()
    """
    groups: dict[str, dict[int, str]] = defaultdict(dict)
    for name in names:
        if found := re.fullmatch(r"(\D*)(\d+)", name):
            groups[found[1]][int(found[2])] = name
    most = max(groups.values(), key=len, default={})
    places = sorted(most)
    if len(places) < _LEAST_WIDE or places[-1] - places[0] != len(places) - 1:
        return ()
    return tuple(most[place] for place in places)
