"""Table of fault-injection outcomes: commands by kinds of fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leakscope.core.results.tables import markdown_table
from leakscope.core.storage.artifacts import write_json
from leakscope.core.storage.atomic_files import atomic_write
from tools.faults.shim import KINDS
from tools.faults.tries import Outcome

UPLOADS = (
    "Uploads have no row: what a visitor uploads is kept in memory alone, so that no file "
    "operation is there to fail. "
    "`tests/test_server_privacy.py::test_an_upload_is_kept_in_memory_alone` watches the server "
    "for one."
)
"""Why one way to hand in texts is not tried."""


def write(path: Path, outcomes: Sequence[Outcome], most: int | None = None) -> None:
    """Write the counts of outcomes as JSON, and the Markdown table beside it."""
    told = summarise_outcomes(outcomes, most)
    write_json(path, told, is_public=True)
    atomic_write(path.with_suffix(".md"), markdown(told).encode(), is_public=True)


def summarise_outcomes(outcomes: Sequence[Outcome], most: int | None = None) -> dict[str, Any]:
    """Count outcomes by command and kind of fault; return a JSON-serialisable summary."""
    names = list(dict.fromkeys(outcome.command for outcome in outcomes))
    return {
        "command": "python -m tools.faults" + ("" if most is None else f" --most {most}"),
        "n_tries": len(outcomes),
        "most": most,
        "operations": {each.command: each.n_operations for each in outcomes},
        "counts": [_count_outcomes(outcomes, name, kind) for name in names for kind in KINDS],
        "lost": [asdict(outcome) for outcome in outcomes if outcome.problem],
    }


def _count_outcomes(outcomes: Sequence[Outcome], name: str, kind: str) -> dict[str, str | int]:
    """Count the outcomes of one command under one kind of fault."""
    chosen = [each for each in outcomes if (each.command, each.kind) == (name, kind)]
    ends = {how: sum(each.first == how for each in chosen) for how in ("done", "refused", "killed")}
    wrong = sum(bool(each.problem) for each in chosen)
    return {"command": name, "kind": kind, "tries": len(chosen), **ends, "lost": wrong}


def _describe_tries(most: int | None) -> str:
    """Return the table's sentence on how many operations were tried."""
    if most is None:
        return "All of these were tried."
    return f"Of these, {most} a command were tried, spread evenly over them."


def _count_operations(told: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of file operations of each command in the summary of a fault run."""
    counted = {each["command"]: each["tries"] for each in told["counts"] if each["kind"] == "error"}
    return {**counted, **told.get("operations", {})}


def markdown(told: Mapping[str, Any]) -> str:
    """Render the table: per command and fault, how many tries lost nothing.

    Parameters
    ----------
    told : mapping
        What the file beside it holds (see `summarise_outcomes`).
    """
    lines = []
    for name, n in _count_operations(told).items():
        counts = [each for each in told["counts"] if each["command"] == name]
        cells = [f"{c['tries'] - c['lost']} of {c['tries']}" if c["tries"] else "–" for c in counts]
        lines.append((name, n, *cells))
    return "\n".join(
        [
            "# What a fault of the disk costs",
            "",
            "Each file operation of a command (opening, writing, forcing to disk, renaming, "
            "removing, making a folder; by Python, SQLite and Arrow alike) can fail in turn: with "
            "an error, with the process killed there, with a disk that is full from there on, with "
            "half of a write taken, and with half of a write taken and the process killed. Then "
            f"the same command ran again. {_describe_tries(told.get('most'))} A cell says how "
            "often all files were then as without a fault, times aside, with nothing left over; "
            "and the run that met the fault had told it in one line.",
            "",
            *markdown_table(("command", "operations", *KINDS), lines),
            "",
            UPLOADS,
            "",
            f"{told['n_tries']:,} tries; {len(told['lost'])} lost something. "
            f"Repeat it: `{told['command']}`.",
            "",
        ]
    )


def in_order(outcomes: Sequence[Outcome], names: Sequence[str]) -> list[Outcome]:
    """Return the named commands' outcomes, sorted by command and operation."""
    chosen = [each for each in outcomes if each.command in names]
    return sorted(chosen, key=lambda each: (names.index(each.command), each.at))
