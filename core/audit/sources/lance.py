"""LanceDB's local stores as vector sources."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leakscope.core.audit.sources.protocol import ROWS, Batch
from leakscope.core.audit.sources.stores import (
    choose_collection,
    library,
    store_errors,
    temporary_copy,
    text_field,
)
from leakscope.core.audit.sources.tables import arrow_vectors, row_names


class LanceSource:
    """A table in the folder of a LanceDB database; `#table.column` names its column of vectors."""

    def __init__(self, location: str, collection: str = "") -> None:
        self.label = f"lancedb:{location}" + f"#{collection}" * bool(collection)
        self.path, self.collection = Path(location), collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Open a copy of the store and yield an iterator over batches of the table."""
        lancedb = library("lancedb", "LanceDB stores")
        with temporary_copy(self.label, self.path) as copy:
            names = sorted(path.stem for path in copy.glob("*.lance"))
            asked, _, column = self.collection.partition(".")
            with store_errors(self.label):
                name = choose_collection(self.label, asked, names)
                table = lancedb.connect(str(copy)).open_table(name)
            yield self._batches(table, column)

    def _batches(self, table: Any, column: str) -> Iterator[Batch]:
        """Yield the batches of a table; errors of the library become InvalidInputError."""
        with store_errors(self.label):
            yield from self._read(table, column)

    def _read(self, table: Any, column: str) -> Iterator[Batch]:
        """Read a table and yield its vectors and texts in batches."""
        import pyarrow as pa

        schema = table.schema
        lists = [
            f.name
            for f in schema
            if (pa.types.is_fixed_size_list(f.type) or pa.types.is_list(f.type))
            and pa.types.is_floating(f.type.value_type)
        ]
        name = choose_collection(self.label, column, lists, "column of vectors", "TABLE.COLUMN")
        strings = [
            f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)
        ]
        key = next((n for n in ("id", "key", "uuid", "_id") if n in schema.names), None)
        strings = [n for n in strings if n != key]
        asked = list(dict.fromkeys([name, *strings, *filter(None, [key])]))
        number = 0
        text: str | None = None
        for part in table.search().select(asked).to_batches(ROWS):
            if text is None:
                first = {n: part.column(n).slice(0, 100).to_pylist() for n in strings}
                text = text_field(
                    [
                        dict(zip(first, row, strict=True))
                        for row in zip(*first.values(), strict=True)
                    ]
                )
            ids = (
                row_names(part.column(key).to_pylist(), number)
                if key
                else [str(number + i) for i in range(part.num_rows)]
            )
            texts = part.column(text).to_pylist() if text else None
            vectors, held = arrow_vectors(self.label, part.column(name), ids)
            number += part.num_rows
            yield Batch(
                vectors, [ids[i] for i in held], None if texts is None else [texts[i] for i in held]
            )
