"""Open users' tables (CSV, TSV, JSON, Parquet) or plain text, and read their rows.

They are read as a stream, but for JSON that is one document.

Nothing in a file is executed or unpickled. Every refusal names the file, the place and what to
do. CSV is read by Python's csv module rather than pyarrow's reader, which cannot say on which
line a broken row stands and guesses types.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from leakscope.core.corpora.readers.encodings import encoding_of
from leakscope.core.corpora.readers.json_table import JsonTable
from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.corpora.readers.parquet_table import ParquetTable
from leakscope.core.corpora.readers.raw_files import (
    MAX_TEXT_CHARACTERS,
    check_file,
    read_lines,
    refusal,
)
from leakscope.core.corpora.rows import Columns, Row, looks_like_vector, make_row

_KINDS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".tab": "TSV",
    ".jsonl": "JSONL",
    ".ndjson": "JSONL",
    ".json": "JSONL",
    ".parquet": "Parquet",
    ".pq": "Parquet",
}
TABLE_TYPES = tuple(ending.removeprefix(".") for ending in _KINDS)
"""File extensions of tables, without the dot, for file choosers."""

_MOST_ROW_CHARACTERS = 8 * MAX_TEXT_CHARACTERS
_DELIMITERS = {"CSV": (",", ";", "\t"), "TSV": ("\t",)}
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}


class Table(Protocol):
    """Protocol of a file with named columns.

    Attributes
    ----------
    names : list of str
        The columns, those of nested objects behind a dot (`payload.text`); of JSON, those of the
        first records. Empty where the file holds no row.
    text_names : list of str
        Those that may hold texts.
    encoding : str
        Encoding of the file, from `encoding_of`.
    """

    names: list[str]
    text_names: list[str]
    encoding: str

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield each row's place and its cells of the named columns."""
        ...


def table_format(file: File) -> str:
    """Return CSV, TSV, JSONL or Parquet by the file name's extension; "" for plain text."""
    return _KINDS.get(file.suffix.lower(), "")


def open_table(file: File, text: str | None = None) -> Table | None:
    """Open a table and read its column names; return None for plain text.

    Parameters
    ----------
    text : str, optional
        Column of the texts, which helps to tell commas from semicolons.

    Raises
    ------
    InvalidInputError
        There is no such file, or it is not what its name says.
    """
    kind = table_format(file)
    check_file(file, is_parquet=kind == "Parquet")
    if kind in _DELIMITERS:
        return CsvTable(file, _DELIMITERS[kind], text)
    if kind:
        return JsonTable(file) if kind == "JSONL" else ParquetTable(file)
    return None


def read_rows(file: File, columns: Columns, encoding: str | None = None) -> Iterator[Row]:
    """Read a file; yield the rows of a table, or the non-blank lines of plain text.

    Parameters
    ----------
    columns : Columns
        Column roles, including the text column unless the file is plain text.
    encoding : str, optional
        Encoding of plain text, from `encoding_of`.

    Raises
    ------
    InvalidInputError
        As soon as something cannot be read; the message names file, place and remedy.
    """
    table = open_table(file, columns.text)
    if table is None:
        lines = ((place, line.strip()) for place, line in read_lines(file, encoding))
        yield from (Row(place, line) for place, line in lines if line)
    elif table.names:
        chosen = columns.resolve(file, table.names)
        for place, cells in table.rows(list(chosen.values())):
            yield make_row(place, dict(zip(chosen, cells, strict=True)))


_SEPARATOR = re.compile(r"(\"?)sep=([^\w\s\"]|\t)\1\s*", re.IGNORECASE)
"""Excel's delimiter line (`sep=;`), which precedes the header."""


class CsvTable:
    """A CSV or TSV table with a header; quoted cells may span lines.

    Attributes
    ----------
    header : list of str
        As it stands in the file.
    separator_line : str
        Excel's `sep=;` before the header, with its line end; empty without.
    repaired : str
        Where the first row stands whose texts hold double quotes that are not written as two;
        empty where none was read so far.
    """

    def __init__(self, file: File, delimiters: Sequence[str], text: str | None = None) -> None:
        self.file, self.encoding = file, encoding_of(file)
        self.repaired = ""
        csv.field_size_limit(max(csv.field_size_limit(), MAX_TEXT_CHARACTERS + 1))
        self.separator_line, self.header = "", []
        first = next((line for _, line in self._lines()), "")
        if told := _SEPARATOR.fullmatch(first):
            self.separator_line, self.delimiter = first, told[2]
        else:
            self.delimiter = _delimiter_of(first, text, delimiters)
        self.header = next((cells for _, cells in self._parse_rows()), [])
        self.names = [name.strip() for name in self.header]
        if any(map(looks_like_vector, self.names)):
            raise refusal(
                file,
                "line 1",
                "contains a vector instead of column names. Export the table with a "
                "header, as COPY … WITH (FORMAT csv, HEADER) does.",
            )
        self.text_names = self.names

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield each row's place and its cells of the named columns."""
        at = [self.names.index(name) for name in columns]
        for place, cells in self.whole_rows():
            yield place, [cells[i] for i in at]

    def whole_rows(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each row's place and all of its cells."""
        rows = self._parse_rows()
        next(rows, None)
        for place, cells in rows:
            if len(cells) != len(self.header):
                delimiters = _NAMES.get(self.delimiter, repr(self.delimiter))
                raise refusal(
                    self.file,
                    place,
                    f"has {len(cells)} cells, but the header has {len(self.header)}. Put texts "
                    f"that contain {delimiters} or line breaks in double quotes.",
                )
            yield place, cells

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Yield the place and text of each line from the header on, without the `sep=` line."""
        is_begun = False
        for place, line in read_lines(self.file, self.encoding):
            if not is_begun and line.strip():
                is_begun = True
                if line == self.separator_line:
                    continue
            if is_begun:
                yield place, line

    def _parse_rows(self) -> Iterator[tuple[str, list[str]]]:
        """Parse the file; yield the place and cells of the header and of each row."""
        place, record = "line 1", ""

        def lines() -> Iterator[str]:
            """Yield the file's lines and append each to the text of the current row."""
            nonlocal place, record
            for found, line in self._lines():
                place = found
                record += line
                if len(record) > _MOST_ROW_CHARACTERS:
                    raise refusal(
                        self.file,
                        place,
                        f"starts a row of more than {_MOST_ROW_CHARACTERS:,} characters. Close "
                        "every double quote.",
                    )
                yield line

        given = lines()
        while True:
            try:
                for cells in csv.reader(given, delimiter=self.delimiter, strict=True):
                    record = ""
                    if cells:
                        yield place, cells
                return
            except csv.Error as error:
                is_quote = "expected after" in str(error)
                cells = _with_plain_quotes(record, self.delimiter) if is_quote else []
                if not cells or len(cells) != len(self.header or cells):
                    raise refusal(
                        self.file,
                        place,
                        f"is not a row of CSV ({error}). Close every double quote, and write a "
                        "double quote within a text as two.",
                    ) from error
                self.repaired = self.repaired or place
                record = ""
                yield place, cells


def _with_plain_quotes(record: str, delimiter: str) -> list[str]:
    """Parse a CSV row whose quoted cells contain unescaped double quotes; [] if that fails.

    A quoted cell ends with the first double quote that a delimiter or the end of the row follows.
    Nothing is returned where one does not end so.

    Examples
    --------
    >>> _with_plain_quotes('1;"He said "no", and left."', ";")
    ['1', 'He said "no", and left.']
    """
    cells, rest = [], record.rstrip("\r\n")
    quoted = re.compile(rf'"(.*?)"(?:{re.escape(delimiter)}|\Z)', re.DOTALL)
    while True:
        if rest.startswith('"'):
            found = quoted.match(rest)
            if found is None:
                return []
            cells.append(found[1].replace('""', '"'))
            if found.end() == len(rest) and not found[0].endswith(delimiter):
                return cells
            rest = rest[found.end() :]
            continue
        cell, more, rest = rest.partition(delimiter)
        cells.append(cell)
        if not more:
            return cells


def _delimiter_of(header: str, text: str | None, delimiters: Iterable[str]) -> str:
    """Return the delimiter with which the header has the text column, or the most columns."""
    cells = {}
    for delimiter in delimiters:
        try:
            found = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:  # reading the header says what is wrong
            found = []
        cells[delimiter] = [cell.strip() for cell in found]
    holding = (delimiter for delimiter, names in cells.items() if text in names)
    return next(holding, max(cells, key=lambda delimiter: len(cells[delimiter])))
