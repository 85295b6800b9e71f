"""Files named in a study's settings: located, checked before loading, and shortened to bare names.

A setting declares its kind of file (`setting(…, holds=…)`); common settings have it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leakscope.core.cli.shared.sources import checked_columns, checked_reference
from leakscope.core.corpora import CORPORA, Columns, check_source, split_reference
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import settings_of
from leakscope.core.studies.named_texts import ClassedTexts, NamedTexts
from leakscope.core.tasks.examples import pair_columns
from leakscope.core.tasks.labelled import LABEL_COLUMN
from leakscope.core.tasks.pairs import PAIR_COLUMNS
from leakscope.core.tasks.searches import SEARCH_COLUMNS, is_label_search

_BY_NAME = {"target": "target", "other": "corpus", "encoders": "encoder", "encoder": "encoder"}
"""The kind of file of settings that have the same name in every study."""


@dataclass(frozen=True)
class _FileOptions:
    """The command's options for locating files: a folder and column names."""

    folder: Path | None
    columns: Columns

    def find(self, reference: str) -> str:
        """Return a file reference, with the folder put before it if the file is only there."""
        path, column = split_reference(reference)
        folder = self.folder
        if folder is None or Path(path).exists() or not (folder / path).exists():
            return reference
        return f"{folder / path}{f'#{column}' if column else ''}"


def _check_target(value: str, given: _FileOptions) -> str:
    """Locate and check a study's target corpus; return its reference."""
    return checked_reference(given.find(value), given.columns)


def _check_corpus(value: str, given: _FileOptions) -> str:
    """Locate and check a study's corpus; return its reference, or "" for ""."""
    if not value:  # a study may do without one
        return value
    return checked_reference(given.find(value))


def _check_encoder(value: str, given: _FileOptions) -> str:
    """Locate the folder in an encoder's name, as of a fitted encoder; return the name."""
    family, _, place = value.partition(":")
    return f"{family}:{given.find(place)}" if place else value


def _check_texts(value: str, given: _FileOptions) -> str:
    """Locate and check a NAME=FILE of texts, with its label column if any; return it."""
    texts = NamedTexts.of(value)
    place = given.find(texts.place)
    is_file = check_source(place) is not None
    columns = Columns(text=given.columns.text if is_file else None, label=texts.column or None)
    return str(texts.at(checked_reference(place, columns)))


def _check_labelled(value: str, given: _FileOptions) -> str:
    """Locate and check a NAME=FILE of labelled texts; return it."""
    texts = NamedTexts.of(value)
    path, column = split_reference(given.find(texts.place))
    column = column or given.columns.text
    checked_columns(Path(path), Columns(text=column, label=LABEL_COLUMN))
    return str(texts.at(f"{path}#{column}" if column else path))


def _check_examples(value: str, given: _FileOptions) -> str:
    """Locate and check a NAME=FILE of labelled texts or labelled text pairs; return it."""
    texts = NamedTexts.of(value)
    path, column = split_reference(given.find(texts.place))
    column = column or given.columns.text
    pair = None if column else pair_columns(Path(path))
    own = (pair[0], pair[1:]) if pair else (column, ())
    checked_columns(Path(path), Columns(text=own[0], label=LABEL_COLUMN, others=own[1]))
    return str(texts.at(f"{path}#{column}" if column else path))


def _check_attributes(value: str, given: _FileOptions) -> str:
    """Locate and check a NAME=FILE of texts with attribute columns; return it, or "" for ""."""
    if not value:  # a study may do without
        return value
    texts = NamedTexts.of(value)
    path, column = split_reference(given.find(texts.place))
    column = column or given.columns.text
    checked_columns(Path(path), replace(given.columns, text=column))
    return str(texts.at(f"{path}#{column}" if column else path))


def _check_classed(value: str, given: _FileOptions) -> str:
    """Locate and check a file of texts with class labels; return its reference."""
    texts = ClassedTexts.of(value)
    path, column = split_reference(given.find(texts.place))
    column = column or given.columns.text
    checked_columns(Path(path), replace(given.columns, text=column, label=texts.label))
    return str(texts.at(f"{path}#{column}" if column else path))


def _check_pairs(value: str, given: _FileOptions) -> str:
    """Locate and check a NAME=FILE of scored sentence pairs; return it."""
    texts = NamedTexts.of(value)
    place = given.find(texts.place)
    checked_columns(Path(place), PAIR_COLUMNS)
    return str(texts.at(place))


def _check_searches(value: str, given: _FileOptions) -> str:
    """Locate and check a NAME=FILE of search queries and documents; return it."""
    texts = NamedTexts.of(value)
    place = given.find(texts.place)
    if not texts.column and Path(place).is_file() and is_label_search(Path(place)):
        return str(texts.at(place))
    others = (*SEARCH_COLUMNS.others, *([texts.column] if texts.column else []))
    checked_columns(Path(place), replace(SEARCH_COLUMNS, others=others))
    return str(texts.at(place))


_CHECKED: dict[str, Callable[[str, _FileOptions], str]] = {
    "target": _check_target,
    "corpus": _check_corpus,
    "encoder": _check_encoder,
    "texts": _check_texts,
    "labelled": _check_labelled,
    "attributes": _check_attributes,
    "classed": _check_classed,
    "examples": _check_examples,
    "pairs": _check_pairs,
    "searches": _check_searches,
}
"""The kinds of file that a setting may name, each with the function that checks it."""


def file_settings(kind: type) -> dict[str, str]:
    """Return which settings of a study class name files: the kind of file by setting."""
    found = {
        name: field.metadata["holds"] or _BY_NAME.get(name, "")
        for name, field in settings_of(kind).items()
    }
    return {name: holds for name, holds in found.items() if holds}


def with_files(study: Any, *, folder: Path | None, text_column: str | None) -> Any:
    """Return a copy of a study with its file settings located and checked.

    Raises
    ------
    InvalidInputError
        A file that cannot be read, or that lacks a column.
    """
    others = tuple(getattr(study, "columns", ()))
    given = _FileOptions(folder, Columns(text=text_column, others=others))
    found: dict[str, Any] = {}
    for name, holds in file_settings(type(study)).items():
        value, check = getattr(study, name), _CHECKED[holds]
        is_one = isinstance(value, str)
        found[name] = check(value, given) if is_one else tuple(check(v, given) for v in value)
    return replace(study, **found)


def without_folder(value: str, holds: str) -> str:
    """Remove the folder from a setting's file reference; leave names that are not paths unchanged.

    Examples
    --------
    >>> (
    ...     without_folder("data/bbc.csv#body", "target"),
    ...     without_folder("dev=data/a.csv:split=dev", "texts"),
    ... )
    ('bbc.csv#body', 'dev=a.csv:split=dev')
    """
    if holds == "encoder":
        family, _, place = value.partition(":")
        return f"{family}:{Path(place).name}" if place and Path(place).is_dir() else value
    if holds == "classed":
        classed = ClassedTexts.of(value)
        return str(classed.at(without_folder(classed.place, "corpus")))
    if holds in ("texts", "labelled", "examples", "pairs", "searches", "attributes"):
        texts = NamedTexts.of(value)
        return str(texts.at(without_folder(texts.place, "corpus")))
    path, column = split_reference(value)
    if path.partition(":")[0] in CORPORA:
        return value
    return Path(path).name + (f"#{column}" if column else "")


def without_folders(rows: Sequence[Row]) -> list[Row]:
    """Return copies of result rows whose file names have no folders, for privacy.

    `contents` identifies the texts.
    """
    return [replace(row, cell={**row.cell, **_shorten_file_names(row.cell)}) for row in rows]


_HELD = {
    "target": "target",
    "other": "corpus",
    "encoder": "encoder",
    "tasks": "labelled",
    "task": "labelled",
    "attributes": "attributes",
    "pairs": "pairs",
    "searches": "searches",
    "auxiliary": "corpus",
    "shipped_texts": "corpus",
    "corpus": "texts",
    "texts": "target",
}
"""The kind of file that each entry of a cell names."""


def _shorten_file_names(cell: Cell) -> Cell:
    """Return those entries of a cell that name files, with the folders removed."""
    short: Cell = {}
    for name, holds in _HELD.items():
        value = cell.get(name)
        if isinstance(value, str):
            short[name] = without_folder(value, holds)
        elif value is not None:
            short[name] = [without_folder(each, holds) for each in value]
    return short
