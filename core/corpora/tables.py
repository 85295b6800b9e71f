"""Rows of user files, read as a stream: plain text, CSV, TSV, JSONL and Parquet.

Nothing in a file is executed or unpickled. Every refusal names the file, the place and what to
do. CSV is read by Python's csv module rather than pyarrow's reader, which cannot say on which
line a broken row stands and guesses types.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from core.corpora.raw_files import MAX_TEXT_CHARACTERS, File, check_file, read_lines, refusal
from core.corpora.rows import Columns, Row, row_of

__all__ = ["read_rows"]

_BATCH_ROWS = 2048
_DELIMITERS = (",", ";", "\t")


def read_rows(path: File, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a file by its ending: .csv, .tsv, .jsonl, .parquet, else one a line.

    Raises
    ------
    InvalidInputError
        As soon as something cannot be read; the message names file, place and remedy.
    """
    match path.suffix.lower():
        case ".csv":
            return _csv_rows(path, columns, _DELIMITERS)
        case ".tsv" | ".tab":
            return _csv_rows(path, columns, ("\t",))
        case ".jsonl" | ".ndjson" | ".json":
            return _jsonl_rows(path, columns)
        case ".parquet" | ".pq":
            return _parquet_rows(path, columns)
    lines = ((place, line.strip()) for place, line in read_lines(path))
    return (Row(place, line) for place, line in lines if line)


def _csv_rows(path: File, columns: Columns, delimiters: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a table with a header, quoted cells spanning lines where they do."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_TEXT_CHARACTERS + 1))
    lines = read_lines(path)
    first = next(((place, line) for place, line in lines if line.strip()), None)
    if first is None:
        return
    delimiter = _delimiter_of(first[1], columns, delimiters)
    reader = csv.reader(_chain(first[1], lines), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        chosen = columns.within(path, header)
        at = {role: header.index(column) for role, column in chosen.items()}
        for cells in reader:
            place = f"line {reader.line_num}"
            if not cells:
                continue
            if len(cells) != len(header):
                raise refusal(
                    path,
                    place,
                    f"has {len(cells)} cells where the header has {len(header)}. Put texts that "
                    f"hold {_NAMES[delimiter]} or line breaks in double quotes.",
                )
            yield row_of(place, {role: cells[i] for role, i in at.items()})
    except csv.Error as error:
        raise refusal(
            path,
            f"line {reader.line_num}",
            f"is not a row of CSV ({error}). Close every double quote, and write a double quote "
            "within a text as two.",
        ) from error


_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}


def _chain(first: str, rest: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield first
    yield from (line for _, line in rest)


def _delimiter_of(header: str, columns: Columns, delimiters: Sequence[str]) -> str:
    """Return the delimiter that lets the header hold the text's column; the first otherwise."""
    for delimiter in delimiters:
        cells = next(csv.reader([header], delimiter=delimiter), [])
        if columns.text in [cell.strip() for cell in cells]:
            return delimiter
    return delimiters[0]


def _jsonl_rows(path: File, columns: Columns) -> Iterator[Row]:
    """Yield one object a line."""
    chosen: dict[str, str] = {}
    for place, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested or too long"
            raise refusal(
                path, place, f"is not JSON ({reason}). Write one object a line."
            ) from error
        if not isinstance(record, dict):
            raise refusal(
                path, place, 'is not a JSON object. Write one object a line: {"text": "…"}.'
            )
        chosen = chosen or columns.within(path, list(record))
        yield row_of(place, {role: record.get(c) for role, c in chosen.items()})


def _parquet_rows(path: File, columns: Columns) -> Iterator[Row]:
    """Yield the rows of the columns that are used, a batch in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_file(path, is_parquet=True)
    n_read = 0
    try:
        with path.open("rb") as raw:
            names, texts = _schema(raw)
            chosen = columns.within(path, names)
            names = list(dict.fromkeys(chosen.values()))
            # A text that is repeated stays in memory once, however often a small file repeats it.
            file = pq.ParquetFile(raw, read_dictionary=[n for n in names if n in texts])
            for batch in file.iter_batches(_BATCH_ROWS, columns=names):
                cells = {name: _values(path, batch.column(name), n_read) for name in names}
                for i, values in enumerate(
                    zip(*(cells[c] for c in chosen.values()), strict=True), 1
                ):
                    yield row_of(f"row {n_read + i}", dict(zip(chosen, values, strict=True)))
                n_read += batch.num_rows
    except (pa.ArrowException, OSError, EOFError) as error:
        place = f"after row {n_read}" if n_read else ""
        raise refusal(
            path, place, "is truncated, damaged or not Parquet. Copy or write it again."
        ) from error


def _schema(raw: BinaryIO) -> tuple[list[str], set[str]]:
    """Return the names of a Parquet file's columns, and of those that hold text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.ParquetFile(raw).schema_arrow
    return schema.names, {f.name for f in schema if pa.types.is_string(f.type)}


def _values(path: File, column: Any, n_read: int) -> list[Any]:
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
                    path,
                    f"row {n_read + i}",
                    "is not UTF-8. Write the table again, its texts as UTF-8.",
                ) from error
        raise
