"""Mutation testing: plant known faults one by one; some test must fail.

    python -m tools.mutate [NAME ...] [--jobs N] [--out FILE.json]

Each mutant of `mutants.toml` is planted in a copy of the project, where the tests that have to
notice it run. The table is written beside FILE.json as Markdown. What was tried is kept beside it
as it comes, and the same command goes on there; where the code has changed since, it begins anew.
Mutants that are named are tried whatever came of them before, and take their places in the table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from tools.checkpoint import TryLog

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "mutants.json"
LONGEST = 600.0
"""Seconds for the tests of a mutant; one that makes them hang is noticed, too."""

_COPIED = (
    "core",
    "dashboard",
    "leakscope",
    "pages",
    "scripts",
    "tests",
    "tools",
    "benchmarks",
    "pyproject.toml",
    "setup.py",
)
_LINKED = ("assets", "docs", "results", "README.md", ".streamlit")
_PASSED, _FAILED = 0, 1
"""Exit statuses of pytest; any other is a fault of the run itself, but for those that follow."""

_CRASHED = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE)
"""Of an interpreter that a fault brought down: memory that a library reads beyond its end, say."""


@dataclass(frozen=True)
class Mutant:
    """A planted fault: the change to a file, and the tests that must detect it.

    Attributes
    ----------
    name : str
        What goes wrong.
    old, new : str
        What stands in the file, once, and what is put there.
    tests : tuple of str
        As pytest takes them.
    excuse : str
        Why no test can notice it, where none can.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    excuse: str = ""


def _read_mutants() -> Iterator[Mutant]:
    """Yield the planted faults that `mutants.toml` lists."""
    text = Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8")
    for each in tomllib.loads(text)["mutant"]:
        yield Mutant(**{**each, "tests": tuple(each["tests"])})


MUTANTS = tuple(_read_mutants())
"""In the order of what they would spoil."""


@dataclass(frozen=True)
class Verdict:
    """Whether a mutant was killed, and by which test."""

    name: str
    is_killed: bool
    told: str
    seconds: float


def planted(mutant: Mutant, source: str) -> str:
    """Return a source text with the mutant's fault; raise ValueError unless it fits exactly once.

    Raises
    ------
    ValueError
        What is to be changed does not stand there exactly once.
    """
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {mutant.old!r} does not stand once in {mutant.file}")
    return source.replace(mutant.old, mutant.new)


def run(mutant: Mutant, place: Path) -> Verdict:
    """Plant a mutant in a copy of the project, run its tests, undo it and return the verdict."""
    path = place / mutant.file
    source = path.read_text(encoding="utf-8")
    path.write_text(planted(mutant, source), encoding="utf-8")
    start = time.perf_counter()
    try:
        status, told = _run_tests(mutant.tests, place)
    finally:
        path.write_text(source, encoding="utf-8")
    return Verdict(mutant.name, status == _FAILED, told, round(time.perf_counter() - start, 1))


def _run_tests(tests: Sequence[str], place: Path) -> tuple[int, str]:
    """Run tests in a copy of the project; return the exit status and the first failure."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", *tests]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return _FAILED, f"no end within {LONGEST:.0f} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode in _CRASHED:
        return _FAILED, f"{' '.join(tests)}, where the interpreter crashes"
    if done.returncode not in (_PASSED, _FAILED):
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    first = lines[0].split(" - ")[0].partition(" ")[2] if lines else ""
    return done.returncode, first


def _copy_project(place: Path) -> Path:
    """Copy the project into a folder and return the folder."""
    for name in _COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, place / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, place / name)
    for name in _LINKED:
        if (ROOT / name).exists():
            (place / name).symlink_to(ROOT / name)
    return place


def markdown(verdicts: Sequence[Verdict], mutants: Sequence[Mutant]) -> str:
    """Render the Markdown table of mutants and the tests that noticed them."""
    n_killed = sum(v.is_killed for v in verdicts)
    lines = [
        f"{n_killed} of {len(verdicts)} planted faults are noticed.",
        "",
        "| fault | file | noticed by |",
        "|---|---|---|",
    ]
    about = {mutant.name: mutant for mutant in mutants}
    for v in verdicts:
        noticed = f"`{v.told}`" if v.is_killed else f"**nobody**: {about[v.name].excuse or '?'}"
        lines.append(f"| {v.name} | `{about[v.name].file}` | {noticed} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run all mutants and write the table; exit status 1 if more than one in twenty survives."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutants; all by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    known_well = "the tests are known to pass without a mutant: plant at once"
    parser.add_argument("--healthy", action="store_true", help=known_well)
    parser.add_argument("--out", type=Path, default=OUT, help="FILE.json; .md beside")
    arguments = parser.parse_args()
    if arguments.names:  # to be seen now, whatever came of them before
        named = [mutant for mutant in MUTANTS if mutant.name in arguments.names]
        verdicts = _run_all(named, arguments.jobs, are_healthy=arguments.healthy)
        _update_table(arguments.out, verdicts)
        return _exit_status(verdicts)
    code = [ROOT / name for name in _COPIED if (ROOT / name).is_dir()]
    kept = TryLog(arguments.out.with_suffix(".tries.jsonl"), Verdict, code)
    known = {verdict.name: verdict for verdict in kept.known}
    left = [mutant for mutant in MUTANTS if mutant.name not in known]
    found = _run_all(left, arguments.jobs, kept.add, are_healthy=arguments.healthy)
    known |= {verdict.name: verdict for verdict in found}
    if len(known) < len(MUTANTS):
        return 1
    verdicts = [known[mutant.name] for mutant in MUTANTS]
    _write_results(arguments.out, verdicts)
    kept.remove()
    return _exit_status(verdicts)


def _write_results(path: Path, verdicts: Sequence[Verdict]) -> None:
    """Write the verdicts as JSON, and the Markdown table beside it."""
    path.write_text(json.dumps([vars(v) for v in verdicts], indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(verdicts, MUTANTS), encoding="utf-8")


def _update_table(path: Path, verdicts: Sequence[Verdict]) -> None:
    """Replace these mutants' verdicts in the written table, if it is there and complete."""
    if not path.exists():
        return
    known = {told["name"]: Verdict(**told) for told in json.loads(path.read_text("utf-8"))}
    known |= {verdict.name: verdict for verdict in verdicts}
    if known.keys() >= {mutant.name for mutant in MUTANTS}:
        _write_results(path, [known[mutant.name] for mutant in MUTANTS])


def _exit_status(verdicts: Sequence[Verdict]) -> int:
    """Print how many mutants were killed; return 0 if at least 95 % were, else 1."""
    n_killed = sum(v.is_killed for v in verdicts)
    print(f"{n_killed} of {len(verdicts)} killed")
    return 0 if n_killed >= 0.95 * max(len(verdicts), 1) else 1


def _run_all(
    mutants: Sequence[Mutant],
    jobs: int,
    keep: Callable[[Verdict], None] = lambda _: None,
    *,
    are_healthy: bool = False,
) -> list[Verdict]:
    """Run mutants in parallel copies; return no verdict if tests fail without a mutant."""
    adding = Lock()
    with tempfile.TemporaryDirectory() as folder:
        places: SimpleQueue[Path] = SimpleQueue()
        for i in range(jobs):
            places.put(_copy_project(Path(folder, str(i))))

        @contextmanager
        def a_place() -> Iterator[Path]:
            """Yield the folder of a free copy of the project, and give it back after."""
            place = places.get()
            try:
                yield place
            finally:
                places.put(place)

        def tested(tests: Sequence[str]) -> tuple[int, str]:
            """Run tests in a copy without a mutant; return exit status and first failure."""
            with a_place() as place:
                return _run_tests(tests, place)

        def work(mutant: Mutant) -> Verdict:
            """Plant a mutant in a copy and run its tests; print, keep and return the verdict."""
            with a_place() as place:
                verdict = run(mutant, place)
            print(
                f"{'killed  ' if verdict.is_killed else 'SURVIVED'} {verdict.name}: "
                f"{verdict.told} ({verdict.seconds:.0f} s)",
                flush=True,
            )
            with adding:
                keep(verdict)
            return verdict

        with ThreadPoolExecutor(jobs) as pool:
            to_see = () if are_healthy else dict.fromkeys(m.tests for m in mutants)
            for healthy, told in pool.map(tested, to_see):
                if healthy != _PASSED:
                    print(f"The tests fail without any mutant: {told}", file=sys.stderr)
                    pool.shutdown(cancel_futures=True)
                    return []
            return list(pool.map(work, mutants))


if __name__ == "__main__":
    sys.exit(main())
