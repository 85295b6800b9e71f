"""Tables with a column of vectors: Parquet, CSV, TSV, JSONL and JSON as stores export it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.audit.sources.arrays import as_float
from core.audit.sources.protocol import ROWS, Batch, refusal, stacked, widths_differ
from core.corpora.guess import longest_text_column
from core.corpora.parquet_table import ParquetTable
from core.corpora.tables import Table, open_table
from core.corpora.vector_columns import vectors_of
from core.errors import InvalidInputError

_LEAST_WIDE = 8
"""Columns that count up, such as dim_0 to dim_383, before they are taken for a vector."""

_KEYS = ("id", "ids", "key", "uuid", "pk", "doc_id", "_id")


class TableSource:
    """A table with the vectors in one column, or a number a column; the collection names it.

    The texts are those of the longest text column, and the names of the rows those of a column
    `id`, where there are such.
    """

    def __init__(self, path: Path, collection: str = "") -> None:
        self.label = f"{path}" + f"#{collection}" * bool(collection)
        self.path, self.column = path, collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Give the vectors of the table; rows without one are left out."""
        table = open_table(self.path)
        if table is None:
            raise refusal(self.label, "is not a table. Give it the ending that says what it is.")
        column = self._column_of(table)
        wide = () if column else _wide_columns(table.names)
        if not column and not wide:
            raise self._without_vectors(table)
        used = {column, *wide}
        others = [name for name in dict.fromkeys(table.text_names) if name not in used]
        text = self._text_of(table, others)
        key = next((name for name in table.names if name.lower() in _KEYS), None)
        if isinstance(table, ParquetTable) and column:
            yield self._arrow_batches(table, column, text, key)
        else:
            yield self._batches(table, list(wide) or [column], text, key)

    def _column_of(self, table: Table) -> str:
        """Return the column of the vectors; empty where no single column holds them."""
        if self.column:
            if self.column not in table.names:
                raise refusal(
                    self.label, f"has no column {self.column!r}; it has {', '.join(table.names)}."
                )
            return self.column
        found = vectors_of(table)
        if len(found) > 1:
            raise refusal(
                self.label,
                f"has {len(found)} columns of vectors, {', '.join(found)}. Name one: "
                f"{self.path}#{found[0]}.",
            )
        return found[0] if found else ""

    def _without_vectors(self, table: Table) -> InvalidInputError:
        return refusal(
            self.label,
            f"no column holds vectors; it has {', '.join(table.names[:20]) or 'none'}. Write each "
            "vector as [0.1, 0.2, …] in one column, or a number a column as dim_0, dim_1, ….",
        )

    def _text_of(self, table: Table, names: Sequence[str]) -> str | None:
        names = [name for name in names if name.lower() not in _KEYS][:50]
        if not names:
            return None
        return longest_text_column(names, (cells for _, cells in table.rows(names)))

    def _batches(
        self, table: Table, columns: list[str], text: str | None, key: str | None
    ) -> Iterator[Batch]:
        asked = [*columns, *(name for name in (text, key) if name)]
        n = len(columns)
        found = enumerate(table.rows(asked))
        while rows := list(islice(found, ROWS)):
            held: list[Any] = []
            ids: list[str] = []
            texts: list[str | None] = []
            for number, (_, cells) in rows:
                rest = list(cells[n:])
                said = rest.pop(0) if text else None
                row = str(rest[0]) if key and rest[0] is not None else str(number)
                cell = cells[0] if n == 1 else list(cells[:n])
                if cell is None or cell == "":
                    continue
                held.append(cell)
                ids.append(row)
                texts.append(said if isinstance(said, str) and said.strip() else None)
            if held:
                yield Batch(stacked(self.label, ids, held), ids, texts if text else None)

    def _arrow_batches(
        self, table: ParquetTable, column: str, text: str | None, key: str | None
    ) -> Iterator[Batch]:
        number = 0
        # Of a nested column, the outermost struct has to be read.
        tops = list(dict.fromkeys(table.paths[name][0] for name in (column, text, key) if name))
        with table.opened() as parquet:
            for batch in table.batches(parquet, tops):
                ids = (
                    named(table.column_of(batch, key).to_pylist(), number)
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


def named(keys: Sequence[Any], start: int) -> list[str]:
    """Return the names of rows: their keys, or their numbers where they have none."""
    return [str(start + i) if key is None else str(key) for i, key in enumerate(keys)]


def arrow_vectors(
    label: str, column: Any, ids: Sequence[str]
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the vectors of an Arrow column of lists, and which rows have one.

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
        raise refusal(label, f"the column holds {kind}, not lists of numbers. Name another.")
    held = np.flatnonzero(np.asarray(column.is_valid()))
    full = column.drop_null()
    flat = full.flatten()
    if flat.null_count:
        raise refusal(label, "a vector has an empty place. Leave such rows out.")
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
    """Return the columns that are named alike and count up, in their order; none without.

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
