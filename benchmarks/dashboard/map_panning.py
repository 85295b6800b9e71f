"""Frames a second while a map of 250,000 points is moved: our canvas, Plotly and deck.gl."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import Measurement
from benchmarks.dashboard.page_ready import ROOT, find_chromium, running_chromium
from leakscope.core.figures.point_map import point_map_data
from leakscope.core.projection.grouping import group_column

N_POINTS = 250_000
N_GROUPS = 6
N_ROUNDS = 3
SECONDS = 3.0
WIDTH, HEIGHT = 900, 560

_COUNT = """<script>
let frames = 0; (function next() { frames++; requestAnimationFrame(next); })();
const coded = name => Uint8Array.from(atob(name), c => c.charCodeAt(0));
</script>"""
_OURS = """<style>CSS .frame { height: 560px !important }</style><div id=at>HTML</div>
<script type=module>
import draw from "./point_map.js";
const data = await (await fetch("./data.json")).json();
draw({ data, parentElement: document.getElementById("at"), setTriggerValue: () => {} });
const map = document.querySelector(".point-map").map;
map.setMode("move"); window.ready = true;
</script>"""
_PLACES = """const places = await (await fetch("./places.json")).json();
const floats = name => new Float32Array(coded(places[name]).buffer);
const [x, y, group] = [floats("x"), floats("y"), coded(places.group)];"""
_PLOTLY = """<div id=at></div><script src="./plotly.min.js"></script><script type=module>
PLACES
await Plotly.newPlot("at", [{ type: "scattergl", mode: "markers", x, y,
  marker: { size: 3, color: group } }],
  { dragmode: "pan", width: 900, height: 560, margin: { l: 0, r: 0, t: 0, b: 0 } });
window.ready = true;
</script>"""
_DECK = """<div id=at style="width:900px;height:560px;position:relative"></div>
<script src="./deck.js"></script><script type=module>
PLACES
const n = x.length, position = new Float32Array(3 * n), colour = new Uint8Array(4 * n);
for (let i = 0; i < n; i++) {
  position.set([100 * x[i], 100 * y[i], 0], 3 * i);
  colour.set([40 * group[i], 90, 200 - 30 * group[i], 255], 4 * i);
}
const kit = globalThis.deck ?? globalThis;
new kit.Deck({ parent: document.getElementById("at"), width: 900, height: 560, controller: true,
  views: new kit.OrthographicView(), initialViewState: { target: [0, 0, 0], zoom: 0 },
  layers: [new kit.ScatterplotLayer({ data: { length: n, attributes: {
    getPosition: { value: position, size: 3 }, getFillColor: { value: colour, size: 4 } } },
    getRadius: 1.5, radiusUnits: "pixels" })],
  onAfterRender: () => { window.ready = true; } });
</script>"""


def measure() -> list[Measurement]:
    """Measure frames per second while dragging the same points on three pages in Chromium."""
    found = find_chromium()
    if found is None:
        return []
    rates: dict[str, list[float]] = {}
    with running_chromium(found) as browser, _server(_build_files()) as address:
        for _ in range(N_ROUNDS):
            for name in ("canvas", "Plotly", "deck.gl"):
                rates.setdefault(name, []).append(_measure_frame_rate(browser, f"{address}/{name}"))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    what = f"{N_POINTS:,} points, {WIDTH} × {HEIGHT} pixels"
    return [
        Measurement(
            name=f"frames a second while moving the map, {name}",
            value=value,
            unit="1/s",
            goal=30.0 if name == "canvas" else None,
            n=N_ROUNDS,
            note=f"median; {what}",
        )
        for name, value in medians.items()
    ]


def _measure_frame_rate(browser: Any, address: str) -> float:
    """Open a page, drag its map for some seconds, and return the frames per second."""
    page = browser.new_page(viewport={"width": WIDTH + 20, "height": HEIGHT + 60})
    page.set_default_timeout(120_000)
    page.goto(address)
    page.wait_for_function("() => window.ready")
    page.wait_for_timeout(1000)
    page.mouse.move(WIDTH / 2, HEIGHT / 2)
    page.mouse.down()
    start, before, step = time.perf_counter(), page.evaluate("frames"), 0
    while time.perf_counter() - start < SECONDS:
        step += 1
        across, down = (step % 40) / 20 - 1, (step % 30) / 15 - 1
        page.mouse.move(WIDTH / 2 + 60 * across, HEIGHT / 2 + 40 * down)
    n = page.evaluate("frames") - before
    rate = n / (time.perf_counter() - start)
    page.mouse.up()
    page.close()
    return float(rate)


def _build_files() -> dict[str, bytes]:
    """Build the three map pages; return their bytes, scripts and data by URL path."""
    import plotly
    import pydeck

    from leakscope.dashboard.projection.views import BODY

    rng = np.random.default_rng(0)
    group = rng.integers(0, N_GROUPS, N_POINTS)
    centres = rng.normal(size=(N_GROUPS, 2))
    spread = 0.35 * rng.normal(size=(N_POINTS, 2))
    places = (centres[group] + spread).astype(np.float32)
    data = point_map_data(
        places, [""] * N_POINTS, colour=group_column([f"group {g}" for g in group]), alt="A map"
    )
    raw: dict[str, NDArray[Any]] = {
        "x": places[:, 0],
        "y": places[:, 1],
        "group": group.astype(np.uint8),
    }
    here = ROOT / "dashboard" / "projection"
    pages = {
        "canvas": _OURS.replace("HTML", BODY).replace("CSS", (here / "point_map.css").read_text()),
        "Plotly": _PLOTLY.replace("PLACES", _PLACES),
        "deck.gl": _DECK.replace("PLACES", _PLACES),
    }
    scripts = {
        "point_map.js": here / "point_map.js",
        "plotly.min.js": _package_file(plotly, "package_data/plotly.min.js"),
        "deck.js": _package_file(pydeck, "nbextension/static/index.js"),
    }
    return {
        **{name: f"<!doctype html>{_COUNT}{page}".encode() for name, page in pages.items()},
        **{name: path.read_bytes() for name, path in scripts.items()},
        "data.json": json.dumps(data).encode(),
        "places.json": json.dumps(
            {name: _encode_base64(array) for name, array in raw.items()}
        ).encode(),
    }


def _package_file(package: Any, name: str) -> Path:
    """Return the path of a file within an installed package."""
    return Path(package.__file__).parent / name


def _encode_base64(array: NDArray[Any]) -> str:
    """Encode an array's bytes as a base64 string."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


@contextmanager
def _server(files: dict[str, bytes]) -> Iterator[str]:
    """Serve files, given as bytes by path, on this computer only; yield the server's address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers with the file of a path."""

        def do_GET(self) -> None:
            """Send the file of the requested path, or status 404."""
            name = self.path.strip("/")
            self.send_response(200 if name in files else 404)
            kind = {"js": "text/javascript", "json": "application/json"}
            self.send_header("content-type", kind.get(name.rpartition(".")[2], "text/html"))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(files.get(name, b""))

        def log_message(self, *_: object) -> None:
            """Ignore the log message: requests are not logged."""

    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{served.server_port}"
    finally:
        served.shutdown()
