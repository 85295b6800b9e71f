"""Thirty visitors at once: how long each waits, whether answers mix, and what the server holds."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks import Measurement
from benchmarks.page_ready import free_port, resident_gigabytes, wait_for

ROOT = Path(__file__).parents[1]
N_SESSIONS = 30
N_ALONE = 5
PATIENCE = 600.0
PLACES = ("harbour", "station", "museum", "hospital", "ministry", "theatre")


def measure(n_sessions: int = N_SESSIONS) -> list[Measurement]:
    """Ask the page of inversion for as many sentences at once, each in a session of its own.

    Then as many others ask, which tells whether the memory goes on growing.
    """
    port = free_port()
    command = [sys.executable, "-m", "dashboard", "serve", "--port", str(port)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    server = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    try:
        wait_for(f"http://127.0.0.1:{port}", server)
        ask(port, 0)  # the encoder and the attack are opened
        alone = statistics.median(ask(port, i)[0] for i in range(N_ALONE))
        before = resident_gigabytes(server.pid)
        first = wave(port, range(n_sessions))
        after = resident_gigabytes(server.pid)
        second = wave(port, range(n_sessions, 2 * n_sessions))
        again = resident_gigabytes(server.pid)
    finally:
        server.terminate()
        server.wait(30)
    return rows(alone, first, second, (before, after, again))


def wave(port: int, numbers: range) -> list[tuple[float, str]]:
    """Return what visitors who come at once wait and are sent."""
    with ThreadPoolExecutor(len(numbers)) as visitors:
        return list(visitors.map(lambda i: ask(port, i), numbers))


def rows(
    alone: float,
    first: list[tuple[float, str]],
    second: list[tuple[float, str]],
    memory: tuple[float, float, float],
) -> list[Measurement]:
    """Return the measurements of visitors, each with its seconds and all that it was sent.

    The first ones are timed; `memory` is that of the server before them, after them and at the end.
    """
    n, cores = len(first), os.cpu_count() or 1
    together = statistics.median(seconds for seconds, _ in first)
    answers = [*first, *second]
    mixed = sum(is_mixed(i, told, len(answers)) for i, (_, told) in enumerate(answers))
    before, after, again = memory
    return [
        Measurement(
            name="median answer, of one visitor's by core",
            value=together * cores / (n * alone),
            unit="×",
            goal=3,
            is_upper_bound=True,
            n=n,
            note=f"{together:.2f} s at once on {cores} cores, {alone:.2f} s alone",
        ),
        Measurement(
            name="visitors with an answer that is not theirs",
            value=mixed,
            unit="visitors",
            goal=0,
            is_upper_bound=True,
            n=len(answers),
        ),
        Measurement(
            name="resident memory of the server",
            value=after,
            unit="GB",
            goal=2.5,
            is_upper_bound=True,
            n=n,
            note=f"{after - before:+.2f} GB by these visitors",
        ),
        Measurement(
            name="what as many visitors more add",
            value=again - after,
            unit="GB",
            goal=0.25,
            is_upper_bound=True,
            n=len(second),
        ),
    ]


def ask(port: int, visitor: int) -> tuple[float, str]:
    """Open a session with a visitor's sentence; return the seconds to its end, and what came."""
    from websockets.sync.client import connect

    run, told, start = BackMsg(), "", time.perf_counter()
    run.rerun_script.query_string = urlencode({"text": sentence(visitor), "attack": "probe_mlc"})
    run.rerun_script.page_name = "inversion"
    with connect(
        f"ws://127.0.0.1:{port}/_stcore/stream",
        subprotocols=["streamlit"],  # type: ignore[list-item]
        max_size=None,
        open_timeout=PATIENCE,
    ) as session:
        session.send(run.SerializeToString())
        while True:
            data = session.recv(timeout=PATIENCE)
            message = ForwardMsg()
            message.ParseFromString(data if isinstance(data, bytes) else data.encode())
            told += str(message.delta)
            if message.WhichOneof("type") == "script_finished":
                return time.perf_counter() - start, told


def sentence(visitor: int) -> str:
    """Return a sentence that no other visitor has."""
    place = PLACES[visitor % len(PLACES)]
    return f"The inspector closed the {place} after report {name(visitor)} came in."


def name(visitor: int) -> str:
    """Return a word that stands for one visitor."""
    return f"zq{visitor:04d}x"


def is_mixed(visitor: int, told: str, n: int) -> bool:
    """Return whether a visitor got no answer, or saw anything of another's sentence."""
    others = any(name(other) in told for other in range(n) if other != visitor)
    return others or name(visitor) not in told or "ls-hit" not in told
