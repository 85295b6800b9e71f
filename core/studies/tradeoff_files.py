"""Tables of the trade-off as files: today's, those of earlier versions, and those that ship."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.assets import ASSETS
from core.errors import ArtifactError, InvalidInputError
from core.results import Score
from core.store import read_json
from core.studies.rows import Row
from core.studies.tables import rows_of
from core.studies.tradeoff_summary import (
    FACTS,
    LEAKAGE,
    TOKEN_INVERSION,
    Tradeoff,
    summarise,
    utility_measure,
)

__all__ = [
    "SHIPPED",
    "load_rows",
    "shipped_tradeoff",
    "load_tradeoff",
    "shipped_tables",
    "tradeoff_of",
]

SHIPPED = ASSETS / "tradeoff"
"""What was measured for the bundled encoder."""

_MALFORMED = (KeyError, TypeError, AttributeError, ValueError, IndexError)


def load_tradeoff(path: Path) -> Tradeoff:
    """Read what `python -m core study tradeoff` wrote, and average it over seeds.

    Raises
    ------
    ArtifactError
        Missing, damaged, or not a trade-off; the message names the file.
    """
    return tradeoff_of(read_json(path), str(path))


def tradeoff_of(data: Any, name: str) -> Tradeoff:
    """Return what a file holds, as `load_tradeoff` reads it.

    Raises
    ------
    ArtifactError
        It is no trade-off; the message names the file.
    """
    try:
        return _summarised(_rows_in(data))
    except (*_MALFORMED, InvalidInputError, StopIteration) as error:
        raise _refusal(name) from error


def shipped_tables(encoder: str) -> list[Path]:
    """Return where the tables lie that ship for an encoder: the first has the most tasks.

    The first is of all strengths of what needs no training, the second of every kind of defence at
    one or two strengths, the third of the usefulness for support messages alone.
    """
    first, *more = (SHIPPED / f"{encoder}{kind}.json" for kind in ("", "-all", "-banking"))
    return [first, *filter(Path.exists, more)]


def shipped_tradeoff(encoder: str) -> Tradeoff:
    """Read the tables that ship for an encoder, as one.

    A cell that both have counts once. What both measured of a defence in other cells, such as its
    usefulness for three tasks and for eight, is the first one's.

    Raises
    ------
    ArtifactError
        Missing, damaged, or not a trade-off; the message names the file.
    """
    rows: list[Row] = []
    for path in shipped_tables(encoder):
        own = load_rows(path)
        rows += [row for row in own if row not in rows]
    try:
        return _summarised(rows)
    except (*_MALFORMED, InvalidInputError, StopIteration) as error:
        raise _refusal(" and ".join(map(str, shipped_tables(encoder)))) from error


def _summarised(rows: Sequence[Row]) -> Tradeoff:
    found = summarise(rows)
    _ = found.undefended, found.tasks
    if not all(point.leaks for point in found.points):
        raise InvalidInputError("No row tells what an attacker reads of the words.")
    return found


def load_rows(path: Path) -> list[Row]:
    """Read the rows of a trade-off study, today's or those of earlier versions.

    Raises
    ------
    ArtifactError
        Missing, damaged, or not a trade-off; the message names the file.
    """
    data = read_json(path)
    try:
        return _rows_in(data)
    except _MALFORMED as error:
        raise _refusal(str(path)) from error


def _rows_in(data: Any) -> list[Row]:
    if "value" in data["rows"][0]:  # a row a measure, with what they share at the top
        return _former_rows(data)
    return rows_of(data)


def _refusal(name: str) -> ArtifactError:
    told = f"{name} is not the result of `python -m core study tradeoff`. Make it anew."
    return ArtifactError(told)


def _former_rows(data: Mapping[str, Any]) -> list[Row]:
    """Return rows as the study writes them today: one with all the scores of a cell."""
    shared = {name: value for name, value in data.items() if name in FACTS}
    if "attack" in shared:
        shared["attack"], shared["settings"] = shared["attack"]
    cells: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in data["rows"]:
        place = (row["defence"], tuple(row["settings"].items()), row["seed"])
        cells.setdefault(place, []).append(row)
    return [
        Row(
            {**shared, "defence": defence, "defence_settings": dict(settings), "seed": seed},
            {_former_measure(row): Score.from_dict(row) for row in rows},
            seconds=rows[0].get("cell_seconds"),
        )
        for (defence, settings, seed), rows in cells.items()
    ]


def _former_measure(row: Mapping[str, Any]) -> str:
    if row["measure"] == LEAKAGE:
        return LEAKAGE
    is_inversion = row["task"] == TOKEN_INVERSION
    return TOKEN_INVERSION if is_inversion else utility_measure(row["task"], row["measure"])
