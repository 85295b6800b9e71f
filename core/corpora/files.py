"""Corpora from files: one text a line, CSV, TSV, JSON, JSONL or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.corpora.documents import Corpus, check_limit
from core.corpora.guess import FileFacts, facts_of
from core.corpora.rows import Columns, Row, check_rows, documents_of
from core.corpora.tables import read_rows

__all__ = ["load_file", "read_texts"]


def read_texts(
    path: Path | str, *, columns: Columns | None = None, limit: int | None = None
) -> list[str]:
    """Return the texts of the first `limit` rows as they stand in the file, all by default.

    Raises
    ------
    InvalidInputError
        The file, a row or a column cannot be used; the message names it and the remedy.
    """
    _, rows = _opened(Path(path), columns, limit)
    return [row.text for row in rows]


def _opened(
    path: Path, columns: Columns | None, limit: int | None
) -> tuple[FileFacts, Iterator[Row]]:
    """Return what a file holds, and its first `limit` rows, checked as they are read."""
    check_limit(limit)
    facts = facts_of(path, columns)
    rows = read_rows(path, facts.columns, facts.encoding)
    return facts, check_rows(path, rows, facts.columns, limit)


def load_file(
    path: Path | str,
    *,
    columns: Columns | None = None,
    limit: int | None = None,
    language: str = "en",
) -> Corpus:
    """Return the rows of a file as documents, numbered from 1.

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
        Of the texts, for the sentence splitter.

    Raises
    ------
    InvalidInputError
        The file, a row or a column cannot be used; the message names it and the remedy.
    """
    path = Path(path)
    facts, rows = _opened(path, columns, limit)
    documents = documents_of(path, rows, facts.columns)
    return Corpus(path.stem, documents, licence="the user's own file", language=language,
                  notes=facts.notes)  # fmt: skip
