"""Fuzz every command and reader, and write the table: `python -m tools.fuzz`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from leakscope.core.compiled import machine_code_folder
from leakscope.core.errors import InvalidInputError
from leakscope.core.storage.artifacts import output_folder
from tools.fuzz.play import PATIENCE, Case, Verdict, bound_memory, no_long_work, play

RESULTS = Path(__file__).resolve().parents[2] / "results" / "fuzz.json"
N_CASES = 10_000
_KIT = "the kit"
"""What is told of a process that died before its first case."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fuzzing cases; write the counts as JSON and Markdown; exit status 1 if one failed."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser().parse_args(given)
    if options.worker:
        return _work(options)
    with output_folder(options.out):
        return _run_cases(given, options.out)


def parser() -> argparse.ArgumentParser:
    """Build the command's argument parser."""
    made = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    cases = f"shared out, one a target at least (default: {N_CASES})"
    made.add_argument("--cases", type=int, default=N_CASES, help=cases)
    made.add_argument("--seed", type=int, default=0, help="of the drawing (default: 0)")
    made.add_argument("--only", nargs="+", metavar="TARGET", help="as the report calls them")
    made.add_argument("--out", type=Path, default=RESULTS, help="FILE.json; .md beside")
    made.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    made.add_argument("--after", metavar="TARGET", help=argparse.SUPPRESS)
    return made


def _run_cases(given: Sequence[str], out: Path) -> int:
    """Run the cases in worker processes and write the counts; return the exit status."""
    from tools.fuzz.table import write

    verdicts = []
    try:
        for verdict in _verdicts(given):
            verdicts.append(verdict)
            if verdict.problem:
                print(f"{verdict.target}, {verdict.end}: {verdict.problem}", file=sys.stderr)
    except InvalidInputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    command = " ".join(["python -m tools.fuzz", *given])
    write(out, verdicts, command)
    n_wrong = sum(bool(verdict.problem) for verdict in verdicts)
    print(f"{len(verdicts):,} cases, {n_wrong} answered wrongly: {out}")
    return int(n_wrong > 0)


def _verdicts(given: Sequence[str]) -> Iterator[Verdict]:
    """Run worker processes and yield their verdicts; if one dies, the next continues after it.

    Raises
    ------
    InvalidInputError
        No cases can be played as it was asked for; the message says why.
    """
    after: list[str] = []
    while True:
        last = None
        for verdict in _worker_verdicts([*given, *after]):
            yield verdict
            last = verdict
        if last is None or last.end != "died" or last.target == _KIT:
            return
        after = ["--after", last.target]


def _worker_verdicts(given: Sequence[str]) -> Iterator[Verdict]:
    """Start one worker process and yield its verdicts; one that dies yields a last, "died"."""
    command = [sys.executable, "-m", "tools.fuzz", *given, "--worker"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(machine_code_folder())}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        encoding="utf-8",
        errors="replace",
    ) as worker:
        assert worker.stdout is not None
        begun = ""
        for line in worker.stdout:
            told = json.loads(line)
            if "refused" in told:
                raise InvalidInputError(told["refused"])
            if "begun" in told:
                begun = told["begun"]
            else:
                yield Verdict(**told)
    if worker.returncode:
        problem = f"the process ended with status {worker.returncode} after it had begun this case"
        yield Verdict(begun.partition(":")[0] or _KIT, "died", f"{problem}\n{begun}")


def _work(options: argparse.Namespace) -> int:
    """Run the cases in this worker process, printing each as JSON before and after."""
    from tools.fuzz.kit import make_kit
    from tools.fuzz.targets import chosen, run_target, shares, targets

    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(2, 1)  # whatever a library prints is no verdict

    def tell(told: dict[str, str]) -> None:
        """Write a dict to the parent process as one JSON line."""
        print(json.dumps(told), file=out, flush=True)

    def judge(case: Case) -> Verdict:
        """Announce a case to the parent process, run it, report its verdict and return it."""
        tell({"begun": f"{case.target}: {case.words} {sorted(case.files)}"})
        verdict = play(case, PATIENCE)
        tell(asdict(verdict))
        return verdict

    with tempfile.TemporaryDirectory() as place, no_long_work():
        kit = make_kit(Path(place) / "kit")
        every = targets(kit)
        try:
            n_cases = shares(chosen(every, options.only), options.cases)
        except InvalidInputError as error:
            tell({"refused": str(error)})
            return 0
        bound_memory()
        names = list(n_cases)
        for name in names[names.index(options.after) + 1 if options.after in names else 0 :]:
            n = n_cases[name]
            for _ in run_target(every[name], n, options.seed, judge=judge):
                pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
