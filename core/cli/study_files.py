"""Files in a study's settings: found, checked before anything is loaded, written by bare name.

A setting says what it holds (`setting(…, holds=…)`); those that every study has, their names say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.cli.sources import checked_columns, checked_reference
from core.corpora import CORPORA, Columns, check_source, split_reference
from core.specs import settings_of
from core.studies.classed_texts import ClassedTexts
from core.studies.named_texts import NamedTexts
from core.tasks.examples import pair_columns
from core.tasks.labelled import LABEL_COLUMN
from core.tasks.pairs import PAIR_COLUMNS
from core.tasks.searches import SEARCH_COLUMNS, is_label_search

__all__ = ["bare", "held", "with_files"]

_BY_NAME = {"target": "target", "other": "corpus", "encoders": "encoder", "encoder": "encoder"}
"""What settings hold that are called the same in every study."""


@dataclass(frozen=True)
class _Given:
    """What the command was told of files."""

    folder: Path | None
    columns: Columns

    def find(self, reference: str) -> str:
        """Return a reference, below the folder where it is not found as named."""
        path, column = split_reference(reference)
        folder = self.folder
        if folder is None or Path(path).exists() or not (folder / path).exists():
            return reference
        return f"{folder / path}{f'#{column}' if column else ''}"


def _target(told: str, given: _Given) -> str:
    return checked_reference(given.find(told), given.columns)


def _corpus(told: str, given: _Given) -> str:
    if not told:  # a study may do without one
        return told
    return checked_reference(given.find(told))


def _encoder(told: str, given: _Given) -> str:
    family, _, place = told.partition(":")
    return f"{family}:{given.find(place)}" if place else told


def _texts(told: str, given: _Given) -> str:
    texts = NamedTexts.of(told)
    place = given.find(texts.place)
    is_file = check_source(place) is not None
    columns = Columns(text=given.columns.text if is_file else None, label=texts.column or None)
    return str(texts.at(checked_reference(place, columns)))


def _labelled(told: str, given: _Given) -> str:
    texts = NamedTexts.of(told)
    path, column = split_reference(given.find(texts.place))
    column = column or given.columns.text
    checked_columns(Path(path), Columns(text=column, label=LABEL_COLUMN))
    return str(texts.at(f"{path}#{column}" if column else path))


def _examples(told: str, given: _Given) -> str:
    texts = NamedTexts.of(told)
    path, column = split_reference(given.find(texts.place))
    column = column or given.columns.text
    pair = None if column else pair_columns(Path(path))
    own = (pair[0], pair[1:]) if pair else (column, ())
    checked_columns(Path(path), Columns(text=own[0], label=LABEL_COLUMN, others=own[1]))
    return str(texts.at(f"{path}#{column}" if column else path))


def _attributes(told: str, given: _Given) -> str:
    if not told:  # a study may do without
        return told
    texts = NamedTexts.of(told)
    path, column = split_reference(given.find(texts.place))
    column = column or given.columns.text
    checked_columns(Path(path), replace(given.columns, text=column))
    return str(texts.at(f"{path}#{column}" if column else path))


def _classed(told: str, given: _Given) -> str:
    texts = ClassedTexts.of(told)
    path, column = split_reference(given.find(texts.place))
    column = column or given.columns.text
    checked_columns(Path(path), replace(given.columns, text=column, label=texts.label))
    return str(texts.at(f"{path}#{column}" if column else path))


def _pairs(told: str, given: _Given) -> str:
    texts = NamedTexts.of(told)
    place = given.find(texts.place)
    checked_columns(Path(place), PAIR_COLUMNS)
    return str(texts.at(place))


def _searches(told: str, given: _Given) -> str:
    texts = NamedTexts.of(told)
    place = given.find(texts.place)
    if not texts.column and Path(place).is_file() and is_label_search(Path(place)):
        return str(texts.at(place))
    others = (*SEARCH_COLUMNS.others, *([texts.column] if texts.column else []))
    checked_columns(Path(place), replace(SEARCH_COLUMNS, others=others))
    return str(texts.at(place))


_CHECKED: dict[str, Callable[[str, _Given], str]] = {
    "target": _target,
    "corpus": _corpus,
    "encoder": _encoder,
    "texts": _texts,
    "labelled": _labelled,
    "attributes": _attributes,
    "classed": _classed,
    "examples": _examples,
    "pairs": _pairs,
    "searches": _searches,
}
"""What a setting may hold, and what finds and checks it."""


def held(kind: type) -> dict[str, str]:
    """Return what the settings of a study hold, of those that name files."""
    found = {
        name: field.metadata["holds"] or _BY_NAME.get(name, "")
        for name, field in settings_of(kind).items()
    }
    return {name: holds for name, holds in found.items() if holds}


def with_files(study: Any, *, folder: Path | None, text_column: str | None) -> Any:
    """Return the study with its files checked, those not found as named found in `folder`.

    Raises
    ------
    InvalidInputError
        A file that cannot be read, or that lacks a column.
    """
    others = tuple(getattr(study, "columns", ()))
    given = _Given(folder, Columns(text=text_column, others=others))
    found: dict[str, Any] = {}
    for name, holds in held(type(study)).items():
        value, check = getattr(study, name), _CHECKED[holds]
        is_one = isinstance(value, str)
        found[name] = check(value, given) if is_one else tuple(check(v, given) for v in value)
    return replace(study, **found)


def bare(told: str, holds: str) -> str:
    """Return what names a file without its folder; names that are no paths stay as they are.

    Examples
    --------
    >>> bare("data/bbc.csv#body", "target"), bare("dev=data/a.csv:split=dev", "texts")
    ('bbc.csv#body', 'dev=a.csv:split=dev')
    """
    if holds == "encoder":
        family, _, place = told.partition(":")
        return f"{family}:{Path(place).name}" if place and Path(place).is_dir() else told
    if holds == "classed":
        classed = ClassedTexts.of(told)
        return str(classed.at(bare(classed.place, "corpus")))
    if holds in ("texts", "labelled", "examples", "pairs", "searches", "attributes"):
        texts = NamedTexts.of(told)
        return str(texts.at(bare(texts.place, "corpus")))
    path, column = split_reference(told)
    if path.partition(":")[0] in CORPORA:
        return told
    return Path(path).name + (f"#{column}" if column else "")
