"""Read JSON as a table: one object per line, or one document of rows or of columns.

A document is a list of objects; an object that holds such a list, as the answers of vector stores
do; columns, each a list of one length (Chroma's `get`); or one of pandas' layouts. Fields of
nested objects are columns too: see `leakscope.core.corpora.readers.nested`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from leakscope.core.corpora.readers.encodings import encoding_of
from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.corpora.readers.nested import get_leaf, leaf_names
from leakscope.core.corpora.readers.raw_files import read_lines, read_whole, refusal
from leakscope.core.errors import InvalidInputError

_NAMED_ROWS = 200
"""Number of records whose fields become columns: the first record may lack some."""

_MOST_PARTS = 5_000_000
"""Maximum number of lists and objects in a document, which bounds its memory."""

_DEEPEST_ROWS = 4
"""Maximum nesting depth of the list of rows."""

_A_LINE = "Write one object per line"


class _DuplicateKeyError(ValueError):
    """A key that occurs twice in one JSON object."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dict from JSON pairs; raise _DuplicateKeyError for a repeated key."""
    record = dict(pairs)
    if len(record) < len(pairs):
        n_times = Counter(name for name, _ in pairs)
        raise _DuplicateKeyError(next(name for name, n in n_times.items() if n > 1))
    return record


class JsonTable:
    """A JSON file read as records with named fields.

    Attributes
    ----------
    names : list of str
        The fields of the first 200 records, in the order in which they appear.
    document : object or None
        What a file that is one JSON document holds; None where each line is a record. Its records
        are parts of it.
    columns : dict or None
        The document's lists by name, where it has columns instead of records.
    """

    def __init__(self, file: File) -> None:
        self.file, self.encoding = file, encoding_of(file)
        self.document: Any = None
        self.columns: dict[str, list[Any]] | None = None
        self._records: list[Any] = []
        self._read_document()
        self.names = self._read_names()
        self.text_names = self.names

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield each row's place and its values of the named columns (None where missing)."""
        for place, record in self.records():
            yield place, [get_leaf(record, name) for name in columns]

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each record's place and the whole record."""
        if self.columns is not None:
            lists = list(self.columns.values())
            for number, cells in enumerate(zip(*lists, strict=True), 1):
                yield f"row {number}", dict(zip(self.columns, cells, strict=True))
        elif self.document is not None:
            for number, record in enumerate(self._records, 1):
                if not isinstance(record, dict):
                    raise refusal(
                        self.file,
                        f"record {number}",
                        'is not a JSON object. Write a list of objects: [{"text": "…"}].',
                    )
                yield f"record {number}", record
        else:
            yield from self._read_json_lines()

    def _read_json_lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Read a JSON Lines file; yield each record's place and the record."""
        for place, line in read_lines(self.file, self.encoding):
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=_unique_keys)
            except _DuplicateKeyError as error:
                raise self._duplicate_key_error(place, error) from error
            except (ValueError, RecursionError) as error:
                raise refusal(
                    self.file, place, f"is not JSON ({_describe_error(error)}). {_A_LINE}."
                ) from error
            if not isinstance(record, dict):
                raise refusal(
                    self.file, place, f'is not a JSON object. {_A_LINE}: {{"text": "…"}}.'
                )
            yield place, record

    def _duplicate_key_error(self, place: str, error: _DuplicateKeyError) -> InvalidInputError:
        """Build, without raising it, the error for a key that occurs twice in one object."""
        return refusal(self.file, place, f"has {str(error)!r} twice. Rename one or take it out.")

    def _read_names(self) -> list[str]:
        """Read the first records and return their field names, up to a broken record."""
        names: dict[str, int] = {}
        records = self.records()
        first = next(records, None)
        if first is None:
            return []
        found = [first]
        with suppress(InvalidInputError):
            found.extend(islice(records, _NAMED_ROWS - 1))
        for _, record in found:
            for name, n in Counter(leaf_names(record)).items():
                names[name] = max(n, names.get(name, 0))
        # An object in one record may be missing or empty in another: its fields are the columns.
        groups = {name[:i] for name in names for i, sign in enumerate(name) if sign == "."}
        return [name for name, n in names.items() if name not in groups for _ in range(n)]

    def _read_document(self) -> None:
        """Parse and store a file that is one JSON document; leave JSON Lines unread.

        Raises
        ------
        InvalidInputError
            It is meant as a document and is not JSON, or is too large to be read at once.
        """
        first, is_only = self._read_first_line()
        opening = first.lstrip()[:1]
        if opening not in ("[", "{") or (not is_only and _is_record(first)):
            return
        # Broken lines of objects are reported line by line; what opens on a line of its own is not
        # one of them.
        may_be_lines = opening == "{" and first.strip() != "{"
        try:
            text = read_whole(self.file, self.encoding)
            if text.count("[") + text.count("{") > _MOST_PARTS:
                raise refusal(
                    self.file, "", f"contains more than {_MOST_PARTS:,} lists. {_A_LINE} instead."
                )
            document = json.loads(text, object_pairs_hook=_unique_keys)
        except _DuplicateKeyError as error:
            if may_be_lines:
                return
            raise self._duplicate_key_error("", error) from error
        except InvalidInputError:
            if may_be_lines:
                return
            raise
        except (ValueError, RecursionError) as error:
            if may_be_lines:
                return
            line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
            raise refusal(
                self.file,
                f"line {line}",
                f"is not JSON ({_describe_error(error)}). Export the file again, or write one "
                "object per line.",
            ) from error
        self._set_records(document)

    def _read_first_line(self) -> tuple[str, bool]:
        """Read the first non-blank line; return it and whether it is the only one."""
        lines = (line for _, line in read_lines(self.file, self.encoding) if line.strip())
        try:
            first = next(lines, "")
        except InvalidInputError:  # a line too long for a record may be a whole document
            return read_whole(self.file, self.encoding), True
        with suppress(InvalidInputError):
            return first, next(lines, None) is None
        return first, False

    def _set_records(self, document: Any) -> None:
        """Set `document` and its records or columns from a parsed JSON document."""
        records = document if isinstance(document, list) else _rows_within(document)
        if records is None and isinstance(document, dict):
            columns = _columns_of(document)
            if columns is not None:
                self._check_lengths(columns)
                self.document, self.columns = document, columns
                return
            records = document = _records_of_other_layouts(document)
        if records is not None:
            self.document, self._records = document, records

    def _check_lengths(self, columns: dict[str, list[Any]]) -> None:
        """Raise InvalidInputError if the document's columns have unequal lengths."""
        if len({len(cells) for cells in columns.values()}) > 1:
            told = ", ".join(f"{name} {len(cells):,}" for name, cells in columns.items())
            raise refusal(
                self.file, "", f"has columns of unequal length ({told}). Make them equally long."
            )


def _describe_error(error: Exception) -> str:
    """Return, for a message, why a JSON text could not be parsed."""
    return error.msg if isinstance(error, json.JSONDecodeError) else "nested or long"


def _is_record(line: str) -> bool:
    """Return whether a line is a complete JSON object."""
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(line), dict)
    return False


def _rows_within(document: Any, depth: int = 1) -> list[Any] | None:
    """Find the only list of objects nested in a document and return it; None if not unique.

    An object with a text of its own is a record, whatever lists it holds.
    """
    if not isinstance(document, dict) or depth > _DEEPEST_ROWS:
        return None
    values = list(document.values())
    if any(isinstance(value, str) and " " in value.strip() for value in values):
        return None
    lists = [v for v in values if isinstance(v, list) and v and isinstance(v[0], dict)]
    if len(lists) == 1 and not any(map(_holds_text, values)):
        return lists[0]
    if lists:
        return None
    found = [rows for value in values if (rows := _rows_within(value, depth + 1)) is not None]
    return found[0] if len(found) == 1 else None


def _holds_text(value: Any) -> bool:
    """Return whether a value is a list that contains a string."""
    return isinstance(value, list) and any(isinstance(cell, str) for cell in value)


def _columns_of(document: dict[str, Any]) -> dict[str, list[Any]] | None:
    """Return a document's columns if all its values are lists, one of texts; None otherwise.

    What is null is left out, as Chroma has it for what was not asked for, and so is Chroma's
    list of what was.
    """
    known = {k: v for k, v in document.items() if v is not None and k != "included"}
    if not all(isinstance(value, list) for value in known.values()):
        return None
    return known if any(map(_holds_text, known.values())) and not _is_split(document) else None


def _is_split(document: dict[str, Any]) -> bool:
    """Return whether a document has pandas' `split` layout (columns and data)."""
    names, data = document.get("columns"), document.get("data")
    return (
        isinstance(names, list)
        and isinstance(data, list)
        and bool(names and data)
        and all(isinstance(row, list) and len(row) == len(names) for row in data)
    )


def _records_of_other_layouts(document: dict[str, Any]) -> list[Any] | None:
    """Build records from pandas' `split`, numbered cells or query answers; None otherwise.

    They are pandas' `split`, columns and rows whose cells are named by number, and answers to
    several queries, which hold a list for each.
    """
    if _is_split(document):
        return [dict(zip(document["columns"], row, strict=True)) for row in document["data"]]
    known = {k: v for k, v in document.items() if v is not None and k != "included"}
    if not known:
        return None
    if all(isinstance(value, dict) and value for value in known.values()):
        if all(name.isdigit() for name in known):
            return list(known.values())
        places = list(next(iter(known.values())))
        if all(p.isdigit() for p in places) and all(list(v) == places for v in known.values()):
            return [{name: cells[p] for name, cells in known.items()} for p in places]
        return None
    if not all(isinstance(v, list) and v and isinstance(v[0], list) for v in known.values()):
        return None
    if not any(_holds_text(value[0]) for value in known.values()):
        return None
    sizes = [[len(cells) if isinstance(cells, list) else -1 for cells in v] for v in known.values()]
    if any(size != sizes[0] for size in sizes):
        return None
    return [
        {name: lists[query][i] for name, lists in known.items()}
        for query, n in enumerate(sizes[0])
        for i in range(n)
    ]
