"""Run fault injections in processes with the shim library loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tools.faults.shim import build
from tools.faults.tries import SHARE, Outcome, Share

_ROOT = Path(__file__).resolve().parents[2]


def measure(
    names: Sequence[str],
    most: int | None = None,
    *,
    known: Collection[Outcome] = (),
    jobs: int = 1,
    program: str = "",
) -> Iterator[Outcome]:
    """Run commands with injected faults in processes; yield each try's outcome as it finishes.

    Parameters
    ----------
    names : sequence of str
        Of `tools.faults.commands.COMMANDS`.
    most : int, optional
        Tries a command, spread evenly over its operations and the kinds of fault; all by default.
    known : collection of Outcome
        Of tries that were made before: they are not made again.
    jobs : int
        Processes that share the tries.
    program : str, optional
        Python to run in the place of `tools.faults.tries`, with the same argument: the folder that
        holds the tries to make.

    Raises
    ------
    RuntimeError
        A process of the tries itself failed.
    """
    before = frozenset((each.command, each.at, each.kind) for each in known)
    ended: SimpleQueue[Outcome | None] = SimpleQueue()

    def work(part: int) -> None:
        """Run one process's share; put its outcomes into the queue, then None."""
        try:
            for outcome in _run_share(Share(tuple(names), most, part, jobs, before), program):
                ended.put(outcome)
        finally:
            ended.put(None)

    with ThreadPoolExecutor(jobs) as pool:
        works = [pool.submit(work, part) for part in range(jobs)]
        for _ in range(jobs):
            yield from iter(ended.get, None)
        for done in works:
            done.result()


def _run_share(share: Share, program: str) -> Iterator[Outcome]:
    """Start a process that makes a share of the tries; yield their outcomes."""
    # In memory where there is such a place: forcing to disk is counted, but takes no time there.
    memory = Path("/dev/shm")
    near = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="faults-", dir=near) as place:
        folder = Path(place)
        (folder / SHARE).write_text(share.to_json(), encoding="utf-8")
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        more = {"LD_PRELOAD": str(build(folder)), "HF_HUB_OFFLINE": "1", **one_thread}
        chosen = ["-c", program] if program else ["-m", "tools.faults.tries"]
        with subprocess.Popen(
            [sys.executable, *chosen, place],
            cwd=_ROOT,
            env=os.environ | more,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield Outcome(**json.loads(line))
        if process.returncode:
            raise RuntimeError(f"The process of the tries ended with {process.returncode}.")
