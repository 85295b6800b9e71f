"""Rows of a small trade-off study with leaked words, an attribute, members and times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Row
from leakscope.core.results.tables import rows_to_json


def score(value: float, chance: float = 50.0) -> Score:
    """Return a Score with an interval of ±1."""
    return Score(value, Interval(value - 1, value + 1), 300, chance)


def row(
    defence: str,
    useful: float,
    words: float,
    attribute: float,
    members: float | None = None,
    *,
    facts: dict[str, Any] | None = None,
    **settings: Any,
) -> Row:
    """Return the row of a defence: usefulness of SST-2 and TREC, and its leakage."""
    cell = {
        "study": "tradeoff",
        "encoder": "minilm",
        "defence": defence,
        "defence_settings": settings,
        "seed": 0,
    }
    scores = {
        "accuracy: SST-2": score(useful),
        "accuracy: TREC": score(useful - 2),
        "token_set_f1: tuned": score(words, 3.0),
        "token_set_f1: search": score(words - 5, 3.0),
        "attribute_top1: linear": score(attribute, 10.0),
    }
    if members is not None:
        scores["membership_auc: lira_online"] = score(members)
    return Row(cell, scores, facts or {}, seconds=1.0)


TIMED = {"milliseconds_a_text": 4.2, "training_minutes": 0}
ROWS = [
    row("none", 90, 60, 40, 70, facts=TIMED),
    row("gaussian", 86, 20, 39, 60, sigma=0.05),
    row("binary", 87, 50, 12, facts=TIMED),
    row("text_to_text+int8", 85, 45, 30, 52, facts=TIMED, **{"text_to_text.eta": 60.0}),
    row("adversarial", 88, 30, 25, facts={"training_minutes": 23.0}, against="words", weight=0.5),
    row("leace", 88, 58, 11, facts={"training_minutes": 0.1}),
    row("custext", 86, 40, 20, epsilon=4.0, mapping="aggressive"),
]


def write_rows(folder: Path, rows: list[Row] = ROWS) -> Path:
    """Write rows to a file as the study does; return the path."""
    path = folder / "minilm.json"
    path.write_text(json.dumps(rows_to_json("tradeoff", rows)))
    return path
