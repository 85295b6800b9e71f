"""What a file holds before it is read: its columns, the one with the texts, its encoding.

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

from core.corpora.encodings import UTF_8, encoding_note, encoding_of
from core.corpora.memory_file import File
from core.corpora.raw_files import Source, refusal
from core.corpora.rows import Columns, columns_said, is_empty, looks_like_vector
from core.corpora.tables import CsvTable, Table, open_table, read_rows
from core.corpora.vector_columns import vectors_of
from core.errors import InvalidInputError

__all__ = [
    "SAMPLE_ROWS",
    "FileFacts",
    "check_holds_text",
    "facts_of",
    "guess_note",
    "longest_text_column",
    "text_column_of",
]

SAMPLE_ROWS = 200
_SAMPLE_CHARACTERS = 10**6
_SAMPLE_COLUMNS = 1000


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """What a file holds.

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
        What whoever reads the file should know: the guess, if there was one, comes first; then
        an encoding other than Unicode.
    """

    names: tuple[str, ...]
    columns: Columns
    is_guessed: bool = False
    encoding: str = UTF_8
    vectors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def facts_of(file: File, columns: Columns | None = None) -> FileFacts:
    """Return what a file holds; only its first rows are read as such.

    Raises
    ------
    InvalidInputError
        There is no such file, it is not what its name says, or a column is not there.
    """
    columns = columns or Columns()
    table = open_table(file, columns.text)
    if table is None:
        if columns != Columns():
            raise refusal(file, "", "is plain text, a text a line. Name no column of it.")
        encoding = encoding_of(file)
        return FileFacts(names=(), columns=columns, encoding=encoding,
                         notes=_told(encoding_note(file, encoding)))  # fmt: skip
    is_guessed = columns.text is None and len(set(table.names)) > 1
    if table.names:
        columns = replace(columns, text=columns.text or text_column_of(file, table))
        columns.within(file, table.names)
    guess = guess_note(file, columns.text) if is_guessed else ""
    plain_quotes = _plain_quotes_note(file, table) if isinstance(table, CsvTable) else ""
    return FileFacts(
        names=tuple(dict.fromkeys(table.names)),
        columns=columns,
        is_guessed=is_guessed,
        encoding=table.encoding,
        vectors=vectors_of(table),
        notes=_told(guess, encoding_note(file, table.encoding), plain_quotes),
    )


def _plain_quotes_note(file: File, table: CsvTable) -> str:
    """Return what to know of double quotes that the first rows hold unescaped, or nothing."""
    with suppress(InvalidInputError):
        for _ in islice(table.whole_rows(), SAMPLE_ROWS):
            pass
    if not table.repaired:
        return ""
    return (
        f"{file}, {table.repaired}: a quoted text holds double quotes that are not written as two; "
        "they are read as part of it"
    )


def _told(*notes: str) -> tuple[str, ...]:
    return tuple(note for note in notes if note)


def guess_note(source: Source, column: str | None) -> str:
    """Return the sentence that tells a guess."""
    return f"{source}: reading column `{column}`, the longest texts"


def check_holds_text(file: File, facts: FileFacts) -> None:
    """Raise InvalidInputError where no row has a text; stops at the first that has one."""
    rows = read_rows(file, facts.columns, facts.encoding)
    if all(is_empty(row) for row in rows):
        where = f"column {facts.columns.text!r} holds" if facts.names else "holds"
        raise refusal(file, "", f"{where} no text. Give at least one, or name another column.")


def text_column_of(source: Source, table: Table) -> str:
    """Return the column of a table that holds the longest texts.

    Raises
    ------
    InvalidInputError
        No column holds texts, among several; or two columns have one name.
    """
    twice = next((name for name, n in Counter(table.text_names).items() if name and n > 1), None)
    if twice is not None:
        raise refusal(
            source, "", f"has the column {twice!r} twice. Rename one, or name that of the texts."
        )
    names = list(dict.fromkeys(table.text_names))[:_SAMPLE_COLUMNS]
    return longest_text_column(names, _cells(table, names)) or _only_column(source, table)


def _cells(table: Table, names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield rows up to the first that is broken: whoever reads them says what is wrong."""
    with suppress(InvalidInputError):
        yield from (cells for _, cells in table.rows(names))


def _only_column(source: Source, table: Table) -> str:
    """Return the column to read where none holds texts; reading it says what it holds."""
    names = list(dict.fromkeys(table.names))
    if len(names) == 1 or "text" in names:
        return "text" if "text" in names else names[0]
    remedy = "Add a column of texts"
    if isinstance(table, CsvTable):
        remedy += ", or name one to read what it holds as texts"
    raise refusal(
        source,
        "",
        f"none of its {len(names)} columns holds texts. {columns_said(names)}. {remedy}.",
    )


def longest_text_column(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str | None:
    """Return the column with the most characters over the first rows; None if none holds text.

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
    """Return the characters of a text; what holds no letter is a number, a date or nothing."""
    if not isinstance(cell, str) or not any(sign.isalpha() for sign in cell):
        return 0
    if looks_like_vector(cell):  # of 1e-05, the e is no letter
        return 0
    return len(cell)
