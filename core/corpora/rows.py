"""Rows of any table: column roles, validation, and conversion to documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import regex

from leakscope.core.corpora.document import Document
from leakscope.core.corpora.documents import check_limit
from leakscope.core.corpora.readers.raw_files import MAX_TEXT_CHARACTERS, Source, refusal
from leakscope.core.errors import similar

_OTHER = "other:"
_SURROGATE = re.compile("[\ud800-\udfff]")
_BROKEN = "holds a broken character (lone surrogate). Write it again as UTF-8."
_WRITTEN = regex.compile(r"[^\p{Cc}\p{Cf}\p{Cs}\p{Z}]")

_LEAST_NUMBERS = 8
"""Minimum number of numbers in a vector."""
_WRITTEN_VECTOR = re.compile(r"\s*[\[({][-+0-9.eE,;\s]+[\])}]\s*")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The names of the text, label, author, document and further columns.

    Parameters
    ----------
    text : str or None
        Column of the texts; where None, the longest text column (see leakscope.core.corpora.guess).
    label, author : str or None
        Class and author; where None, the columns `label` and `author` are used if present.
    document : str or None
        Rows with the same value in this column are one document, such as the sentences of an
        article.
    others : tuple of str
        Further columns to read along, such as those that colour a map.
    """

    text: str | None = None
    label: str | None = None
    author: str | None = None
    document: str | None = None
    others: tuple[str, ...] = ()

    def resolve(self, source: Source, found: Sequence[str]) -> dict[str, str]:
        """Return a dict from each role (text, label, …) to its column among a file's column names.

        Raises
        ------
        InvalidInputError
            A named column is not there; the message names those that are.
        """
        named = {"text": self.text, "label": self.label}
        named |= {"author": self.author, "document": self.document}
        named |= {f"{_OTHER}{column}": column for column in self.others}
        chosen = {}
        for role, column in named.items():
            if column is not None and list(found).count(column) > 1:
                raise refusal(
                    source, "", f"has the column {column!r} twice. Rename one or take it out."
                )
            if column is not None and column not in found:
                fields = [name for name in found if name.startswith(f"{column}.")]
                near = f" Its field {fields[0]!r} is one." if fields else similar(column, found)
                raise refusal(
                    source,
                    "",
                    f"has no column {column!r}.{near} {describe_columns(found)}. Rename a column, "
                    "or name the one to use.",
                )
            if column is None and role in ("label", "author") and role in found:
                column = None if role == self.text else role
            if column is not None:
                chosen[role] = column
        return chosen


@dataclass(frozen=True, slots=True)
class Row:
    """One unchecked row of a file, and its place in it."""

    place: str
    text: Any
    label: Any = None
    author: Any = None
    document: Any = None
    others: tuple[Any, ...] = ()


def make_row(place: str, cells: Mapping[str, Any]) -> Row:
    """Build a Row from its place and its cells by role, unchecked."""
    others = tuple(cell for role, cell in cells.items() if role.startswith(_OTHER))
    return Row(place, others=others, **{r: c for r, c in cells.items() if not r.startswith(_OTHER)})


def looks_like_vector(cell: Any) -> bool:
    """Return whether a cell is a list of at least 8 numbers, or a string that contains one.

    Examples
    --------
    >>> looks_like_vector("[0.1, -2e-05, 3, 4, 5, 6, 7, 8]"), looks_like_vector([0.5] * 384)
    (True, True)
    >>> looks_like_vector("[sic] he said"), looks_like_vector("[1, 2]")
    (False, False)
    """
    if isinstance(cell, list | tuple):
        return len(cell) >= _LEAST_NUMBERS and all(
            isinstance(v, int | float) for v in cell[:_LEAST_NUMBERS]
        )
    if not isinstance(cell, str) or not _WRITTEN_VECTOR.fullmatch(cell):
        return False
    return len(re.split(r"[,;\s]+", cell.strip(" []()\n{}"))) >= _LEAST_NUMBERS


def rows_to_documents(
    source: Source, rows: Iterable[Row], columns: Columns
) -> tuple[Document, ...]:
    """Turn checked rows into documents: one per row, or grouped by `columns.document`.

    In a group, each row is a paragraph, so that no sentence spans two rows.
    """
    if columns.document is not None:
        return _group_by_document(source, rows)
    return tuple(Document(f"{i}", r.text, r.label, r.author) for i, r in enumerate(rows, 1))


def check_rows(
    source: Source, rows: Iterable[Row], columns: Columns, limit: int | None
) -> Iterator[Row]:
    """Yield the first `limit` rows with labels as strings; raise InvalidInputError for a bad row.

    Raises
    ------
    InvalidInputError
        A text that is missing, not text, empty, too long or broken, with its place; no row.
    """
    check_limit(limit)
    n_rows = 0
    for row in islice(rows, limit):
        n_rows += 1
        text = _check_text(source, row, columns.text or "text")
        label, author, document = (
            _label_string(source, row, cell) for cell in (row.label, row.author, row.document)
        )
        others = tuple(_label_string(source, row, _join_tags(cell)) for cell in row.others)
        yield Row(row.place, text, label, author, document, others)
    if not n_rows:
        raise refusal(source, "", "holds no text. Give at least one.")


def is_empty(row: Row) -> bool:
    """Return whether a row's text is missing, or has no visible character."""
    text = row.text
    is_blank = isinstance(text, str) and "\0" not in text and not _WRITTEN.search(text)
    return _is_missing(text) or is_blank


def _is_missing(text: object) -> bool:
    """Return whether a cell is None or NaN."""
    return text is None or text != text  # NaN is unequal to itself


def _check_text(source: Source, row: Row, column: str) -> str:
    """Return a row's text; raise InvalidInputError if it is missing or unusable."""
    if _is_missing(row.text):
        raise refusal(source, row.place, f"has no {column!r}. Fill in the cell or remove the row.")
    if not isinstance(row.text, str):
        raise refusal(
            source,
            row.place,
            f"{column!r} is not text but {type(row.text).__name__}. Write texts in it, or name "
            "another column.",
        )
    problem = _text_problem(row.text)
    if problem:
        raise refusal(source, row.place, f"{column!r} {problem}")
    return row.text


def _text_problem(text: str) -> str:
    """Return a message that says why a text cannot be used, or ""."""
    if len(text) > MAX_TEXT_CHARACTERS:
        return (
            f"has {len(text):,} characters; at most {MAX_TEXT_CHARACTERS:,} are read. "
            "Write one text per row."
        )
    if "\0" in text:
        return "holds a null byte, so it is not plain text. Remove it."
    if _SURROGATE.search(text):
        return _BROKEN
    if not _WRITTEN.search(text):
        return "is empty. Fill it in or take the row out."
    return ""


def _label_string(source: Source, row: Row, value: Any) -> str | None:
    """Return a cell's label as a string; None if it is missing, empty or NaN."""
    if isinstance(value, dict | list):
        raise refusal(
            source,
            row.place,
            f"a label is {'an object' if isinstance(value, dict) else 'a list'}, not a word. "
            "Write a word or a number, or name another column.",
        )
    if value is None or value != value or value == "":
        return None
    told = str(value)
    check_encodable(source, row.place, "a label", told)
    return told


def _join_tags(value: Any) -> Any:
    """Join a list of tags with commas; None for an object; any other value unchanged."""
    if isinstance(value, list | tuple):
        are_plain = all(isinstance(part, str | int | float) for part in value)
        return ", ".join(map(str, value)) if are_plain else None
    return None if isinstance(value, dict) else value


def check_encodable(source: Source, place: str, name: str, told: str) -> None:
    """Raise InvalidInputError if a cell contains a lone surrogate, which UTF-8 cannot encode.

    Raises
    ------
    InvalidInputError
        It holds half a character.
    """
    if _SURROGATE.search(told):
        raise refusal(source, place, f"{name} {_BROKEN}")


def _group_by_document(source: Source, rows: Iterable[Row]) -> tuple[Document, ...]:
    """Join the rows of each document id into one document, in order of first appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.document is None:
            raise refusal(source, row.place, "names no document. Fill in the cell.")
        groups.setdefault(row.document, []).append(row)
    for document, members in groups.items():
        for row in members:
            if (row.label, row.author) != (members[0].label, members[0].author):
                raise refusal(
                    source,
                    row.place,
                    f"document {document!r} has two labels or authors. Give it one of each.",
                )
    return tuple(
        Document(name, "\n\n".join(r.text for r in members), members[0].label, members[0].author)
        for name, members in groups.items()
    )


def describe_columns(found: Sequence[str]) -> str:
    """Return a sentence that lists up to 20 column names."""
    names = [repr(name if len(name) <= 40 else f"{name[:39]}…") for name in found[:20]]
    more = f" and {len(found) - 20} more" if len(found) > 20 else ""
    return f"Its columns are {', '.join(names)}{more}"
