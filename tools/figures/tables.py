"""Documents that are written whole: tables from the rows beside them, and lists of the docs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from core.store import read_json
from core.studies.registry import STUDIES
from core.studies.tables import read_rows
from core.studies.tradeoff_files import SHIPPED, load_rows
from tools import data, mutate, rate_coverage, repeats, settings
from tools.faults import table as faults
from tools.figures.sources import ROOT
from tools.fuzz import table as fuzz
from tools.mutants import MUTANTS

__all__ = ["table_of", "whole"]

_ELSEWHERE = {
    "tradeoff": SHIPPED / "minilm.json",
    "tradeoff-all": SHIPPED / "minilm-all.json",
    "tradeoff-banking": SHIPPED / "minilm-banking.json",
}
"""Tables whose rows ship with the pages."""


_OF_TOOLS: dict[str, Callable[[Any], str]] = {
    "faults": faults.markdown,
    "fuzz": lambda told: fuzz.markdown(told["counts"], told["command"]),
    "mutants": lambda told: mutate.markdown([mutate.Verdict(**each) for each in told], MUTANTS),
}
"""Tables that a tool of ours measured, by their files: what makes each of what its file tells."""


def whole() -> dict[Path, Callable[[], str]]:
    """Return the documents that are written whole, with what makes the text of each."""
    results = ROOT / "docs" / "results"
    tables = [path.with_name(path.name.replace(".spec.json", ".md"))
              for path in sorted(results.glob("*.spec.json"))]  # fmt: skip
    made: dict[Path, Callable[[], str]] = {path: partial(table_of, path) for path in tables}
    docs = ROOT / "docs"
    made |= {results / f"{name}.md": partial(_of_a_tool, name) for name in _OF_TOOLS}
    made |= {each.OUT.with_suffix(".md"): each.markdown for each in (repeats, rate_coverage)}
    return {**made, docs / "data.md": data.markdown, docs / "settings.md": settings.markdown}


def _of_a_tool(name: str) -> str:
    path = ROOT / "docs" / "results" / f"{name}.json"
    return _OF_TOOLS[name](json.loads(path.read_text(encoding="utf-8")))


def table_of(path: Path) -> str:
    """Return what the table at a path should be, from its rows.

    Raises
    ------
    ArtifactError
        The rows are missing, or no study's.
    """
    study = read_json(path.with_suffix(".spec.json"))["study"]
    elsewhere = _ELSEWHERE.get(path.stem)
    rows = load_rows(elsewhere) if elsewhere else read_rows(path.with_suffix(".json"), study)
    return STUDIES[study].markdown(rows)
