"""Work for jobs: functions of a module, since another process has to find them."""

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

from core.attacks.inversion.reading import Reading
from core.attacks.inversion.reconstruct.progress import told
from core.errors import InvalidInputError, StoppedError, StoppedSearch
from core.jobs import Jobs, Work
from core.protocols import OnProgress
from core.results import Recovery, Sentence, SentenceStep
from core.specs import AttackSpec

_PREPARED: list[int] = []


def wait_for(path: Path) -> None:
    """Wait until somebody makes a file."""
    while not path.exists():
        time.sleep(0.01)


def answer(value: object, _: OnProgress) -> object:
    return value


def pid(_: OnProgress) -> int:
    return os.getpid()


def gate(folder: Path, on_progress: OnProgress) -> str:
    """Report once, then wait until `go` is there."""
    on_progress(0.25, "A quarter")
    (folder / "runs").write_text(str(os.getpid()))
    wait_for(folder / "go")
    on_progress(0.5, "Half")
    return "result"


def best_so_far(folder: Path, on_progress: OnProgress) -> str:
    """Report until it is stopped, and hand over the best by then."""
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
    """Tell a sentence until it is stopped, and hand it over."""
    step = SentenceStep(320, "the river near <b> london", 0.871)
    steps = (SentenceStep(0, "river london", math.nan), step)
    try:
        while True:
            on_progress(0.3, told(step))
            time.sleep(0.01)
    except StoppedError as stop:
        sentence = Sentence(step.text, step.cosine, steps=steps)
        found = replace(READING, attack=spec.name, text=text, is_unfinished=True,
                        recovery=Recovery((), n_queries=320, sentence=sentence))  # fmt: skip
        raise StoppedSearch("Stopped.", [found]) from stop


def write_back(spec: AttackSpec, on: object, vectors: Any, _: OnProgress) -> list[Recovery]:
    """Hand over the same sentence for each vector."""
    step = SentenceStep(320, "the river near <b> london", 0.871)
    sentence = Sentence(step.text, step.cosine, steps=(step,))
    return [Recovery((), n_queries=320, sentence=sentence)] * len(vectors)


def note(path: Path, _: OnProgress) -> None:
    """Add a line to a file."""
    with path.open("a") as file:
        file.write("ran\n")


def refuse(_: OnProgress) -> None:
    raise InvalidInputError("text is empty. Type at least one word.")


def fail(message: str, _: OnProgress) -> None:
    raise RuntimeError(message)


def system_exit(_: OnProgress) -> None:
    raise SystemExit(3)


def leave(_: OnProgress) -> None:
    os._exit(3)


def crash(_: OnProgress) -> None:
    ctypes.string_at(0)


def kill_itself(_: OnProgress) -> None:
    os.kill(os.getpid(), 9)


def want_memory(_: OnProgress) -> int:
    """Ask for more memory than there may be."""
    resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
    return len(bytearray(2**33))


def unpicklable(_: OnProgress) -> object:
    return (i for i in range(3))


def hold_the_interpreter(folder: Path, _: OnProgress) -> None:
    """Compute in C for ages, without a sign of progress, and let no other thread run."""
    start_child(folder)
    re.match(r"(a+)+$", "a" * 60 + "b")


def swallow_the_stop(folder: Path, on_progress: OnProgress) -> None:
    """Go on whatever happens."""
    start_child(folder)
    while True:
        try:
            on_progress(0.5, "Never mind")
        except BaseException:
            (folder / "swallowed").touch()


def leave_a_child(folder: Path, _: OnProgress) -> None:
    start_child(folder)


def start_child(folder: Path) -> None:
    """Start a process of its own and write down both numbers."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (folder / "unfinished").write_text(f"{os.getpid()} {child.pid}")
    (folder / "unfinished").rename(folder / "pids")


def use_weights(folder: Path, gate: Path | None = None) -> None:
    """Prepare a process that takes weights from a folder, and begins once `gate` is there."""
    from core.attacks.inversion import shipped

    shipped.WEIGHTS = folder
    if gate is not None:
        wait_for(gate)


def at_home(home: str, work: Work, *given: object) -> object:
    """Do other work with a cache folder of its own."""
    os.environ["LEAKSCOPE_HOME"] = home
    return work(*given)


class JobsAtHome(Jobs):
    """Jobs whose process serves one test after another, each with its own cache folder."""

    def start(self, function: Work, *arguments: Any, **known: Any) -> str:
        home = os.environ["LEAKSCOPE_HOME"]
        return super().start(at_home, home, function, *arguments, **known)

    def forget_all(self) -> None:
        for job_id in list(self._entries):
            self.forget(job_id)


def count_preparations() -> None:
    """Prepare a process."""
    _PREPARED.append(os.getpid())


def preparations(_: OnProgress) -> list[int]:
    return _PREPARED


def argv(_: OnProgress) -> str:
    return str(sys.modules["__main__"].__file__)
