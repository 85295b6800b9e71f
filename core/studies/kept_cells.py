"""A cell on disk: what it is of, its rows and where they come from, under a seal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.errors import ArtifactError
from core.store import read_sealed, write_sealed
from core.studies.provenance import EARLIER, Provenance
from core.studies.rows import Cell, Row

__all__ = ["keep_cell", "read_cell"]

_REMEDY = (
    "Move it away and run the same command: this cell alone is measured again, all others are kept."
)

_FORMER = {"cell", "seconds", "rows"}
"""What a cell of earlier versions holds, which set no seal."""


def keep_cell(
    path: Path,
    cell: Cell,
    rows: Sequence[Mapping[str, Any]],
    *,
    seconds: float,
    provenance: Mapping[str, Any],
) -> None:
    """Write the flat rows of a cell, sealed."""
    told = {"cell": cell, "provenance": provenance, "seconds": seconds, "rows": list(rows)}
    write_sealed(path, told)


def read_cell(path: Path, cell: Cell) -> list[Row]:
    """Return the rows of a cell as they were kept.

    One without a seal is taken for one of an earlier version, and its provenance says so.

    Raises
    ------
    ArtifactError
        Damaged, altered, or of another cell; the message names the file and the remedy.
    """
    stored, is_sealed = read_sealed(path, _REMEDY)
    if not is_sealed and stored.keys() != _FORMER:
        raise ArtifactError(f"{path} has lost its seal, or does not hold a cell. {_REMEDY}")
    try:
        if _plain(stored["cell"]) != _plain(cell):
            raise ArtifactError(f"{path} holds another cell than its name says. {_REMEDY}")
        found = Provenance.from_dict(stored["provenance"]) if is_sealed else EARLIER
        seconds = float(stored["seconds"])
        rows = [Row.from_dict(row) for row in stored["rows"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{path} does not hold the rows of a cell ({type(error).__name__}: {error}). {_REMEDY}"
        ) from error
    return [replace(row, cell=cell, seconds=seconds, provenance=found) for row in rows]


def _plain(cell: Any) -> str:
    return json.dumps(cell, sort_keys=True)
