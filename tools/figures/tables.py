"""Documents generated as a whole: result tables and lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from leakscope.core.results.tables import read_rows
from leakscope.core.storage.artifacts import read_json
from leakscope.core.studies.registry import STUDIES
from tools import data, mutate, rate_coverage, repeats, settings
from tools.faults import table as faults
from tools.figures.sources import ROOT
from tools.fuzz import table as fuzz

_OF_TOOLS: dict[str, Callable[[Any], str]] = {
    "faults": faults.markdown,
    "fuzz": lambda told: fuzz.markdown(told["counts"], told["command"]),
    "mutants": lambda told: mutate.markdown(
        [mutate.Verdict(**each) for each in told], mutate.MUTANTS
    ),
}
"""Tables that a tool of ours measured, by their files: what makes each of what its file tells."""


def whole() -> dict[Path, Callable[[], str]]:
    """Return a dict from each wholly generated document to the function that makes its text."""
    results = ROOT / "results"
    tables = [
        path.with_name(path.name.replace(".spec.json", ".md"))
        for path in sorted(results.glob("*.spec.json"))
    ]
    made: dict[Path, Callable[[], str]] = {path: partial(table_of, path) for path in tables}
    docs = ROOT / "docs"
    made |= {results / f"{name}.md": partial(_tool_table, name) for name in _OF_TOOLS}
    made |= {each.OUT.with_suffix(".md"): each.markdown for each in (repeats, rate_coverage)}
    return {**made, docs / "data.md": data.markdown, docs / "settings.md": settings.markdown}


def _tool_table(name: str) -> str:
    """Render the Markdown table of a tool from its JSON results."""
    path = ROOT / "results" / f"{name}.json"
    return _OF_TOOLS[name](json.loads(path.read_text(encoding="utf-8")))


def table_of(path: Path) -> str:
    """Render a study's Markdown table from its rows, given the table's path.

    Raises
    ------
    ArtifactError
        The rows are missing, or no study's.
    """
    study = read_json(path.with_suffix(".spec.json"))["study"]
    rows = read_rows(path.with_suffix(".json"), study)
    return STUDIES[study].markdown(rows)
