"""The tries from outside: a process with the library of faults loaded, and what it tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.faults.shim import build
from tools.faults.tries import Outcome

__all__ = ["measure"]

_ROOT = Path(__file__).resolve().parents[2]


def measure(
    names: Sequence[str], most: int | None = None, *, program: str = ""
) -> Iterator[Outcome]:
    """Yield what came of each try.

    Parameters
    ----------
    names : sequence of str
        Of `tools.faults.commands.COMMANDS`.
    most : int, optional
        Tries a command, spread evenly over its operations and the kinds of fault; all by default.

    program : str, optional
        Python to run in the place of `tools.faults.tries`, with the same arguments.

    Raises
    ------
    RuntimeError
        The process of the tries itself failed.
    """
    # In memory where there is such a place: forcing to disk is counted, but takes no time there.
    memory = Path("/dev/shm")
    near = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="faults-", dir=near) as place:
        folder = Path(place)
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        more = {"LD_PRELOAD": str(build(folder)), "HF_HUB_OFFLINE": "1", **one_thread}
        chosen = ["-c", program] if program else ["-m", "tools.faults.tries"]
        command = [sys.executable, *chosen, place, json.dumps(list(names)), json.dumps(most)]
        with subprocess.Popen(
            command, cwd=_ROOT, env=os.environ | more, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield Outcome(**json.loads(line))
        if process.returncode:
            raise RuntimeError(f"The process of the tries ended with {process.returncode}.")
