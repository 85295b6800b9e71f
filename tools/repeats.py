"""How many test texts of the tasks of the trade-off nearly repeat a training text.

`python -m tools.repeats --files DATA` reads the tasks of docs/results/tradeoff.spec.json in DATA,
scores MiniLM without a defence on all test texts of seed 0 and on those that repeat none, and
writes docs/results/task-repeats.json; `python -m tools.figures` writes the table beside it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from core.corpora.near_duplicates import THRESHOLD, near_duplicates
from core.encoders import load_encoder
from core.encoders.cache import CachedEncoder
from core.protocols import Encoder
from core.specs import EncoderSpec
from core.store import read_json, write_json
from core.studies.tables import markdown_table
from core.tasks.labelled import LabelledTask, read_labelled

__all__ = ["OUT", "main", "markdown", "measured"]

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
OUT = RESULTS / "task-repeats.json"


def measured(task: LabelledTask, encoder: Encoder, *, seed: int = 0) -> dict[str, Any]:
    """Return how many test texts nearly repeat a training text, and the accuracy without them."""
    known, held = task.parts(seed=seed)
    near = near_duplicates([task.texts[i] for i in held], (task.texts[i] for i in known))
    right = task.outcome(encoder, seed=seed).right
    is_new = np.array([i not in near for i in range(len(held))])
    return {
        "task": task.name,
        "n_test": len(held),
        "n_near": len(near),
        "accuracy": 100 * float(right.mean()),
        "accuracy_without": 100 * float(right[is_new].mean()),
    }


def markdown(told: dict[str, Any] | None = None) -> str:
    """Return the table of what was measured."""
    told = read_json(OUT) if told is None else told
    columns = ("task", "test texts", "near-repeats", "accuracy", "without them", "difference")
    lines = [
        (t["task"], f"{t['n_test']:,}", t["n_near"], f"{t['accuracy']:.1f}",
         f"{t['accuracy_without']:.1f}", _signed(t["accuracy_without"] - t["accuracy"]))
        for t in told["tasks"]
    ]  # fmt: skip
    return "\n".join([
        "# Test texts that nearly repeat training texts",
        "",
        f"Of the labelled tasks of the trade-off, seed {told['seed']}: test texts that share at "
        f"least {told['near']} of their runs of three words with a training text, or stand nearly "
        "whole in one; accuracy in per cent of a linear classifier on "
        f"{told['encoder']} without a defence, on all test texts and on the others alone. They "
        "stay in the trade-off: a defence is held against none on the same texts. "
        "Repeat it: `python -m tools.repeats --files DATA`.",
        "",
        *markdown_table(columns, lines),
        "",
    ])  # fmt: skip


def _signed(points: float) -> str:
    return f"{points:+.1f}".replace("-", "−") if abs(points) >= 0.05 else "0.0"


def main(arguments: list[str] | None = None) -> int:
    """Measure every labelled task and write the file."""
    parser = argparse.ArgumentParser(prog="python -m tools.repeats", description=__doc__)
    parser.add_argument("--files", type=Path, required=True, metavar="DATA")
    folder = parser.parse_args(arguments).files
    spec = read_json(RESULTS / "tradeoff.spec.json")
    encoder = CachedEncoder(load_encoder(EncoderSpec(precision=spec["precision"])))
    tasks = [task.partition("=") for task in spec["tasks"]]
    rows = [measured(read_labelled(name, folder / file), encoder) for name, _, file in tasks]
    told = {"encoder": "MiniLM", "near": THRESHOLD, "seed": 0, "tasks": rows}
    write_json(OUT, told, is_public=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
