"""Tables that visitors upload: held in memory, of bounded size also when unpacked.

Compressed files other than Parquet are refused by `raw_files` without being unpacked.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import islice

from core.corpora.memory_file import MemoryFile
from core.corpora.raw_files import check_file, read_lines, refusal
from core.corpora.rows import Columns, Row, check_rows, is_empty
from core.corpora.tables import read_rows

__all__ = ["MAX_CHARACTERS_READ", "MAX_UNPACKED_BYTES", "MAX_UPLOAD_BYTES", "MAX_UPLOAD_ROWS",
           "column_names", "guess_text_column", "is_table", "read_upload"]  # fmt: skip

MAX_UPLOAD_BYTES = 200 * 2**20
"""As `maxUploadSize` of `.streamlit/config.toml`, which refuses more before it is received."""

MAX_UNPACKED_BYTES = 10**9
MAX_UPLOAD_ROWS = 50_000
MAX_CHARACTERS_READ = 50 * 10**6

_MAX_COLUMNS = 200
_TABLES = {".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".pq"}
_TEXT_COLUMNS = ("text", "sentence", "content", "body", "review", "message")


def is_table(file: MemoryFile) -> bool:
    """Return whether the file has columns; others hold one text a line."""
    return file.suffix.lower() in _TABLES


def check_upload(file: MemoryFile) -> None:
    """Raise InvalidInputError for a file that is too large, or would be when unpacked."""
    if len(file.content) > MAX_UPLOAD_BYTES:
        raise refusal(
            file,
            "",
            f"has {len(file.content) / 2**20:,.1f} MB; at most {MAX_UPLOAD_BYTES // 2**20} MB "
            "are accepted. Take fewer rows.",
        )
    is_parquet = file.suffix.lower() in (".parquet", ".pq")
    check_file(file, is_parquet=is_parquet)
    if is_parquet:
        _check_unpacked(file)


def _check_unpacked(file: MemoryFile) -> None:
    """Read what a Parquet file says of its size before anything of it is unpacked."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        facts = pq.ParquetFile(file.open()).metadata
        unpacked = sum(facts.row_group(i).total_byte_size for i in range(facts.num_row_groups))
    except (pa.ArrowException, OSError, EOFError) as error:
        raise refusal(
            file, "", "is truncated, damaged or not Parquet. Copy or write it again."
        ) from error
    if unpacked > MAX_UNPACKED_BYTES:
        raise refusal(
            file,
            "",
            f"unpacks to {unpacked / 1e9:,.1f} GB; at most {MAX_UNPACKED_BYTES / 1e9:g} GB are "
            "read. Take fewer rows.",
        )


def column_names(file: MemoryFile) -> list[str]:
    """Return the names of a table's columns, those of its first row in JSONL; [] for plain text.

    Raises
    ------
    InvalidInputError
        The file cannot be read as what its name says; the message names the remedy.
    """
    check_upload(file)
    kind = file.suffix.lower()
    if not is_table(file):
        return []
    if kind in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        names = list(pq.ParquetFile(file.open()).schema_arrow.names)
    else:
        names = _first_line(file, kind)
    if len(names) > _MAX_COLUMNS:
        raise refusal(file, "", f"has {len(names):,} columns; at most {_MAX_COLUMNS} are read.")
    return list(dict.fromkeys(names))


def _first_line(file: MemoryFile, kind: str) -> list[str]:
    place, line = next(((p, t) for p, t in read_lines(file) if t.strip()), ("line 1", ""))
    if kind in (".jsonl", ".ndjson", ".json"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise refusal(
                file, place, 'is not a JSON object. Write one object a line: {"text": "…"}.'
            )
        return [str(name) for name in record]
    delimiters = ("\t",) if kind in (".tsv", ".tab") else (",", ";", "\t")
    rows = [next(csv.reader([line], delimiter=d), []) for d in delimiters]
    return [cell.strip() for cell in max(rows, key=len)]


def guess_text_column(names: list[str]) -> str:
    """Return the column that probably holds the texts: one of that name, or the first."""
    lowered = {name.lower(): name for name in reversed(names)}
    return next((lowered[name] for name in _TEXT_COLUMNS if name in lowered), names[0])


def read_upload(
    file: MemoryFile, *, text: str = "text", others: tuple[str, ...] = ()
) -> tuple[list[Row], bool, int]:
    """Return the first rows of an upload, checked; whether it has more; how many were skipped.

    Rows without a text are skipped: one empty cell must not refuse a table.

    Parameters
    ----------
    text : str
        Column of the texts; of no account in a file of one text a line.
    others : tuple of str
        Columns to read along.

    Raises
    ------
    InvalidInputError
        The file, a row or a column cannot be used, or its texts are too long together.
    """
    check_upload(file)
    # `label` and `author` are columns as any other here: named ones alone are read.
    columns = Columns(text=text, others=others)
    rows: list[Row] = []
    n_characters = 0
    skipped: list[str] = []
    written = _with_text(read_rows(file, columns), skipped)
    source = check_rows(file, written, columns, None)
    for row in islice(source, MAX_UPLOAD_ROWS):
        n_characters += len(row.text)
        if n_characters > MAX_CHARACTERS_READ:
            raise refusal(
                file,
                row.place,
                f"is where the texts pass {MAX_CHARACTERS_READ:,} characters together. Take fewer "
                "or shorter texts.",
            )
        rows.append(row)
    is_cut = next(source, None) is not None
    return rows, is_cut, len(skipped)


def _with_text(rows: Iterator[Row], skipped: list[str]) -> Iterator[Row]:
    """Yield the rows with a text, and note the places of the others."""
    for row in rows:
        if is_empty(row):
            skipped.append(row.place)
        else:
            yield row
