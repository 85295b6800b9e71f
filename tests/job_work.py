"""Work functions for the tests of jobs; in a module, so that other processes can import them."""

from __future__ import annotations

import ctypes
import math
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from example_reading import READING

from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.attacks.inversion.reconstruct.progress import format_step
from leakscope.core.errors import InvalidInputError, StoppedError, StoppedSearch
from leakscope.core.jobs import Jobs, Work
from leakscope.core.protocols import OnProgress
from leakscope.core.results import Recovery, Sentence, SentenceStep
from leakscope.core.specs import AttackSpec

_PREPARED: list[int] = []


def wait_for(path: Path) -> None:
    """Wait until a file exists."""
    while not path.exists():
        time.sleep(0.01)


def return_value(value: object, _: OnProgress) -> object:
    """Return the given value."""
    return value


def pid(_: OnProgress) -> int:
    """Return the id of the process that runs the job."""
    return os.getpid()


def wait_at_gate(folder: Path, on_progress: OnProgress) -> str:
    """Report once, then wait until the file `go` exists, and report again."""
    on_progress(0.25, "A quarter")
    (folder / "runs").write_text(str(os.getpid()))
    wait_for(folder / "go")
    on_progress(0.5, "Half")
    return "result"


def best_so_far(folder: Path, on_progress: OnProgress) -> str:
    """Report until stopped, then return the best result so far."""
    (folder / "runs").write_text(str(os.getpid()))
    try:
        while True:
            on_progress(0.5, "Searching")
            time.sleep(0.01)
    except StoppedError as stop:
        raise StoppedSearch("Stopped.", ["the best so far"]) from stop


def read_until_stopped(
    spec: AttackSpec, on: object, text: str, vector: object, counts: bool, on_progress: OnProgress
) -> Reading:
    """Report a search step until stopped, then return an unfinished reading."""
    step = SentenceStep(320, "the river near <b> london", 0.871)
    steps = (SentenceStep(0, "river london", math.nan), step)
    try:
        while True:
            on_progress(0.3, format_step(step))
            time.sleep(0.01)
    except StoppedError as stop:
        sentence = Sentence(step.text, step.cosine, steps=steps)
        found = replace(
            READING,
            attack=spec.name,
            text=text,
            is_unfinished=True,
            recovery=Recovery((), n_queries=320, sentence=sentence),
        )
        raise StoppedSearch("Stopped.", [found]) from stop


def write_back(spec: AttackSpec, on: object, vectors: Any, _: OnProgress) -> list[Recovery]:
    """Return the same reconstructed sentence for each vector."""
    step = SentenceStep(320, "the river near <b> london", 0.871)
    sentence = Sentence(step.text, step.cosine, steps=(step,))
    return [Recovery((), n_queries=320, sentence=sentence)] * len(vectors)


def append_line(path: Path, _: OnProgress) -> None:
    """Append a line to a file."""
    with path.open("a") as file:
        file.write("ran\n")


def refuse(_: OnProgress) -> None:
    """Raise an InvalidInputError."""
    raise InvalidInputError("text is empty. Type at least one word.")


def fail(message: str, _: OnProgress) -> None:
    """Raise a RuntimeError with the message."""
    raise RuntimeError(message)


def system_exit(_: OnProgress) -> None:
    """Raise SystemExit."""
    raise SystemExit(3)


def exit_process(_: OnProgress) -> None:
    """Exit the process without cleaning up."""
    os._exit(3)


def crash(_: OnProgress) -> None:
    """Crash the process by a segmentation fault."""
    ctypes.string_at(0)


def kill_itself(_: OnProgress) -> None:
    """Kill the own process by SIGKILL."""
    os.kill(os.getpid(), 9)


def exceed_memory(_: OnProgress) -> int:
    """Allocate more memory than the process may have."""
    resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
    return len(bytearray(2**33))


def return_unpicklable(_: OnProgress) -> object:
    """Return a generator, which cannot be pickled."""
    return (i for i in range(3))


def hold_the_interpreter(folder: Path, _: OnProgress) -> None:
    """Run a regular expression that never ends and keeps the interpreter's lock."""
    start_child(folder)
    re.match(r"(a+)+$", "a" * 60 + "b")


def swallow_the_stop(folder: Path, on_progress: OnProgress) -> None:
    """Report forever, and ignore every exception, also the request to stop."""
    start_child(folder)
    while True:
        try:
            on_progress(0.5, "Never mind")
        except BaseException:
            (folder / "swallowed").touch()


def leave_a_child(folder: Path, _: OnProgress) -> None:
    """Start a child process and return without waiting for it."""
    start_child(folder)


def start_child(folder: Path) -> None:
    """Start a child process that sleeps; write the ids of both processes to a file."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (folder / "unfinished").write_text(f"{os.getpid()} {child.pid}")
    (folder / "unfinished").rename(folder / "pids")


def use_weights(folder: Path, gate: Path | None = None) -> None:
    """Prepare a job process: take the weights from a folder, after `gate` exists."""
    from leakscope.core.attacks.inversion import shipped

    shipped.WEIGHTS = folder
    if gate is not None:
        wait_for(gate)


def run_with_home(home: str, work: Work, *given: object) -> object:
    """Run work with another LEAKSCOPE_HOME."""
    os.environ["LEAKSCOPE_HOME"] = home
    return work(*given)


class JobsAtHome(Jobs):
    """A job queue whose process serves many tests, each with its own LEAKSCOPE_HOME."""

    def start(self, function: Work, *arguments: Any, **known: Any) -> str:
        """Start work under the current LEAKSCOPE_HOME."""
        home = os.environ["LEAKSCOPE_HOME"]
        return super().start(run_with_home, home, function, *arguments, **known)

    def forget_all(self) -> None:
        """Forget all jobs."""
        for job_id in list(self._entries):
            self.forget(job_id)


def count_preparations() -> None:
    """Record that this process was prepared."""
    _PREPARED.append(os.getpid())


def preparations(_: OnProgress) -> list[int]:
    """Return the recorded preparations of the process."""
    return _PREPARED


def main_file(_: OnProgress) -> str:
    """Return the path of the process's main script."""
    return str(sys.modules["__main__"].__file__)
