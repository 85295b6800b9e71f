"""Fail each file operation of each command, and write the table: `python -m tools.faults`.

All of it takes an hour or two. What was tried is kept beside the table as it comes, and the same
command goes on there; where the engine has changed since, it begins anew.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tools.checkpoint import TryLog
from tools.faults.commands import COMMANDS
from tools.faults.runs import measure
from tools.faults.shim import why_not
from tools.faults.table import in_order, write
from tools.faults.tries import Outcome

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "faults.json"
CODE = (ROOT / "core", Path(__file__).parent)
"""The engine, and what makes its faults."""


def main() -> int:
    """Inject all faults; write the counts as JSON and Markdown; exit status 1 if any was lost."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        default=list(COMMANDS),
        choices=list(COMMANDS),
        metavar="COMMAND",
        help="; ".join(COMMANDS),
    )
    parser.add_argument("--most", type=int, help="tries a command, spread over all (default: all)")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="processes that share the tries (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="FILE.json; .md beside")
    arguments = parser.parse_args()
    if why_not():
        print(f"error: {why_not()}.", file=sys.stderr)
        return 2
    kept = TryLog(arguments.out.with_suffix(".tries.jsonl"), Outcome, CODE)
    outcomes = list(kept.known)
    for outcome in measure(arguments.only, arguments.most, known=outcomes, jobs=arguments.jobs):
        outcomes.append(outcome)
        kept.add(outcome)
        if outcome.problem:
            print(
                f"{outcome.command}, {outcome.what} {outcome.path} ({outcome.at}), "
                f"{outcome.kind}: {outcome.problem}",
                file=sys.stderr,
            )
    outcomes = in_order(outcomes, arguments.only)
    write(arguments.out, outcomes, arguments.most)
    kept.remove()
    n_wrong = sum(bool(outcome.problem) for outcome in outcomes)
    print(f"{len(outcomes):,} tries, {n_wrong} with something lost: {arguments.out}")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
