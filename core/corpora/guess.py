"""Inspect a file before reading it: its columns, its text column and its encoding.

The column of the texts is the one named, or the longest text column: of the first rows, the one
with the most characters a row; of equals, the first. Commands and pages all ask here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from leakscope.core.corpora.readers.encodings import UTF_8, encoding_note, encoding_of
from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.corpora.readers.raw_files import Source, refusal
from leakscope.core.corpora.readers.tables import CsvTable, Table, open_table, read_rows
from leakscope.core.corpora.readers.vector_columns import table_vector_columns
from leakscope.core.corpora.rows import Columns, describe_columns, is_empty, looks_like_vector
from leakscope.core.errors import InvalidInputError

SAMPLE_ROWS = 200
_SAMPLE_CHARACTERS = 10**6
_SAMPLE_COLUMNS = 1000


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """The columns, text column, encoding and reading notes of a file.

    Attributes
    ----------
    names : tuple of str
        Its columns; none in plain text.
    columns : Columns
        As asked for, with the column of the texts; that is None in plain text.
    is_guessed : bool
        The column of the texts was chosen here, among others.
    encoding : str
        As `encoding_of` tells it.
    vectors : tuple of str
        Those of the columns whose cells are vectors.
    notes : tuple of str
        Notes for the reader of the file: the guess, if there was one, comes first; then
        an encoding other than Unicode.
    """

    names: tuple[str, ...]
    columns: Columns
    is_guessed: bool = False
    encoding: str = UTF_8
    vectors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def inspect_file(file: File, columns: Columns | None = None) -> FileFacts:
    """Read a file's first rows; return column names, text and vector columns, and encoding.

    Raises
    ------
    InvalidInputError
        There is no such file, it is not what its name says, or a column is not there.
    """
    columns = columns or Columns()
    table = open_table(file, columns.text)
    if table is None:
        if columns != Columns():
            raise refusal(file, "", "is plain text with one text per line. Leave the column out.")
        encoding = encoding_of(file)
        return FileFacts(
            names=(),
            columns=columns,
            encoding=encoding,
            notes=_non_empty(encoding_note(file, encoding)),
        )
    is_guessed = columns.text is None and len(set(table.names)) > 1
    if table.names:
        columns = replace(columns, text=columns.text or find_text_column(file, table))
        columns.resolve(file, table.names)
    guess = guess_note(file, columns.text) if is_guessed else ""
    plain_quotes = _plain_quotes_note(file, table) if isinstance(table, CsvTable) else ""
    return FileFacts(
        names=tuple(dict.fromkeys(table.names)),
        columns=columns,
        is_guessed=is_guessed,
        encoding=table.encoding,
        vectors=table_vector_columns(table),
        notes=_non_empty(guess, encoding_note(file, table.encoding), plain_quotes),
    )


def _plain_quotes_note(file: File, table: CsvTable) -> str:
    """Read a CSV table's first rows; return a note if quotes in it are unescaped, else ""."""
    with suppress(InvalidInputError):
        for _ in islice(table.whole_rows(), SAMPLE_ROWS):
            pass
    if not table.repaired:
        return ""
    return (
        f"{file}, {table.repaired}: a quoted text contains double quotes that are not doubled; "
        "they are treated as part of the text"
    )


def _non_empty(*notes: str) -> tuple[str, ...]:
    """Return the notes that are not empty, as a tuple."""
    return tuple(note for note in notes if note)


def guess_note(source: Source, column: str | None) -> str:
    """Return a note that names the guessed text column."""
    return f"{source}: using column `{column}`, which has the longest texts"


def check_holds_text(file: File, facts: FileFacts) -> None:
    """Read a file's rows; raise InvalidInputError if none has a text."""
    rows = read_rows(file, facts.columns, facts.encoding)
    if all(is_empty(row) for row in rows):
        where = f"column {facts.columns.text!r} holds" if facts.names else "holds"
        raise refusal(file, "", f"{where} no text. Give at least one text, or name another column.")


def find_text_column(source: Source, table: Table) -> str:
    """Read a table's first rows; return the name of the column with the longest texts.

    Raises
    ------
    InvalidInputError
        No column holds texts, among several; or two columns have one name.
    """
    twice = next((name for name, n in Counter(table.text_names).items() if name and n > 1), None)
    if twice is not None:
        raise refusal(
            source,
            "",
            f"has the column {twice!r} twice. Rename one, or name the column of the texts.",
        )
    names = list(dict.fromkeys(table.text_names))[:_SAMPLE_COLUMNS]
    return longest_text_column(names, _read_cells(table, names)) or _only_column(source, table)


def _read_cells(table: Table, names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield each row's cells of the named columns, up to the first broken row."""
    with suppress(InvalidInputError):
        yield from (cells for _, cells in table.rows(names))


def _only_column(source: Source, table: Table) -> str:
    """Return a table's only column, or the one named `text`; raise InvalidInputError otherwise."""
    names = list(dict.fromkeys(table.names))
    if len(names) == 1 or "text" in names:
        return "text" if "text" in names else names[0]
    remedy = "Add a column of texts"
    if isinstance(table, CsvTable):
        remedy += ", or name the column to use as texts"
    raise refusal(
        source,
        "",
        f"none of its {len(names)} columns holds texts. {describe_columns(names)}. {remedy}.",
    )


def longest_text_column(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str | None:
    """Return the name of the column with the longest texts in the first rows, or None.

    Rows are read until SAMPLE_ROWS or a million characters, and on while no text was met.

    Examples
    --------
    >>> longest_text_column(["id", "title", "body"], [["2024-11-30", "Rain", "It rained."]])
    'body'
    """
    lengths = dict.fromkeys(names, 0)
    for n_rows, cells in enumerate(rows, 1):
        for name, cell in zip(names, cells, strict=True):
            lengths[name] += _length(cell)
        total = sum(lengths.values())
        if total and (n_rows >= SAMPLE_ROWS or total >= _SAMPLE_CHARACTERS):
            break
    longest = max(lengths, key=lambda name: lengths[name], default=None)
    return longest if longest is not None and lengths[longest] else None


def _length(cell: Any) -> int:
    """Return the number of characters of a text cell; 0 for numbers, dates and vectors."""
    if not isinstance(cell, str) or not any(sign.isalpha() for sign in cell):
        return 0
    if looks_like_vector(cell):  # of 1e-05, the e is no letter
        return 0
    return len(cell)
