"""Run the command line in tests, in this process or in another."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import kill_session

ROOT = Path(__file__).parent.parent


@dataclass
class Outcome:
    """Exit status and output of a command."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """Parse the output as JSON, after checking that the command succeeded."""
        assert self.status == 0, self.err
        return json.loads(self.out)

    def refusal(self) -> str:
        """Return the error line of a command that failed as expected; notes are ignored."""
        assert self.status == 2
        assert self.out == ""
        (line,) = [row for row in self.err.splitlines() if not row.startswith("note: ")]
        assert line.startswith("error: ")
        assert "Traceback" not in line
        return line


def spawn(*arguments: object, **options: Any) -> subprocess.Popen[Any]:
    """Start a `leakscope` command in another process, as users do."""
    return subprocess.Popen(
        [sys.executable, "-m", "leakscope", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        encoding="utf-8",
        # A background job of a shell ignores Ctrl-C, and its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,
    )


def spawn_and_wait(*arguments: object) -> Outcome:
    """Run a `leakscope` command in another process; return its outcome."""
    process = spawn(*arguments)
    try:
        out, err = process.communicate(timeout=400)
    finally:
        kill_session(process)
    return Outcome(process.returncode, out, err)


def run_python(code: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code in another Python process in the checkout; return its status and output as text."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)
