"""Seconds until pages show words or figures, and the server's memory."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import Measurement

ROOT = Path(__file__).parents[2]
N_WARM = 5
WORDS, FINDING, FIGURE = ".ls-sentence mark", "h1", ".js-plotly-plot .main-svg"
DRAWN = ("/attributes", "/membership", "/memorisation")
"""Pages that open with a figure of what was measured."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


_STREAMLIT = "streamlit run dashboard/serve.py --server.port {port} --server.address 127.0.0.1"


@contextmanager
def running_server(
    module: str = _STREAMLIT, **variables: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the dashboard's server; yield its address and its process once it answers.

    Parameters
    ----------
    module : str
        What Python runs, with its arguments; `{port}` is a free port.
    variables : str
        More of its environment.
    """
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", *module.format(port=port).split()],
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1", **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_for(address, process)
        yield address, process
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def running_chromium(path: str) -> Iterator[Any]:
    """Start an installed Chromium; yield the browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def find_chromium() -> str | None:
    """Return the path of an installed Chromium or Chrome; None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def measure() -> list[Measurement]:
    """Measure cold and warm page visits in Chromium, and the server's memory."""
    found = find_chromium()
    if found is None:
        return []

    def visit(context: Any, path: str, shown: str = WORDS) -> float:
        """Open a page in a fresh session; return seconds until the given content is shown."""
        start = time.perf_counter()
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(address + path)
        page.locator(shown).first.wait_for()
        seconds = time.perf_counter() - start
        page.close()
        return seconds

    with running_chromium(found) as browser:
        start = time.perf_counter()
        with running_server() as (address, server):
            context = browser.new_context()
            visit(context, "/inversion")
            cold = time.perf_counter() - start
            warm = sorted(visit(context, "/inversion") for _ in range(N_WARM))
            newcomers = sorted(visit(browser.new_context(), "/inversion") for _ in range(N_WARM))
            for path in ("/", "/deniability"):
                visit(context, path)
            drawn = {}
            for path in DRAWN:
                visit(context, path, FIGURE)
                for what, shown in (("finding", FINDING), ("figure", FIGURE)):
                    drawn[path, what] = sorted(visit(context, path, shown) for _ in range(N_WARM))
            memory = resident_gigabytes(server.pid)
    return [
        Measurement(
            name="process start to words in Chromium",
            value=cold,
            unit="s",
            at_most=12,
        ),
        Measurement(
            name="a further visit, to words",
            value=warm[N_WARM // 2],
            unit="s",
            at_most=1.5,
            n=N_WARM,
            note="median; a fresh session each, in a browser that was here before",
        ),
        Measurement(
            name="a further visitor, to words",
            value=newcomers[N_WARM // 2],
            unit="s",
            n=N_WARM,
            note="median; a browser that fetches all of the page anew",
        ),
        *(
            Measurement(
                name=f"a further visit to {path}, to its {what}",
                value=seconds[N_WARM // 2],
                unit="s",
                at_most=2,
                n=N_WARM,
                note="median",
            )
            for (path, what), seconds in drawn.items()
        ),
        Measurement(
            name="resident memory of the server",
            value=memory,
            unit="GB",
            at_most=2.5,
            note="after every page",
        ),
    ]


def free_port() -> int:
    """Return an unused TCP port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server at an address answers; raise RuntimeError if its process ends first."""
    while server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("The server did not start.")


def resident_gigabytes(pid: int) -> float:
    """Return a process's resident memory in GB (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024 / 1e9
