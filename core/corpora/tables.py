"""Tables of users, read as a stream: CSV, TSV, JSONL and Parquet; and plain text, which is none.

Nothing in a file is executed or unpickled. Every refusal names the file, the place and what to
do. CSV is read by Python's csv module rather than pyarrow's reader, which cannot say on which
line a broken row stands and guesses types.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from core.corpora.encodings import encoding_of
from core.corpora.memory_file import File
from core.corpora.parquet_table import ParquetTable
from core.corpora.raw_files import MAX_TEXT_CHARACTERS, check_file, read_lines, refusal
from core.corpora.rows import Columns, Row, row_of

__all__ = ["CsvTable", "JsonTable", "Table", "kind_of", "open_table", "read_rows"]

_KINDS = {
    ".csv": "CSV", ".tsv": "TSV", ".tab": "TSV", ".jsonl": "JSONL", ".ndjson": "JSONL",
    ".json": "JSONL", ".parquet": "Parquet", ".pq": "Parquet",
}  # fmt: skip
_MOST_ROW_CHARACTERS = 8 * MAX_TEXT_CHARACTERS
_DELIMITERS = {"CSV": (",", ";", "\t"), "TSV": ("\t",)}
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}


class Table(Protocol):
    """A file with columns.

    Attributes
    ----------
    names : list of str
        The columns; of JSONL, those of the first record. Empty where the file holds no row.
    text_names : list of str
        Those that may hold texts.
    encoding : str
        Of the file, as `encoding_of` tells it.
    """

    names: list[str]
    text_names: list[str]
    encoding: str

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield where each row stands, and its cells of these columns."""
        ...


def kind_of(file: File) -> str:
    """Return CSV, TSV, JSONL or Parquet, by the ending of a file's name; nothing for plain text."""
    return _KINDS.get(file.suffix.lower(), "")


def open_table(file: File, text: str | None = None) -> Table | None:
    """Open a table and read the names of its columns; return None for plain text.

    Parameters
    ----------
    text : str, optional
        Column of the texts, which helps to tell commas from semicolons.

    Raises
    ------
    InvalidInputError
        There is no such file, or it is not what its name says.
    """
    kind = kind_of(file)
    check_file(file, is_parquet=kind == "Parquet")
    if kind in _DELIMITERS:
        return CsvTable(file, _DELIMITERS[kind], text)
    if kind:
        return JsonTable(file) if kind == "JSONL" else ParquetTable(file)
    return None


def read_rows(file: File, columns: Columns, encoding: str | None = None) -> Iterator[Row]:
    """Yield the rows of a table, or the lines of plain text that hold something.

    Parameters
    ----------
    columns : Columns
        With the column of the texts, unless the file is plain text.
    encoding : str, optional
        Of plain text, as `encoding_of` told it before.

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
        chosen = columns.within(file, table.names)
        for place, cells in table.rows(list(chosen.values())):
            yield row_of(place, dict(zip(chosen, cells, strict=True)))


class CsvTable:
    """A table with a header, quoted cells spanning lines where they do."""

    def __init__(self, file: File, delimiters: Sequence[str], text: str | None = None) -> None:
        self.file, self.encoding = file, encoding_of(file)
        csv.field_size_limit(max(csv.field_size_limit(), MAX_TEXT_CHARACTERS + 1))
        first = next((line for _, line in self._lines()), "")
        self.delimiter = _delimiter_of(first, text, delimiters)
        self.header = next((cells for _, cells in self._read()), [])
        """As it stands in the file."""
        self.names = [name.strip() for name in self.header]
        self.text_names = self.names

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield where each row stands, and its cells of these columns."""
        at = [self.names.index(name) for name in columns]
        for place, cells in self.whole_rows():
            yield place, [cells[i] for i in at]

    def whole_rows(self) -> Iterator[tuple[str, list[str]]]:
        """Yield where each row stands, and all of its cells."""
        rows = self._read()
        next(rows, None)
        for place, cells in rows:
            if len(cells) != len(self.header):
                raise refusal(
                    self.file,
                    place,
                    f"has {len(cells)} cells where the header has {len(self.header)}. Put texts "
                    f"that hold {_NAMES[self.delimiter]} or line breaks in double quotes.",
                )
            yield place, cells

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Yield the lines from the header on."""
        is_begun = False
        for place, line in read_lines(self.file, self.encoding):
            is_begun = is_begun or bool(line.strip())
            if is_begun:
                yield place, line

    def _read(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the header and the rows, without empty lines."""
        place, n_open = "line 1", 0

        def lines() -> Iterator[str]:
            nonlocal place, n_open
            for found, line in self._lines():
                place = found
                n_open += len(line)
                if n_open > _MOST_ROW_CHARACTERS:
                    raise refusal(
                        self.file,
                        place,
                        f"ends no row after {_MOST_ROW_CHARACTERS:,} characters. Close every "
                        "double quote.",
                    )
                yield line

        try:
            for cells in csv.reader(lines(), delimiter=self.delimiter, strict=True):
                n_open = 0
                if cells:
                    yield place, cells
        except csv.Error as error:
            raise refusal(
                self.file,
                place,
                f"is not a row of CSV ({error}). Close every double quote, and write a double "
                "quote within a text as two.",
            ) from error


def _delimiter_of(header: str, text: str | None, delimiters: Iterable[str]) -> str:
    """Return the delimiter that lets the header hold the text's column, or that gives most."""
    cells = {}
    for delimiter in delimiters:
        try:
            found = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:  # reading the header says what is wrong
            found = []
        cells[delimiter] = [cell.strip() for cell in found]
    holding = (delimiter for delimiter, names in cells.items() if text in names)
    return next(holding, max(cells, key=lambda delimiter: len(cells[delimiter])))


class _TwiceError(ValueError):
    """A name that stands twice in one object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs; of two values under one name, neither is dropped."""
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return record


class JsonTable:
    """One object a line."""

    def __init__(self, file: File) -> None:
        self.file, self.encoding = file, encoding_of(file)
        self.names = next((list(record) for _, record in self.records()), [])
        self.text_names = self.names

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield where each row stands, and its values of these names; None where it has none."""
        for place, record in self.records():
            yield place, [record.get(name) for name in columns]

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield where each record stands, and all of it."""
        for place, line in read_lines(self.file, self.encoding):
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=_once)
            except _TwiceError as error:
                raise refusal(
                    self.file, place, f"has {str(error)!r} twice. Rename one or take it out."
                ) from error
            except (ValueError, RecursionError) as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested or long"
                raise refusal(
                    self.file, place, f"is not JSON ({reason}). Write one object a line."
                ) from error
            if not isinstance(record, dict):
                raise refusal(
                    self.file,
                    place,
                    'is not a JSON object. Write one object a line: {"text": "…"}.',
                )
            yield place, record
