"""Table of fuzzing results: targets by how their cases ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leakscope.core.results.tables import markdown_table
from leakscope.core.storage.artifacts import write_json
from leakscope.core.storage.atomic_files import atomic_write
from tools.fuzz.play import ENDS, Verdict


def counts(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Count each target's cases by how they ended, and those answered wrongly."""
    names = list(dict.fromkeys(verdict.target for verdict in verdicts))
    return [_count_target(name, [v for v in verdicts if v.target == name]) for name in names]


def _count_target(name: str, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Count one target's cases by how they ended, and those answered wrongly."""
    right = [verdict for verdict in verdicts if not verdict.problem]
    ends = {end: sum(verdict.end == end for verdict in right) for end in ENDS}
    return {"target": name, "cases": len(verdicts), **ends, "wrong": len(verdicts) - len(right)}


def write(path: Path, verdicts: Sequence[Verdict], command: str) -> None:
    """Write the counts of the verdicts as JSON, and the Markdown table beside it."""
    found = counts(verdicts)
    told = {
        "command": command,
        "n_cases": len(verdicts),
        "counts": found,
        "wrong": [
            {"target": v.target, "end": v.end, "problem": v.problem} for v in verdicts if v.problem
        ],
    }
    write_json(path, told, is_public=True)
    content = markdown(found, command).encode(errors="backslashreplace")
    atomic_write(path.with_suffix(".md"), content, is_public=True)


def markdown(found: Sequence[dict[str, Any]], command: str) -> str:
    """Render the Markdown table of counts by target."""
    n_cases, n_wrong = (sum(each[name] for each in found) for name in ("cases", "wrong"))
    columns = ("target", "cases", *ENDS, "wrong")
    return "\n".join(
        [
            "# What damaged input is answered",
            "",
            "Each command and each reader was given what is right, and what is damaged: changed "
            "words of a command line, bytes of a file, JSON, arrays and what is said of them. "
            "Right is an end with status 0, or a refusal in one line with status 2; a reader "
            "returns, or raises an error of ours that says what to do. Where hours of work, a "
            "server or a network would begin, a case ends (“reached the work”). Wrong is a "
            "traceback, another status, an end that does not come, what is whole and refused, and "
            "a file that is left half written.",
            "",
            *markdown_table(columns, [tuple(each[name] for name in columns) for each in found]),
            "",
            f"{n_cases:,} cases; {n_wrong:,} were answered wrongly. Repeat it: `{command}`.",
            "",
        ]
    )
