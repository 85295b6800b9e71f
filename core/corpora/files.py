"""Load corpora from files: one text per line, CSV, TSV, JSON, JSONL or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from leakscope.core.corpora.documents import Corpus, check_limit
from leakscope.core.corpora.guess import FileFacts, inspect_file
from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.corpora.readers.tables import read_rows
from leakscope.core.corpora.rows import Columns, Row, check_rows, rows_to_documents


def read_texts(
    path: File | str, *, columns: Columns | None = None, limit: int | None = None
) -> list[str]:
    """Read a file and return the texts of its first `limit` rows (all by default).

    Raises
    ------
    InvalidInputError
        The file, a row or a column cannot be used; the message names it and the remedy.
    """
    _, rows = _open_checked_rows(Path(path) if isinstance(path, str) else path, columns, limit)
    return [row.text for row in rows]


def _open_checked_rows(
    path: File, columns: Columns | None, limit: int | None
) -> tuple[FileFacts, Iterator[Row]]:
    """Inspect a file; return its columns and encoding, and an iterator over its checked rows."""
    check_limit(limit)
    facts = inspect_file(path, columns)
    rows = read_rows(path, facts.columns, facts.encoding)
    return facts, check_rows(path, rows, facts.columns, limit)


def load_file(
    path: Path | str,
    *,
    columns: Columns | None = None,
    limit: int | None = None,
    language: str = "en",
) -> Corpus:
    """Load a file as a corpus: one document per row, numbered from 1.

    With `columns.document`, the rows of one value are one document with that value as its id,
    and each row is a paragraph of it.

    Parameters
    ----------
    path : Path or str
        One text a line, or by its ending: .csv, .tsv, .jsonl, .parquet.
    columns : Columns, optional
        Of a table; the longest text column by default, with `label` and `author` where they
        exist.
    limit : int, optional
        Number of rows read, from the first.
    language : str
        Language of the texts, for the sentence splitter.

    Raises
    ------
    InvalidInputError
        The file, a row or a column cannot be used; the message names it and the remedy.
    """
    path = Path(path)
    facts, rows = _open_checked_rows(path, columns, limit)
    documents = rows_to_documents(path, rows, facts.columns)
    return Corpus(
        path.stem, documents, licence="the user's own file", language=language, notes=facts.notes
    )
