"""Map page with 50,000 points: seconds to draw them, and from a loop to recovered words."""

from __future__ import annotations

import io
import statistics
import time
from typing import Any

from benchmarks import Measurement
from benchmarks.dashboard.page_ready import find_chromium, running_chromium, running_server

N_POINTS = 50_000
N_LOOPS = 3
N_PAINTS = 3


def measure() -> list[Measurement]:
    """Measure upload, repainting and hovering on the map page in Chromium."""
    found = find_chromium()
    if found is None:
        return []
    with running_server() as (address, _), running_chromium(found) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(900_000)
        drawn = upload(page, address)
        paints = [repaint(page, turn) for turn in range(N_PAINTS)]
        loops = [select_by_loop(page, turn) for turn in range(N_LOOPS)]
        shown = read_map_state(page, "n")
    return rows(drawn, paints, loops, shown)


def rows(drawn: float, paints: list[float], loops: list[float], shown: int) -> list[Measurement]:
    """Build the measurements of repainting and of selecting from the seconds taken."""
    return [
        Measurement(
            name=f"{shown:,} points to the screen",
            value=statistics.median(paints),
            unit="s",
            at_most=3,
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
            name="from a loop to recovered words",
            value=statistics.median(loops),
            unit="s",
            at_most=2.5,
            n=len(loops),
            note=f"median; greatest {max(loops):.1f} s; 50 of the selected texts are attacked",
        ),
    ]


def upload(page: Any, address: str) -> float:
    """Upload 50,000 short texts; return seconds until their map is drawn."""
    page.goto(f"{address}/projection?n=50000&method=pca")
    page.get_by_role("combobox", name="Texts").click()
    page.get_by_role("option", name="Your own file").click()
    start = time.perf_counter()
    page.locator("input[type=file]").set_input_files(
        {"name": "many.csv", "mimeType": "text/csv", "buffer": table()}
    )
    page.get_by_text(f"All {N_POINTS:,} rows").wait_for()
    page.locator(".point-map").wait_for()
    while not read_map_state(page, "n"):
        page.wait_for_timeout(20)
    return time.perf_counter() - start


def table() -> bytes:
    """Write 50,000 synthetic texts with labels as a CSV table; return its bytes."""
    out = io.StringIO()
    out.write("text,kind,size\n")
    who = ("baker", "nurse", "pilot", "judge", "farmer", "tailor", "porter", "miner")
    what = ("parcel", "lantern", "ladder", "kettle", "saddle", "violin", "anchor")
    for i in range(N_POINTS):
        out.write(f"The {who[i % 8]} lost {what[i % 7]} {i}.,{who[i % 8]},{i % 97}\n")
    return out.getvalue().encode()


def repaint(page: Any, turn: int) -> float:
    """Choose another colour column; return seconds until the points are recoloured."""
    before = read_map_state(page, "groups[0].name")
    page.get_by_role("combobox", name="Colour").click()
    start = time.perf_counter()
    page.get_by_role("option", name="size" if turn % 2 == 0 else "kind").click()
    while read_map_state(page, "groups[0].name") == before:
        page.wait_for_timeout(20)
    page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    return time.perf_counter() - start


def select_by_loop(page: Any, turn: int) -> float:
    """Select points with a mouse loop on the map; return seconds until their words are shown."""
    frame = page.locator(".point-map .frame")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    x, y = (box[side] + box[length] / 2 for side, length in (("x", "width"), ("y", "height")))
    half = 60 + 40 * turn
    page.mouse.move(x - half, y - half)
    page.mouse.down()
    for dx, dy in ((1, -1), (1, 1), (-1, 1), (-1, -0.98)):
        page.mouse.move(x + dx * half, y + dy * half, steps=8)
    page.mouse.up()
    start = time.perf_counter()
    n = read_map_state(page, "n_selected")
    page.get_by_text(f"{n:,} texts selected").wait_for()
    page.get_by_text("Words recovered most often").wait_for()
    return time.perf_counter() - start


def read_map_state(page: Any, what: str) -> Any:
    """Evaluate a property of the map's JavaScript object on a page and return its value."""
    return page.locator(".point-map").evaluate(f"({{ map }}) => map?.{what}")
