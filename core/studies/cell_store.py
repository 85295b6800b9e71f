"""Storage of one measured cell: its settings, rows and provenance in a sealed JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from leakscope.core.errors import ArtifactError
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import Cell, Row
from leakscope.core.storage.artifacts import read_sealed, write_sealed

_REMEDY = (
    "Move it away and run the same command: this cell alone is measured again, all others are kept."
)


def write_cell(
    path: Path,
    cell: Cell,
    rows: Sequence[Mapping[str, Any]],
    *,
    seconds: float,
    provenance: Mapping[str, Any],
) -> None:
    """Write a measured cell with its rows, duration and provenance to a sealed file."""
    told = {"cell": cell, "provenance": provenance, "seconds": seconds, "rows": list(rows)}
    write_sealed(path, told)


def read_cell(path: Path, cell: Cell) -> list[Row]:
    """Read the rows of a measured cell from its sealed file.

    Raises
    ------
    ArtifactError
        Damaged, altered, or of another cell; the message names the file and the remedy.
    """
    stored = read_sealed(path, _REMEDY)
    try:
        if _to_json(stored["cell"]) != _to_json(cell):
            raise ArtifactError(f"{path} holds another cell than its name says. {_REMEDY}")
        found = Provenance.from_dict(stored["provenance"])
        seconds = float(stored["seconds"])
        rows = [Row.from_dict(row) for row in stored["rows"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{path} does not hold the rows of a cell ({type(error).__name__}: {error}). {_REMEDY}"
        ) from error
    return [replace(row, cell=cell, seconds=seconds, provenance=found) for row in rows]


def _to_json(cell: Any) -> str:
    """Return a cell as JSON text with sorted keys, for comparison."""
    return json.dumps(cell, sort_keys=True)
