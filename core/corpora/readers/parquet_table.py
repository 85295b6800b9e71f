"""Read a Parquet file in batches, and only the columns that are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from leakscope.core.corpora.readers.encodings import UTF_8
from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.corpora.readers.raw_files import refusal

BATCH_ROWS = 2048


class ParquetTable:
    """A Parquet file read in batches, only the used columns."""

    encoding = UTF_8

    def __init__(self, file: File) -> None:
        import pyarrow as pa

        self.file = file
        with self.opened() as parquet:
            schema = parquet.schema_arrow
        leaves = [leaf for field in schema for leaf in _leaves(field)]
        self.paths = {".".join(path): path for path, _ in leaves}
        """Maps a dotted name to its path of nested fields."""
        self.names = [".".join(path) for path, _ in leaves]
        self.text_names = [".".join(path) for path, kind in leaves if _is_text(kind)]
        self.vector_names = tuple(".".join(path) for path, kind in leaves if _is_vector(kind))
        # A text that is repeated stays in memory once, however often a small file repeats it.
        self._to_share = {".".join(path) for path, kind in leaves if pa.types.is_string(kind)}

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield each row's place and its cells of the named columns."""
        names = list(dict.fromkeys(columns))
        n_read = 0
        with self.opened([name for name in names if name in self._to_share]) as parquet:
            for batch in self.batches(parquet, names):
                cells = {
                    name: column_values(self.file, self.column_of(batch, name), n_read)
                    for name in names
                }
                found = zip(*(cells[name] for name in columns), strict=True)
                yield from ((f"row {n_read + i}", row) for i, row in enumerate(found, 1))
                n_read += batch.num_rows

    def column_of(self, batch: Any, name: str) -> Any:
        """Return a column's array from a record batch; null where its parent struct is null."""
        import pyarrow.compute as pc

        top, *inner = self.paths[name]
        column = batch.column(batch.schema.get_all_field_indices(top)[0])
        return pc.struct_field(column, inner) if inner else column

    @contextmanager
    def opened(self, shared: Sequence[str] = ()) -> Iterator[Any]:
        """Open the file and yield its `pyarrow.parquet.ParquetFile`; errors name the file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self.file.open("rb") as raw:
            try:
                parquet = pq.ParquetFile(raw, read_dictionary=list(shared))
            except (pa.ArrowException, OSError, EOFError) as error:
                raise self._damaged_error("") from error
            yield parquet

    def batches(self, parquet: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Read an opened Parquet file and yield record batches, with all columns by default."""
        import pyarrow as pa

        n_read = 0
        batches = parquet.iter_batches(BATCH_ROWS, columns=columns)
        while True:
            try:
                batch = next(batches, None)
            except pa.ArrowMemoryError as error:  # the file is whole, and too much of it at once
                raise MemoryError from error
            except (pa.ArrowException, OSError, EOFError) as error:
                raise self._damaged_error(f"after row {n_read}" if n_read else "") from error
            if batch is None:
                return
            n_read += batch.num_rows
            yield batch

    def _damaged_error(self, place: str) -> Exception:
        """Build, without raising it, the error for a damaged Parquet file."""
        return refusal(
            self.file, place, "is truncated, damaged or not Parquet. Copy or write it again."
        )


def _leaves(field: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and Arrow type of a column, or of each field of a struct."""
    import pyarrow as pa

    path = (*above, field.name)
    if pa.types.is_struct(field.type) and field.type.num_fields:
        for i in range(field.type.num_fields):
            yield from _leaves(field.type.field(i), path)
    else:
        yield path, field.type


def _is_text(kind: Any) -> bool:
    """Return whether an Arrow type is a string type."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_vector(kind: Any) -> bool:
    """Return whether an Arrow type is a list of numbers."""
    import pyarrow as pa

    if not (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        return False
    return bool(pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def column_values(file: File, column: Any, n_read: int) -> list[Any]:
    """Return an Arrow column as a list of Python values; raise if a row is not UTF-8."""
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
                    "is not UTF-8. Write the table again with its texts as UTF-8.",
                ) from error
        raise
