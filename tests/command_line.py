"""How the tests run the command line, in this process and in one of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import end

ROOT = Path(__file__).parent.parent


@dataclass
class Outcome:
    status: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out)

    def refusal(self) -> str:
        """Return the one line, notes aside, of a command that failed as it should."""
        assert self.status == 2
        assert self.out == ""
        (line,) = [said for said in self.err.splitlines() if not said.startswith("note: ")]
        assert line.startswith("error: ")
        assert "Traceback" not in line
        return line


def spawn(*arguments: object, **options: Any) -> subprocess.Popen[Any]:
    """Start a command in a process of its own, as users do."""
    return subprocess.Popen(
        [sys.executable, "-m", "core", *map(str, arguments)],
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
    process = spawn(*arguments)
    try:
        out, err = process.communicate(timeout=400)
    finally:
        end(process)
    return Outcome(process.returncode, out, err)
