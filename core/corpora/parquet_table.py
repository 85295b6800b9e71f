"""A Parquet file, read as a stream of batches of those columns that are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from core.corpora.encodings import UTF_8
from core.corpora.memory_file import File
from core.corpora.raw_files import refusal

__all__ = ["BATCH_ROWS", "ParquetTable", "values_of"]

BATCH_ROWS = 2048


class ParquetTable:
    """A Parquet file, of which only the columns that are used are read, a batch at a time."""

    encoding = UTF_8

    def __init__(self, file: File) -> None:
        import pyarrow as pa

        self.file = file
        with self.opened() as parquet:
            schema = parquet.schema_arrow
        self.names = list(schema.names)
        self.text_names = [field.name for field in schema if _is_text(field.type)]
        self.list_names = tuple(f.name for f in schema if pa.types.is_nested(f.type))
        """Columns whose cells hold several values, as vectors do."""
        # A text that is repeated stays in memory once, however often a small file repeats it.
        self._to_share = {field.name for field in schema if pa.types.is_string(field.type)}

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield where each row stands, and its cells of these columns."""
        names = list(dict.fromkeys(columns))
        n_read = 0
        with self.opened([name for name in names if name in self._to_share]) as parquet:
            for batch in self.batches(parquet, names):
                cells = {name: values_of(self.file, batch.column(name), n_read) for name in names}
                found = zip(*(cells[name] for name in columns), strict=True)
                yield from ((f"row {n_read + i}", row) for i, row in enumerate(found, 1))
                n_read += batch.num_rows

    @contextmanager
    def opened(self, shared: Sequence[str] = ()) -> Iterator[Any]:
        """Open the file as `pyarrow.parquet.ParquetFile`; what goes wrong is told by its name."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self.file.open("rb") as raw:
            try:
                parquet = pq.ParquetFile(raw, read_dictionary=list(shared))
            except (pa.ArrowException, OSError, EOFError) as error:
                raise self._damaged("") from error
            yield parquet

    def batches(self, parquet: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield record batches of an opened file, of all columns by default."""
        import pyarrow as pa

        n_read = 0
        batches = parquet.iter_batches(BATCH_ROWS, columns=columns)
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError, EOFError) as error:
                raise self._damaged(f"after row {n_read}" if n_read else "") from error
            if batch is None:
                return
            n_read += batch.num_rows
            yield batch

    def _damaged(self, place: str) -> Exception:
        return refusal(
            self.file, place, "is truncated, damaged or not Parquet. Copy or write it again."
        )


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def values_of(file: File, column: Any, n_read: int) -> list[Any]:
    """Return a column of a batch as Python values, or say which row is not UTF-8."""
    try:
        if hasattr(column, "dictionary"):
            words = column.dictionary.to_pylist()
            return [None if i is None else words[i] for i in column.indices.to_pylist()]
        return list(column.to_pylist())
    except UnicodeDecodeError:
        for i, cell in enumerate(column, 1):
            try:
                cell.as_py()
            except UnicodeDecodeError as error:
                raise refusal(
                    file,
                    f"row {n_read + i}",
                    "is not UTF-8. Write the table again, its texts as UTF-8.",
                ) from error
        raise
