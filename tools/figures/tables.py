"""Tables of the documentation that are written whole from the rows beside them."""

from __future__ import annotations

from pathlib import Path

from core.studies.registry import STUDIES
from core.studies.tables import read_rows
from core.studies.tradeoff_summary import load_rows
from tools.figures.sources import ROOT

__all__ = ["table_of", "tables"]

_ELSEWHERE = {"tradeoff": ROOT / "assets" / "tradeoff" / "minilm.json"}
"""Studies whose rows ship with the pages."""


def tables() -> list[Path]:
    """Return the tables that a study wrote."""
    found = (path.with_name(path.name.replace(".spec.json", ".md"))
             for path in sorted((ROOT / "docs" / "results").glob("*.spec.json")))  # fmt: skip
    return [path for path in found if path.exists()]


def table_of(path: Path) -> str:
    """Return what the table at a path should be, from its rows.

    Raises
    ------
    ArtifactError
        The rows are missing, or no study's.
    """
    from core.store import read_json

    study = read_json(path.with_suffix(".spec.json"))["study"]
    elsewhere = _ELSEWHERE.get(study)
    rows = load_rows(elsewhere) if elsewhere else read_rows(path.with_suffix(".json"), study)
    return STUDIES[study].markdown(rows)
