"""How soon 50,000 points are on the page, and how soon one of them tells its text."""

from __future__ import annotations

import io
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks import Measurement
from benchmarks.page_ready import NAMES, ROOT, wait_for

N_POINTS = 50_000
N_HOVERS = 15
N_PAINTS = 3
_DRAWN = "() => document.querySelector('.js-plotly-plot')?._fullData?.length > 0"


def measure() -> list[Measurement]:
    from playwright.sync_api import sync_playwright

    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        return []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/serve.py"]
    command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    server = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
            wait_for(f"http://127.0.0.1:{port}", server)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(900_000)
            drawn = upload(page, f"http://127.0.0.1:{port}")
            paints = [repaint(page, turn) for turn in range(N_PAINTS)]
            hovers = [hover(page, turn) for turn in range(N_HOVERS)]
            shown = page.evaluate(
                "() => document.querySelector('.js-plotly-plot')._fullData"
                ".filter(t => t.customdata).reduce((n, t) => n + (t._length ?? 0), 0)"
            )
            browser.close()
    finally:
        server.terminate()
        server.wait(30)
    return rows(drawn, paints, [h for h in hovers if h is not None], int(shown))


def rows(drawn: float, paints: list[float], hovers: list[float], shown: int) -> list[Measurement]:
    return [
        Measurement(
            name=f"{shown:,} points to the screen",
            value=statistics.median(paints),
            unit="s",
            goal=3,
            is_upper_bound=True,
            n=len(paints),
            note=f"median, from the choice of another column to painted points; {drawn:.0f} s from "
            "the upload, encoding and PCA included",
        ),
        Measurement(
            name="points that are on the screen",
            value=shown,
            unit="points",
            goal=N_POINTS,
        ),
        Measurement(
            name="mouse over a point to its text",
            value=1000 * statistics.median(hovers),
            unit="ms",
            goal=100,
            is_upper_bound=True,
            n=len(hovers),
            note=f"median; greatest {1000 * max(hovers):.0f} ms; {N_HOVERS - len(hovers)} points "
            "lay under others or off the window",
        ),
    ]


def upload(page: Any, address: str) -> float:
    """Upload 50,000 short texts of ours and return the seconds until their map is painted."""
    page.goto(f"{address}/projection?n=50000&method=pca")
    page.get_by_role("combobox", name="Texts").click()
    page.get_by_role("option", name="Your own file").click()
    start = time.perf_counter()
    page.locator("input[type=file]").set_input_files(
        {"name": "many.csv", "mimeType": "text/csv", "buffer": table()}
    )
    page.get_by_text(f"All {N_POINTS:,} rows").wait_for()
    page.wait_for_function(_DRAWN)
    return time.perf_counter() - start


def table() -> bytes:
    out = io.StringIO()
    out.write("text,kind,size\n")
    who = ("baker", "nurse", "pilot", "judge", "farmer", "tailor", "porter", "miner")
    what = ("parcel", "lantern", "ladder", "kettle", "saddle", "violin", "anchor")
    for i in range(N_POINTS):
        out.write(f"The {who[i % 8]} lost {what[i % 7]} {i}.,{who[i % 8]},{i % 97}\n")
    return out.getvalue().encode()


def repaint(page: Any, turn: int) -> float:
    """Choose another column and return the seconds until the points have its colours."""
    before = page.evaluate("() => document.querySelector('.js-plotly-plot').data[0].name")
    page.get_by_role("combobox", name="Colour").click()
    start = time.perf_counter()
    page.get_by_role("option", name="size" if turn % 2 == 0 else "kind").click()
    page.wait_for_function(
        "before => document.querySelector('.js-plotly-plot')?.data?.[0]?.name !== before",
        arg=before,
    )
    page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    return time.perf_counter() - start


def hover(page: Any, turn: int) -> float | None:
    """Move the mouse onto a point and return the seconds until its text shows."""
    place = page.evaluate(
        """turn => {
            const chart = document.querySelector('.js-plotly-plot');
            chart.scrollIntoView();
            const trace = chart._fullData[0], at = (turn * 331) % trace.x.length;
            const box = chart.querySelector('.nsewdrag').getBoundingClientRect();
            return [box.x + chart._fullLayout.xaxis.l2p(trace.x[at]),
                    box.y + chart._fullLayout.yaxis.l2p(trace.y[at])];
        }""",
        turn,
    )
    page.mouse.move(5, 5)
    page.wait_for_timeout(400)
    page.evaluate(
        """() => { window.hovered = null; const chart = document.querySelector('.js-plotly-plot');
            chart.once('plotly_hover', () => { window.hovered = performance.now(); });
            addEventListener('mousemove', e => { window.moved ??= performance.now(); },
                             {capture: true}); window.moved = null; }"""
    )
    page.mouse.move(*place)
    try:
        page.wait_for_function("() => window.hovered !== null", timeout=5000)
    except Exception:  # a point under another control
        return None
    return float(page.evaluate("() => (window.hovered - window.moved) / 1000"))
