"""Tables that visitors upload: held in memory, of bounded size also when unpacked.

Compressed files other than Parquet are refused by `raw_files` without being unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from core.corpora.guess import FileFacts, facts_of
from core.corpora.memory_file import MemoryFile
from core.corpora.raw_files import check_file, refusal
from core.corpora.rows import Columns, Row, check_rows, is_empty
from core.corpora.tables import kind_of, read_rows

__all__ = ["MAX_CHARACTERS_READ", "MAX_UNPACKED_BYTES", "MAX_UPLOAD_BYTES", "MAX_UPLOAD_ROWS",
           "check_upload", "is_table", "read_upload", "upload_facts"]  # fmt: skip

MAX_UPLOAD_BYTES = 200 * 2**20
"""As `maxUploadSize` of dashboard/.streamlit/config.toml, which refuses more before it arrives."""

MAX_UNPACKED_BYTES = 10**9
MAX_UPLOAD_ROWS = 50_000
MAX_CHARACTERS_READ = 50 * 10**6

_MAX_COLUMNS = 200


def is_table(file: MemoryFile) -> bool:
    """Return whether the file has columns; others hold one text a line."""
    return bool(kind_of(file))


def check_upload(file: MemoryFile) -> None:
    """Raise InvalidInputError for a file that is too large, or would be when unpacked."""
    if len(file.content) > MAX_UPLOAD_BYTES:
        raise refusal(
            file,
            "",
            f"has {len(file.content) / 2**20:,.1f} MB; at most {MAX_UPLOAD_BYTES // 2**20} MB "
            "are accepted. Take fewer rows.",
        )
    is_parquet = kind_of(file) == "Parquet"
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


def upload_facts(file: MemoryFile) -> FileFacts:
    """Return what an upload holds, as `facts_of` does, within the bounds of an upload.

    Raises
    ------
    InvalidInputError
        The file cannot be read as what its name says; the message names the remedy.
    """
    check_upload(file)
    facts = facts_of(file)
    if len(facts.names) > _MAX_COLUMNS:
        raise refusal(
            file,
            "",
            f"has {len(facts.names):,} columns; at most {_MAX_COLUMNS} are read. Leave "
            "out those that are not needed.",
        )
    return facts


def read_upload(
    file: MemoryFile, *, text: str | None = None, others: tuple[str, ...] = ()
) -> tuple[list[Row], bool, int]:
    """Return the first rows of an upload, checked; whether it has more; how many were skipped.

    Rows without a text are skipped: one empty cell must not refuse a table.

    Parameters
    ----------
    text : str, optional
        Column of the texts of a table; the longest by default.
    others : tuple of str
        Columns to read along.

    Raises
    ------
    InvalidInputError
        The file, a row or a column cannot be used, or what is read of it is too long together.
    """
    check_upload(file)
    # `label` and `author` are columns as any other here: named ones alone are read.
    facts = facts_of(file, Columns(text=text, others=others))
    columns = facts.columns
    rows: list[Row] = []
    n_characters = n_all = 0
    skipped: list[str] = []
    written = _with_text(read_rows(file, columns, facts.encoding), skipped)
    source = check_rows(file, written, columns, None)
    for row in islice(source, MAX_UPLOAD_ROWS):
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
                    f"is where the {what} pass {most:,} characters together. Take fewer or "
                    "shorter ones.",
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
