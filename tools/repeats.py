"""Count test texts of the trade-off's tasks that nearly repeat a training text.

`python -m tools.repeats --files DATA` reads the tasks of results/tradeoff.spec.json in DATA,
scores MiniLM without a defence on all test texts of seed 0 and on those that repeat none, and
writes results/task-repeats.json; `python -m tools.figures` writes the table beside it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.corpora.near_duplicates import THRESHOLD
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.protocols import Encoder
from leakscope.core.results.tables import markdown_table
from leakscope.core.specs import EncoderSpec
from leakscope.core.storage.artifacts import read_json, write_json
from leakscope.core.tasks.labelled import LabelledTask, read_labelled

RESULTS = Path(__file__).resolve().parents[1] / "results"
OUT = RESULTS / "task-repeats.json"


def measured(task: LabelledTask, encoder: Encoder, *, seed: int = 0) -> dict[str, Any]:
    """Count a task's test texts that nearly repeat a training text; test with and without them.

    They are left out of every study; here both are measured once.
    """
    known, held, repeats = task.sides(seed=seed)
    right = task.tested(encoder, known, held).right
    return {
        "task": task.name,
        "n_held": len(held),
        "n_near": len(repeats),
        "accuracy_with": 100 * float(right.mean()),
        "accuracy": 100 * float(np.delete(right, repeats).mean()),
    }


def markdown(told: dict[str, Any] | None = None) -> str:
    """Render the Markdown table of near-repeats from results, by default the written ones."""
    told = read_json(OUT) if told is None else told
    columns = ("task", "held out", "near-repeats", "accuracy with them", "without", "difference")
    lines = [
        (
            t["task"],
            f"{t['n_held']:,}",
            t["n_near"],
            f"{t['accuracy_with']:.1f}",
            f"{t['accuracy']:.1f}",
            _signed(t["accuracy"] - t["accuracy_with"]),
        )
        for t in told["tasks"]
    ]
    return "\n".join(
        [
            "# Test texts that nearly repeat training texts",
            "",
            f"Of the labelled tasks of the trade-off, seed {told['seed']}: test texts that share "
            f"at least {told['near']} of their runs of three words with a training text, or stand "
            "nearly whole in one; accuracy in per cent of a linear classifier on "
            f"{told['encoder']} without a defence, on all texts held out and on the others alone. "
            "No study tests on them. Repeat it: `python -m tools.repeats --files DATA`.",
            "",
            *markdown_table(columns, lines),
            "",
        ]
    )


def _signed(points: float) -> str:
    """Format a difference in points with its sign."""
    return f"{points:+.1f}".replace("-", "−") if abs(points) >= 0.05 else "0.0"


def main(arguments: list[str] | None = None) -> int:
    """Measure the near-repeats of every labelled task and write the results as JSON."""
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
