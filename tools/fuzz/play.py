"""Run one fuzzing case in a fresh folder, with time and memory limits, and judge it."""

from __future__ import annotations

import faulthandler
import io
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from leakscope.core.cli import main
from leakscope.core.errors import CoreError, StoppedError

ENDS = ("done", "refused", "reached the work")
"""How a case may end: status 0, status 2 with a line, or where hours of work would begin."""

PATIENCE = 30.0
"""Seconds for one case; nearly all take a hundredth of one."""

DEAF = 120.0
"""Seconds after which a case that hears no end takes this process with it, however short its own.

With less, a computer that pauses for some seconds would look like such a case.
"""

MOST_MEMORY = 3 * 2**29
"""Bytes that one case may take: the libraries that the first one imports take a third of it."""


class Hang(BaseException):
    """Raised when a case takes too long."""


@dataclass(frozen=True)
class Case:
    """One fuzzing input: a command line or a reader, and the files in its folder.

    Parameters
    ----------
    target : str
        What the case is counted as.
    words : tuple of str or None
        Of a command; the folder of the case is the working folder.
    read : callable or None
        A reader, given that folder.
    files : dict of str to bytes
        Written there before.
    is_whole : bool
        Nothing was damaged: it must not be refused.
    """

    target: str
    words: tuple[str, ...] | None = None
    read: Callable[[Path], object] | None = field(default=None, repr=False)
    files: dict[str, bytes] = field(default_factory=dict)
    is_whole: bool = False


@dataclass(frozen=True)
class Verdict:
    """How a case ended; `problem` is empty if that is correct."""

    target: str
    end: str
    problem: str = ""


def play(case: Case, patience: float = PATIENCE) -> Verdict:
    """Run a case in a fresh folder under limits; return the verdict on how it ended."""
    with _working_folder() as folder:
        for name, content in case.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        os.mkfifo(folder / "pipe")
        before = _peak_memory(is_new=True)
        try:
            with watched(patience):
                end, problem = (
                    _play_command(case) if case.words is not None else _play_reader(case, folder)
                )
        except Hang:
            end, problem = "hung", f"it took more than {patience:g} s"
        if not problem and case.is_whole and end == "refused":
            problem = "it is refused, and nothing of it is damaged"
        if not problem and (grown := _peak_memory() - before) > MOST_MEMORY:
            problem = f"it took {grown / 2**20:,.0f} MB"
        if not problem and (left := _leftovers(folder)):
            problem = f"it left {', '.join(left)}"
    told = f"{problem}\n{_describe_case(case)}" if problem else ""
    return Verdict(case.target, end, told)


def _peak_memory(*, is_new: bool = False) -> int:
    """Return this process's peak memory in bytes, after resetting it if `is_new` (Linux)."""
    if is_new:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return 1024 * int(line.split()[1])


def bound_memory() -> None:
    """Limit this process's address space, so that an endless input cannot exhaust memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + 4 * MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


@contextmanager
def _working_folder() -> Iterator[Path]:
    """Yield a fresh folder, which is the working directory and holds its own cache."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        folder = Path(place) / "work"  # not the outermost: a case may write to ".."
        folder.mkdir()
        os.chdir(folder)
        try:
            with patch.dict(os.environ, {"LEAKSCOPE_HOME": str(folder / "home")}):
                yield folder
        finally:
            os.chdir(before)


def _leftovers(folder: Path) -> list[str]:
    """Return the paths of unfinished temporary files left in a folder."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*.unfinished")]


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """Within the block, raise `Hang` every so many seconds; if it is ignored, end the process.

    It is raised again each time that as long has passed: where garbage is collected, or a callback
    runs, Python passes over what is raised.
    """

    def bite(*_: Any) -> None:
        """Raise Hang, as the handler of a signal."""
        raise Hang

    before = signal.signal(signal.SIGALRM, bite)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    faulthandler.dump_traceback_later(max(4 * seconds, DEAF), exit=True, file=2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def _play_command(case: Case) -> tuple[str, str]:
    """Run a case's command line; return how it ended, and what is wrong with that, or ""."""
    out, err = _Stream(), _Stream()
    with patch.object(sys, "stdout", out), redirect_stderr(err):
        try:
            status: Any = _run_program(list(case.words or ()))
        except SystemExit as stop:
            status = stop.code
        except Exception:
            return "traceback", traceback.format_exc()
    if (case.words or ())[:1] == ("presence",) and status in (1, 2) and out.text():
        return "done", ""  # a verdict: still inferable, or not measured
    return _judge_command(status, out.text(), err.text(), _wants_json(case.words or ()))


def _wants_json(words: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON on standard output."""
    if words[:1] == ("audit",):
        files = [file for option, file in pairwise(words) if option == "--json"]
        return files[-1:] == ["-"]
    return "--json" in words


def _run_program(words: Sequence[str]) -> int:
    """Run Leakscope's command line in this process; return the exit status."""
    if "serve" in words[:1]:
        from leakscope.dashboard.server import command

        return main(words, more={"serve": command})
    return main(words)


def _judge_command(status: Any, out: str, err: str, is_json: bool) -> tuple[str, str]:
    """Return how a command ended, and what is wrong with that, or ""."""
    ends = {0: "done", 2: "refused", 130: "reached the work"}
    end = ends.get(status, f"status {status}")
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    if "Traceback" in out + err or "bug in Leakscope" in err:
        return "traceback", err
    if status not in ends:
        return end, "no command ends so"
    if (status == 0) == bool(errors) or len(errors) > 1:
        return end, f"{len(errors)} lines of error: {err}"
    if status == 0 and is_json and out.strip() and not _is_json(out):
        return end, f"--json wrote {out[:200]!r}"
    return end, ""


def _is_json(text: str) -> bool:
    """Return whether a text is strict JSON, or the help that --help prints."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except ValueError:
        return text.startswith("usage: ")  # --help has gone before
    return True


def _refuse_constant(constant: str) -> None:
    """Raise ValueError for a constant such as NaN or Infinity, which is not JSON."""
    raise ValueError(f"{constant} is no JSON")


def _play_reader(case: Case, folder: Path) -> tuple[str, str]:
    """Run a case's reader in a folder; return how it ended, and what is wrong with that, or ""."""
    assert case.read is not None
    try:
        with redirect_stderr(_Stream()):
            case.read(folder)
    except CoreError as error:
        return "refused", "" if str(error).strip() else "it is refused without a word"
    except Exception:
        return "traceback", traceback.format_exc()
    return "done", ""


class _Stream(io.TextIOWrapper):
    """A text stream in memory with a byte buffer, like a terminal's."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8", errors="backslashreplace")

    def text(self) -> str:
        """Return all text written so far."""
        self.flush()
        return self._bytes.getvalue().decode(errors="replace")


def _describe_case(case: Case) -> str:
    """Format a case with its small files, so that it can be repeated."""
    files = {name: content for name, content in case.files.items() if len(content) < 3_000}
    return f"{case.target}: {case.words} {files}"


@contextmanager
def no_long_work() -> Iterator[None]:
    """Within the block, stop commands where hours of work, a server or a network would begin."""
    with ExitStack() as stack:
        for path, stand_in in _stand_ins().items():
            stack.enter_context(patch(path, stand_in))
        stack.enter_context(patch.dict(os.environ, {"HF_HUB_OFFLINE": "1"}))
        yield


def _raise_stopped(*_: Any, **__: Any) -> Any:
    """Raise StoppedError; stands in for long work."""
    raise StoppedError("reached the work")


def _stand_ins() -> dict[str, Any]:
    """Return stand-ins for functions that take long, by the dotted name to patch."""
    from leakscope.core.attacks.inversion.train import train_attack
    from leakscope.core.cli import fit

    finished = fit._load_earlier_fit

    def quick_training(plan: Any, *rest: Any, **more: Any) -> Any:
        """Train the prior attack; raise StoppedError for any other."""
        return (
            train_attack(plan, *rest, **more) if plan.attack.name == "prior" else _raise_stopped()
        )

    def quick_fit(encoder: Any, *rest: Any, **more: Any) -> Any:
        """Load an earlier fit of a tfidf or hashing encoder; raise StoppedError for any other."""
        return (
            finished(encoder, *rest, **more)
            if encoder.name in ("tfidf", "hashing")
            else _raise_stopped()
        )

    return {
        "leakscope.core.cli.train.train_attack": quick_training,
        "leakscope.core.cli.fit._load_earlier_fit": quick_fit,
        "leakscope.core.attacks.membership.memorisation.memorise.run_planted": _raise_stopped,
        "leakscope.core.cli.audit_mechanism._audit": _raise_stopped,
        "leakscope.core.encoders.backends.times_faster": lambda *_, **__: 0.0,
        "leakscope.core.studies.registry.run_study": _raise_stopped,
        "leakscope.core.studies.cluster.ray_workers": _raise_stopped,
        "leakscope.core.studies.inversion.tuning.run": _raise_stopped,
        "streamlit.web.cli.main": _raise_stopped,
    }
