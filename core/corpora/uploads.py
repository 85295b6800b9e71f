"""Read tables that visitors upload: in memory, bounded in size even when unpacked.

Compressed files other than Parquet are refused by `raw_files` without being unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from leakscope.core.corpora.guess import FileFacts, inspect_file
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.raw_files import check_file, refusal
from leakscope.core.corpora.readers.tables import read_rows, table_format
from leakscope.core.corpora.rows import Columns, Row, check_rows, is_empty

MAX_UPLOAD_BYTES = 200 * 2**20
"""Must equal `maxUploadSize` of dashboard/.streamlit/config.toml, which rejects larger files first.
"""

MAX_UNPACKED_BYTES = 10**9
MAX_UPLOAD_ROWS = 50_000
MAX_CHARACTERS_READ = 50 * 10**6

_MAX_COLUMNS = 200


def is_table(file: MemoryFile) -> bool:
    """Return whether an uploaded file is a table by its extension, not plain text."""
    return bool(table_format(file))


def check_upload(file: MemoryFile) -> None:
    """Raise InvalidInputError if an uploaded file is unreadable or too large, also unpacked."""
    if len(file.content) > MAX_UPLOAD_BYTES:
        raise refusal(
            file,
            "",
            f"has {len(file.content) / 2**20:,.1f} MB; at most {MAX_UPLOAD_BYTES // 2**20} MB "
            "are accepted. Upload fewer rows.",
        )
    is_parquet = table_format(file) == "Parquet"
    check_file(file, is_parquet=is_parquet)
    if is_parquet:
        _check_unpacked(file)


def _check_unpacked(file: MemoryFile) -> None:
    """Raise InvalidInputError if a Parquet file's metadata declares too much unpacked data."""
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
            "read. Upload fewer rows.",
        )


def inspect_upload(file: MemoryFile) -> FileFacts:
    """Read an upload's first rows as `inspect_file` does; refuse too many columns.

    Raises
    ------
    InvalidInputError
        The file cannot be read as what its name says; the message names the remedy.
    """
    check_upload(file)
    facts = inspect_file(file)
    if len(facts.names) > _MAX_COLUMNS:
        raise refusal(
            file,
            "",
            f"has {len(facts.names):,} columns; at most {_MAX_COLUMNS} are read. Remove "
            "columns that are not needed.",
        )
    return facts


def read_upload(
    file: MemoryFile,
    *,
    text: str | None = None,
    others: tuple[str, ...] = (),
    wanted: int = 0,
) -> tuple[list[Row], bool, int]:
    """Read an upload's rows; return them, whether there were more, and the number without text.

    Rows without a text are skipped: one empty cell must not refuse a table.

    Parameters
    ----------
    text : str, optional
        Column of the texts of a table; the longest by default.
    others : tuple of str
        Columns to read along.
    wanted : int
        How many rows the caller can use: so many are read if they exceed MAX_UPLOAD_ROWS.

    Raises
    ------
    InvalidInputError
        The file, a row or a column cannot be used, or what is read of it is too long together.
    """
    check_upload(file)
    # `label` and `author` are columns as any other here: named ones alone are read.
    facts = inspect_file(file, Columns(text=text, others=others))
    columns = facts.columns
    rows: list[Row] = []
    n_characters = n_all = 0
    skipped: list[str] = []
    written = _with_text(read_rows(file, columns, facts.encoding), skipped)
    source = check_rows(file, written, columns, None)
    for row in islice(source, max(wanted, MAX_UPLOAD_ROWS)):
        n_characters += len(row.text)
        n_all += len(row.text) + sum(len(cell) for cell in row.others if cell)
        for n, most, what in (
            (n_characters, MAX_CHARACTERS_READ, "texts"),
            (n_all, MAX_UPLOAD_BYTES, "texts and the other columns"),
        ):
            if n > most:
                raise refusal(
                    file,
                    row.place,
                    f"exceeds the limit: the {what} have more than {most:,} characters together. "
                    "Upload fewer or shorter texts.",
                )
        rows.append(row)
    is_cut = next(source, None) is not None
    return rows, is_cut, len(skipped)


def _with_text(rows: Iterator[Row], skipped: list[str]) -> Iterator[Row]:
    """Yield the rows that have a text; append the places of the others to `skipped`."""
    for row in rows:
        if is_empty(row):
            skipped.append(row.place)
        else:
            yield row
