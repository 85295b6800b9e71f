"""Rows of a small trade-off in which words, an attribute and members were read; times told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.results import Interval, Score
from core.studies.rows import Row
from core.studies.tables import table_of


def score(value: float, chance: float = 50.0) -> Score:
    return Score(value, Interval(value - 1, value + 1), 300, chance)


def row(
    defence: str, useful: float, words: float, attribute: float, members: float | None = None,
    *, facts: dict[str, Any] | None = None, **settings: Any,
) -> Row:  # fmt: skip
    """Return one cell: usefulness of SST-2 and TREC, and what is read."""
    cell = {"study": "tradeoff", "encoder": "minilm", "defence": defence,
            "defence_settings": settings, "seed": 0}  # fmt: skip
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


def write(folder: Path, rows: list[Row] = ROWS) -> Path:
    """Write rows as the study does; return the file."""
    path = folder / "minilm.json"
    path.write_text(json.dumps(table_of("tradeoff", rows)))
    return path
