"""Journeys through the page of maps, uploads included, in a real Chromium."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from pathlib import Path

import pytest
from browsing import Visit, choose, headline, holding, sync_api

pytestmark = pytest.mark.browser
SECRET = "The violinist hid the ledger behind the organ."
ROWS = [("text", "kind")] + [
    (f"The {who} {did} the {what} before noon.", who)
    for who in ("violinist", "beekeeper", "surveyor")
    for did in ("mended", "weighed", "borrowed")
    for what in ("ledger", "lantern", "saddle")
]


def opened(visit: Visit, **params: str) -> sync_api.Page:
    page = visit.open("/projection", **params).page
    sync_api.expect(headline(page)).to_contain_text("neighbours on this map", ignore_case=True)
    page.locator(".js-plotly-plot").first.wait_for()
    return page


def lasso(page: sync_api.Page) -> None:
    """Draw a loop around most of the map."""
    chart = page.locator(".js-plotly-plot").first
    chart.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('.js-plotly-plot .draglayer')")
    chart.evaluate("chart => chart.scrollIntoView()")
    box = chart.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    across, down = box["width"] * 0.3, box["height"] * 0.3
    page.mouse.move(x - across, y - down)
    page.mouse.down()
    for dx, dy in ((1, -1), (1, 1), (-1, 1), (-1, -0.98)):
        page.mouse.move(x + dx * across, y + dy * down, steps=8)
    page.mouse.up()


def test_a_loop_lists_texts_and_what_leaks_from_them(visit: Visit, tmp_path: Path) -> None:
    page = opened(visit)
    lasso(page)
    sentence = page.get_by_text("texts selected")
    sync_api.expect(sentence).to_contain_text("of 10 words")
    n = int(re.match(r"[\d,]+", sentence.inner_text())[0].replace(",", ""))  # type: ignore[index]
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON").click()
    download.value.save_as(tmp_path / "json")
    found = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    assert len(found["points"]) == n > 100 and found["attacked"] == 50
    assert sum("recovered" in point for point in found["points"]) == 50
    page.get_by_role("textbox", name="Find in the texts").fill("government")
    sync_api.expect(page.get_by_text("texts hold")).to_contain_text("of 2,000")
    sync_api.expect(sentence).to_be_visible(), "another figure, the same selection"


def test_a_typed_sentence_lands_on_the_map(visit: Visit) -> None:
    page = opened(visit)
    place = "() => document.querySelector('.js-plotly-plot').data.at(-1).x[0]"
    before = page.evaluate(place)
    page.get_by_role("textbox", name="Your sentence").fill(SECRET)
    page.wait_for_function(f"before => ({place})() !== before", arg=before, timeout=30_000)
    assert "text=" not in page.url, "what is typed stays out of the address"


def test_a_link_with_eta_shows_where_points_move(visit: Visit) -> None:
    page = opened(visit, eta="60")
    sync_api.expect(page.get_by_text("protected vectors are still")).to_be_visible()
    names = page.evaluate("() => document.querySelector('.js-plotly-plot').data.map(t => t.name)")
    assert "before → after" in names and "after the defence (200)" in names


def test_a_map_that_is_drawn_survives_a_reload(visit: Visit) -> None:
    page = visit.open("/projection", dims="3").page  # its vectors ship, the map does not
    page.wait_for_function("() => location.search.includes('job=')")
    page.reload()
    sync_api.expect(headline(page)).to_contain_text("neighbours on this map", ignore_case=True)
    sync_api.expect(page.get_by_text("Points can be selected in two dimensions")).to_be_visible()


def test_drawing_can_be_stopped(visit: Visit) -> None:
    """However early the click comes: no other button takes it."""
    for n in ("5000", "2000", "1000"):
        page = visit.open("/projection", corpus="wikipedia", method="tsne", n=n).page
        page.get_by_role("button", name="Stop").click()
        again = page.get_by_role("button", name="Draw the map")
        sync_api.expect(again).to_be_visible()
    page.goto("about:blank")


def table(rows: list[tuple[str, str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


def upload(page: sync_api.Page, name: str, content: bytes | Path) -> None:
    choose(page.get_by_role("combobox", name="Texts"), "Your own file")
    given = content if isinstance(content, Path) else {
        "name": name, "mimeType": "text/csv", "buffer": content
    }  # fmt: skip
    page.locator("input[type=file]").set_input_files(given)


def test_an_upload_is_drawn_and_its_selection_holds_no_formula(
    visit: Visit,
    server: tuple[str, Path],
    tmp_path: Path,
) -> None:
    page = opened(visit, method="pca")
    formula = '=HYPERLINK("http://x") the violinist wrote <b>this</b>.'
    upload(page, "parcels.csv", table([*ROWS, (formula, "@SUM(A1)"), (SECRET, "violinist")]))
    sync_api.expect(page.get_by_text("All 29 rows")).to_be_visible()
    page.wait_for_timeout(1000)  # the chart is being replaced
    lasso(page)
    sync_api.expect(page.get_by_text("texts selected")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    download.value.save_as(tmp_path / "csv")
    rows = list(csv.reader((tmp_path / "csv").open(encoding="utf-8-sig", newline="")))
    cells = [cell for row in rows for cell in row if not re.fullmatch(r"-?[\d.]+", cell)]
    assert len(rows) > 10 and not any(cell.startswith(("=", "@", "+", "-")) for cell in cells)
    log, home = server[1].read_text(), server[1].parent
    assert SECRET not in log
    assert holding(home, SECRET.encode()) == [], "an upload is on the disk"
    page.locator(".js-plotly-plot").first.hover()
    with page.expect_download() as download:  # the figure, drawn with WebGL
        page.locator("[data-title*='ownload']").first.click()
    download.value.save_as(tmp_path / "figure")
    assert (tmp_path / "figure").stat().st_size > 1000
    with page.expect_request(lambda request: request.method == "DELETE"):  # another takes its place
        page.locator("input[type=file]").set_input_files(
            {"name": "more.csv", "mimeType": "text/csv", "buffer": table(ROWS[:20])}
        )
    sync_api.expect(page.get_by_text("All 19 rows")).to_be_visible()


WRONG = (
    ("bomb.csv", gzip.compress(b"a" * 50_000_000), "compressed by gzip"),
    ("paper.csv", b"%PDF-1.7 x", "is a PDF"),
    ("paper.pdf", b"%PDF-1.7 x", "not allowed"),
    ("broken.parquet", b"PAR1 and no more", "truncated"),
)


def test_wrong_files_are_refused_with_the_reason(visit: Visit, tmp_path: Path) -> None:
    page = opened(visit)
    for name, content, told in WRONG:
        upload(page, name, content)
        sync_api.expect(page.get_by_role("alert").filter(has_text=told)).to_be_visible()
    huge = tmp_path / "huge.csv"
    with huge.open("wb") as file:
        file.truncate(201 * 2**20)
    upload(page, huge.name, huge)
    sync_api.expect(page.get_by_role("alert").filter(has_text="200")).to_be_visible()


def test_the_page_fits_width_and_theme(fitting: Visit) -> None:
    opened(fitting, eta="75", shape="words", dims="2")
