"""Read a story file: bounded in size, validated part by part."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.findings.drawing import checked_figure
from leakscope.core.findings.finding import Finding, Table
from leakscope.core.pages import PAGES
from leakscope.core.storage.artifacts import read_whole
from leakscope.core.story.format import KIND, VERSION, Pin, Story

MOST_BYTES = 12 * 2**20
"""Maximum size of a story file, in bytes."""
MOST_PINS = 60

_LINE, _TEXT, _LONG = 300, 4_000, 20_000
"""Maximum letters of a title, of an author's text, and of a page's text."""
_MOST_ROWS, _MOST_COLUMNS, _MOST_PIECES, _MOST_FACTS = 200, 12, 4_000, 20
_NAME = re.compile(r"[a-z][a-z_]{0,39}")
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""Characters that are removed: controls, lone surrogates and bidirectional overrides."""

_T = TypeVar("_T")


def read_story(path: Path) -> Story:
    """Read a saved story file, validate it, and build the Story.

    Raises
    ------
    ArtifactError
        Missing, too large, not JSON, or not a story; the message says what is wrong.
    """
    try:
        content = read_whole(path, MOST_BYTES)
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} does not exist.") from error
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} cannot be read as a story: {error}.") from error
    return parse_story(content, str(path))


def parse_story(content: bytes, name: str = "This file") -> Story:
    """Parse and validate the bytes of a story file; build the Story.

    Raises
    ------
    ArtifactError
        As `read_story`.
    """
    if len(content) > MOST_BYTES:
        raise ArtifactError(f"{name} is too large for a story: more than {MOST_BYTES:,} bytes.")
    try:
        found = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        told = "nested too deeply" if isinstance(error, RecursionError) else "not JSON as UTF-8"
        raise ArtifactError(f"{name} is not a story: {told}.") from error
    try:
        return story_from_data(found)
    except (InvalidInputError, RecursionError) as error:
        raise ArtifactError(f"{name} cannot be shown as a story: {error}") from error


def story_from_data(found: Any) -> Story:
    """Build a Story from parsed JSON; raise InvalidInputError naming the invalid part.

    Raises
    ------
    InvalidInputError
        A part is missing, of another kind or too large; the message names it.
    """
    if not isinstance(found, Mapping) or found.get("kind") != KIND:
        raise InvalidInputError(f"'kind' must be {KIND!r}.")
    version = found.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InvalidInputError("'version' must be a whole number from 1.")
    if version > VERSION:
        raise InvalidInputError(
            f"A newer Leakscope saved it (file version {version}; this one reads up to {VERSION}). "
            "Update Leakscope, or save the story again with an older version."
        )
    minutes = found.get("minutes", 0)
    if not isinstance(minutes, int) or isinstance(minutes, bool) or not 0 <= minutes <= 600:
        raise InvalidInputError("'minutes' must be a whole number from 0 to 600.")
    lacks: list[str] = []
    pins = tuple(
        _parse_pin(each, f"Slide {i + 1}", lacks)
        for i, each in enumerate(_list_field(found, "pins", "It", MOST_PINS))
    )
    return Story(
        title=_text_field(found, "title", "It", _LINE) or "Untitled",
        audience=_text_field(found, "audience", "It", _LINE),
        minutes=minutes,
        pins=pins,
        lacks=tuple(lacks),
    )


def _parse_pin(found: Any, where: str, lacks: list[str]) -> Pin:
    """Validate a pin's JSON and build the Pin; append what this version lacks to `lacks`."""
    if not isinstance(found, Mapping):
        raise InvalidInputError(f"{where} must be an object.")
    page = _text_field(found, "page", where, 40)
    if not _NAME.fullmatch(page):
        raise InvalidInputError(f"'page' of {where} must be the name of a page, got {page!r}.")
    if page not in PAGES:
        lacks.append(f"{where} names an unknown page {page!r}: it cannot be opened live.")
    shows = _text_field(found, "shows", where, 40)
    slide = None if found.get("slide") is None else _parse_finding(found["slide"], where)
    is_live = found.get("is_live", True)
    if not isinstance(is_live, bool):
        raise InvalidInputError(f"'is_live' of {where} must be true or false.")
    if slide is None and not _NAME.fullmatch(shows):
        raise InvalidInputError(f"{where} must contain a 'slide' or name a view.")
    return Pin(
        page=page,
        parameters=_parse_pairs(found, "parameters", where, MOST_PARAMETERS, _TEXT),
        shows="" if slide else shows,
        heading=_text_field(found, "heading", where, _LINE),
        remark=_text_field(found, "remark", where, _TEXT),
        notes=_text_field(found, "notes", where, _LONG),
        slide=slide,
        is_live=is_live,
    )


MOST_PARAMETERS = 60


def _parse_finding(found: Any, where: str) -> Finding:
    """Validate a stored finding's JSON and build the Finding."""
    if not isinstance(found, Mapping):
        raise InvalidInputError(f"'slide' of {where} must be an object.")
    table = found.get("table")
    figure = found.get("figure")
    commands = _list_field(found, "commands", where, MOST_PARAMETERS)
    return Finding(
        title=_text_field(found, "title", where, _TEXT),
        body=_text_field(found, "body", where, _LONG),
        sentence=_parse_pairs(found, "sentence", where, _MOST_PIECES, _LONG),
        figure=None if figure is None else _check_part(where, checked_figure, figure),
        alt=_text_field(found, "alt", where, _TEXT),
        table=None if table is None else _parse_table(table, where),
        facts=_parse_pairs(found, "facts", where, _MOST_FACTS, _TEXT),
        caveat=_text_field(found, "caveat", where, _LONG),
        commands=tuple(_checked_text(each, "A command", where, _LONG) for each in commands),
    )


def _parse_table(found: Any, where: str) -> Table:
    """Validate a table's JSON and build the Table."""
    if not isinstance(found, Mapping):
        raise InvalidInputError(f"'table' of {where} must be an object.")
    columns = _parse_row(_list_field(found, "columns", where, _MOST_COLUMNS), where)
    rows = [_parse_row(row, where) for row in _list_field(found, "rows", where, _MOST_ROWS)]
    if any(len(row) != len(columns) for row in rows):
        raise InvalidInputError(
            f"The table of {where} must have as many cells in each row as columns."
        )
    return Table(columns=columns, rows=tuple(rows))


def _parse_row(found: Any, where: str) -> tuple[str, ...]:
    """Validate a table row; return its cells as a tuple of texts."""
    if not isinstance(found, list) or len(found) > _MOST_COLUMNS:
        raise InvalidInputError(f"A row of the table of {where} must be a list of texts.")
    return tuple(_checked_text(each, "A cell", where, _TEXT) for each in found)


def _parse_pairs(
    found: Mapping[str, Any], name: str, where: str, at_most: int, letters: int
) -> tuple[tuple[str, str], ...]:
    """Validate a named field that lists pairs of texts; return the pairs."""
    pairs = _list_field(found, name, where, at_most)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InvalidInputError(f"'{name}' of {where} must be a list of pairs of texts.")
    return tuple(
        (_checked_text(one, name, where, letters), _checked_text(two, name, where, letters))
        for one, two in pairs
    )


def _list_field(found: Mapping[str, Any], name: str, where: str, at_most: int) -> Sequence[Any]:
    """Return a named list field, [] if missing; raise InvalidInputError if it is too long."""
    value = found.get(name, [])
    if not isinstance(value, list) or len(value) > at_most:
        raise InvalidInputError(f"'{name}' of {where} must be a list of at most {at_most}.")
    return value


def _text_field(found: Mapping[str, Any], name: str, where: str, letters: int) -> str:
    """Return a named text field, "" if missing; raise InvalidInputError if it is too long."""
    return _checked_text(found.get(name, ""), f"'{name}'", where, letters)


def _checked_text(value: Any, name: str, where: str, letters: int) -> str:
    """Remove control characters from a text; raise InvalidInputError if it is too long."""
    if not isinstance(value, str) or len(value) > letters:
        raise InvalidInputError(
            f"{name} of {where} must be a text of at most {letters:,} characters."
        )
    return _UNFIT.sub("", value)


def _check_part(where: str, check: Callable[[Any], _T], value: Any) -> _T:
    """Apply a check to a value and return its result; name the slide in an error."""
    try:
        return check(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}") from error
