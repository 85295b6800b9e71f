"""Twelve and thirty concurrent visitors: waiting time and server memory."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks import Measurement
from benchmarks.dashboard.page_ready import running_server

ROOT = Path(__file__).parents[2]
N_FEW, N_SESSIONS = 12, 30
N_ALONE = 5
PATIENCE = 600.0
PLACES = ("harbour", "station", "museum", "hospital", "ministry", "theatre")


def measure(n_few: int = N_FEW, n_sessions: int = N_SESSIONS) -> list[Measurement]:
    """Measure response time and server memory with a few and with many concurrent sessions.

    A few come first, then many; then as many others, which tells whether memory goes on growing.
    """
    with running_server("leakscope serve --port {port}") as (address, server):
        port = int(address.rpartition(":")[2])
        ask(port, 0)  # the encoder and the attack are opened
        alone = statistics.median(ask(port, i)[0] for i in range(N_ALONE))
        first, waves = 0, []
        for n in (n_few, n_sessions, n_sessions):
            answers = wave(port, range(first, first + n))
            waves.append(Wave(answers, used_gigabytes(server.pid)))
            first += n
    return rows(alone, waves)


@dataclass(frozen=True)
class Wave:
    """What concurrent visitors waited for and received, and the server's memory afterwards."""

    answers: list[tuple[float, str]]
    gigabytes: float


def wave(port: int, numbers: range) -> list[tuple[float, str]]:
    """Open all numbered visitors' sessions at once; return each one's seconds and messages."""
    with ThreadPoolExecutor(len(numbers)) as visitors:
        return list(visitors.map(lambda i: ask(port, i), numbers))


def rows(alone: float, waves: Sequence[Wave]) -> list[Measurement]:
    """Build the measurements from three waves of visitors.

    Each visitor has its seconds and all that it was sent; `alone` is what one takes by itself.
    """
    few, many, more = waves
    answers = [answer for each in waves for answer in each.answers]
    mixed = sum(is_mixed(i, told, len(answers)) for i, (_, told) in enumerate(answers))
    return [
        *_wave_rows(few, alone, gigabytes=1.5),
        *_wave_rows(many, alone, gigabytes=2.5),
        Measurement(
            name="visitors with an answer that is not theirs",
            value=mixed,
            unit="visitors",
            at_most=0,
            n=len(answers),
        ),
        Measurement(
            name="what as many visitors more add",
            value=more.gigabytes - many.gigabytes,
            unit="GB",
            at_most=0.25,
            n=len(more.answers),
        ),
    ]


def _wave_rows(wave: Wave, alone: float, *, gigabytes: float) -> list[Measurement]:
    """Build the measurements of response time and memory from one wave of visitors."""
    n, cores = len(wave.answers), os.cpu_count() or 1
    together = statistics.median(seconds for seconds, _ in wave.answers)
    longest = max(seconds for seconds, _ in wave.answers)
    return [
        Measurement(
            name=f"median answer of {n} visitors at once, of one visitor's by core",
            value=together * cores / (n * alone),
            unit="×",
            at_most=3,
            n=n,
            note=f"{together:.2f} s at once on {cores} cores, {alone:.2f} s alone; longest "
            f"{longest:.2f} s",
        ),
        Measurement(
            name=f"memory of the server with {n}",
            value=wave.gigabytes,
            unit="GB",
            at_most=gigabytes,
            n=n,
            note="with the processes that it started",
        ),
    ]


def used_gigabytes(pid: int) -> float:
    """Return the memory of a process and its children in GB, shared pages counted once (Linux)."""
    return _used_bytes(pid) / 1e9


def _used_bytes(pid: int) -> int:
    """Return the proportional set size of a process and its children, in bytes."""
    held = 0
    with suppress(OSError):  # it has just ended
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        (line,) = [line for line in rollup.splitlines() if line.startswith("Pss:")]
        held = 1024 * int(line.split()[1])
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            held += sum(map(_used_bytes, map(int, file.read_text().split())))
    return held


def ask(port: int, visitor: int) -> tuple[float, str]:
    """Open one visitor's session; return seconds to completion and the server's messages."""
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
    """Return the sentence that a visitor enters, unique by its number."""
    place = PLACES[visitor % len(PLACES)]
    return f"The inspector closed the {place} after report {name(visitor)} came in."


def name(visitor: int) -> str:
    """Return the word that occurs only in this visitor's sentence."""
    return f"zq{visitor:04d}x"


def is_mixed(visitor: int, told: str, n: int) -> bool:
    """Return whether the messages to a visitor lack an answer or contain another visitor's word."""
    others = any(name(other) in told for other in range(n) if other != visitor)
    return others or name(visitor) not in told or "ls-hit" not in told
