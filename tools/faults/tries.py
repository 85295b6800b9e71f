"""Run a command with an injected fault and again without it, forking a process per try.

Run as a process with the library of faults loaded. It imports what the commands need, once, and
forks for each try, so that a try takes no longer than the command's own work.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.faults.commands import COMMANDS, write_inputs
from tools.faults.shim import KINDS, Operation, Shim

_TIMES = {"seconds", "cell_seconds", "begun", "cell_begun", "seal", "log", "n_resumed"}
_SECONDS_IN_TABLE = re.compile(r"\d+ \|$", re.MULTILINE)
_NO_RESULT = (".sqlite", "lock")
"""Proposals of a search, which are no result: that they are whole, the next run proves."""


def results_of(folder: Path) -> dict[str, Any]:
    """Read every file below a folder; return its normalised content by relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): _read_content(path) for path in files}


def _read_content(path: Path) -> Any:
    """Read one file; return its content without times, or a digest of it."""
    if path.name.endswith(_NO_RESULT):
        return ""
    if path.suffix == ".json":
        try:
            return _without_times(json.loads(path.read_text(encoding="utf-8")))
        except ValueError:
            return "no JSON"
    if path.suffix == ".md":
        return _SECONDS_IN_TABLE.sub("|", path.read_text(encoding="utf-8"))
    if path.suffix == ".parquet":
        return _read_parquet(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _without_times(data: Any) -> Any:
    """Return nested JSON data without the entries that are times."""
    if isinstance(data, dict):
        return {name: _without_times(value) for name, value in data.items() if name not in _TIMES}
    return [_without_times(value) for value in data] if isinstance(data, list) else data


def _read_parquet(path: Path) -> Any:
    """Read a Parquet file; return its columns without times, as text."""
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except Exception as error:  # whatever a torn file makes the library say
        return f"no Parquet: {error}"
    return repr(table.drop(columns=[c for c in table if c in _TIMES]).to_dict("list"))


SHARE = "share.json"
"""In the folder of a process: the tries that it is to make."""

_SECONDS = 60
"""Of computing, after which a run of a command is ended and counts as hanging."""

_WAITED = 600
"""Seconds by the clock, after which one that neither computes nor ends counts as hanging."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of one fault injection.

    Attributes
    ----------
    at : int
        Which operation failed, counted from 1.
    n_operations : int
        Of the command when nothing fails.
    first : str
        How the command ended that met the fault: done, refused, killed, hanging or faulty.
    problem : str
        What was wrong then or after the next run; empty where nothing was.
    """

    command: str
    what: str
    path: str
    kind: str
    at: int
    n_operations: int
    first: str
    problem: str


@dataclass(frozen=True)
class _Run:
    """Exit status and output of one run of a command."""

    status: int
    said: str

    @property
    def how(self) -> str:
        """How the run ended: killed, hanging, done, refused or faulty."""
        if self.status == -signal.SIGKILL:
            return "killed"
        if self.status in (-signal.SIGPROF, -signal.SIGALRM):
            return "hanging"
        if self.status in (0, 2) and "bug in Leakscope" not in self.said:
            return "done" if self.status == 0 else "refused"
        return "faulty"


class _Bench:
    """A folder in which a command is run repeatedly from the same start."""

    def __init__(self, shim: Shim, folder: Path, command: str) -> None:
        self.shim, self.folder, self.command = shim, folder, command
        self.work = folder / "work"
        self.said = folder / "said.txt"
        self.log = folder / "log.json"

    def reset(self) -> None:
        """Empty the working folder."""
        shutil.rmtree(self.work, ignore_errors=True)
        (self.work / "out").mkdir(parents=True)

    def run(self, kind: str = "", at: int = 0) -> _Run:
        """Run the command in a forked process with a fault at operation `at`, or none."""
        child = os.fork()
        if child == 0:
            try:
                self._run_and_exit(kind, at)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        said = self.said.read_text(encoding="utf-8", errors="replace")
        return _Run(os.waitstatus_to_exitcode(status), said)

    def _run_and_exit(self, kind: str, at: int) -> None:
        """Run the command in the forked child with the fault, log its operations and exit."""
        from leakscope.core.cli import main

        # By its own computing: a machine that is busy with other work makes no command hang.
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        signal.alarm(_WAITED)
        handle = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.environ["LEAKSCOPE_HOME"] = str(self.work / "home")
        places = {"inputs": self.folder / "inputs", "out": self.work / "out"}
        arguments = shlex.split(self.command.format(**places))
        status = 1
        self.shim.arm(self.work, kind, at)
        try:
            status = main(arguments)
        except SystemExit as stop:
            status = int(stop.code or 0)
        finally:
            log = [asdict(operation) for operation in self.shim.log()]
            self.shim.arm(Path("/nowhere"))
            modules = sorted(sys.modules)
            self.log.write_text(json.dumps({"log": log, "modules": modules}), encoding="utf-8")
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def reference(self) -> tuple[list[Operation], dict[str, Any]]:
        """Run the command without faults; return its file operations and the files it wrote.

        Twice: the first run imports what the later ones find imported.
        """
        for _ in range(2):
            self.reset()
            run = self.run()
            if run.status != 0:
                raise SystemExit(f"{self.command} does not end without a fault: {run.said}")
            known = json.loads(self.log.read_text(encoding="utf-8"))
            for module in known["modules"]:
                with suppress(Exception):
                    importlib.import_module(module)
        return [Operation(**each) for each in known["log"]], results_of(self.work)

    def rerun_problem(self, first: _Run, wanted: dict[str, Any]) -> str:
        """Rerun the command after a fault; return what went wrong in either run, or ""."""
        if first.how in ("faulty", "hanging"):
            return f"the fault is not told ({first.how}): {first.said[-300:]}"
        found = results_of(self.work)
        # What could not be removed is no fault of a run that is done; the next run removes it.
        kept = {name: content for name, content in found.items() if name in wanted}
        if first.how == "done" and (wrong := _compare_results(kept, wanted)):
            return f"said to be done, but {wrong}"
        again = self.run()
        is_there = self.command.startswith("privatize") and "is not overwritten" in again.said
        if again.how != "done" and not is_there:
            return f"does not go on ({again.how}): {again.said[-300:]}"
        return _compare_results(results_of(self.work), wanted)


def _compare_results(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Compare files by path; return which are missing, left over or different, or ""."""
    missing, more = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    other = sorted(name for name in wanted.keys() & found.keys() if wanted[name] != found[name])
    told = [("is missing", missing), ("is left over", more), ("is another", other)]
    return "; ".join(f"{', '.join(names)} {what}" for what, names in told if names)


def spread(operations: Sequence[Operation], most: int | None) -> Iterator[tuple[int, str]]:
    """Yield the tries to make, (operation number, kind of fault): all, or `most` spread evenly.

    Each kind of fault has its turn, and begins at another place. Operations of a kind follow as
    i·φ beyond whole numbers grows (φ the golden ratio): the first so many, however many, lie far
    from each other.
    """
    kinds = [
        [(i, kind) for i, each in enumerate(operations, 1) if each.can(kind)] for kind in KINDS
    ]
    if most is None or sum(map(len, kinds)) <= most:
        yield from itertools.chain(*kinds)
        return
    golden = (5**0.5 - 1) / 2
    turns = []
    for k, pairs in enumerate(kinds):
        at = {(i * golden + k / len(kinds)) % 1: pair for i, pair in enumerate(pairs)}
        turns.append([at[place] for place in sorted(at)])
    in_turn = itertools.chain(*itertools.zip_longest(*turns))
    yield from itertools.islice(filter(None, in_turn), most)


@dataclass(frozen=True)
class Share:
    """The part of the injections that one process runs."""

    names: tuple[str, ...]
    most: int | None = None
    part: int = 0
    of: int = 1
    known: frozenset[tuple[str, int, str]] = frozenset()
    """Command, operation and kind of the tries that were made before."""

    def of_command(self, name: str, operations: Sequence[Operation]) -> Iterator[tuple[int, str]]:
        """Yield this share's tries of a command: (operation number, kind of fault)."""
        for at, kind in itertools.islice(spread(operations, self.most), self.part, None, self.of):
            if (name, at, kind) not in self.known:
                yield at, kind

    def to_json(self) -> str:
        """Return the share as JSON, to hand to a process."""
        return json.dumps(asdict(self) | {"known": sorted(self.known)})

    @classmethod
    def from_json(cls, text: str) -> Share:
        """Restore a share from `to_json`."""
        told = json.loads(text)
        names, known = tuple(told.pop("names")), frozenset(map(tuple, told.pop("known")))
        return cls(names, known=known, **told)


def tried(shim: Shim, folder: Path, name: str, share: Share) -> Iterator[Outcome]:
    """Make a share's tries of one command, with faults injected; yield each try's outcome."""
    bench = _Bench(shim, folder, COMMANDS[name])
    operations, wanted = bench.reference()
    for at, kind in share.of_command(name, operations):
        bench.reset()
        first = bench.run(kind, at)
        problem = bench.rerun_problem(first, wanted)
        asked = operations[at - 1]
        yield Outcome(name, asked.what, asked.path, kind, at, len(operations), first.how, problem)


def main(folder: Path, share: Share) -> None:
    """Make a share's tries, with faults injected; print each outcome as a JSON line."""
    shim = Shim()
    write_inputs(folder / "inputs")
    for name in share.names:
        for outcome in tried(shim, folder, name, share):
            print(json.dumps(asdict(outcome)), flush=True)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    main(place, Share.from_json((place / SHARE).read_text(encoding="utf-8")))
