"""Journeys through the page of maps, uploads included, in a real Chromium."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import Visit, choose_option, files_containing, headline, sync_api

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
    sync_api.expect(headline(page)).to_contain_text("points nearest to a text")
    page.locator(".point-map").wait_for()
    return page


def state_of(page: sync_api.Page, what: str) -> Any:
    """Return what the map on the page holds."""
    return page.locator(".point-map").evaluate(f"({{ map }}) => map.{what}")


def wait_for_state(page: sync_api.Page, what: str, holds: Callable[[Any], bool]) -> None:
    """Wait until the map holds what it should, half a minute at most."""
    for _ in range(600):
        if holds(state_of(page, what)):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"{what} of the map is {state_of(page, what)}")


def lasso(page: sync_api.Page) -> None:
    """Draw a loop around most of the map."""
    frame = page.locator(".point-map .frame")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    across, down = box["width"] * 0.3, box["height"] * 0.3
    page.mouse.move(x - across, y - down)
    page.mouse.down()
    for dx, dy in ((1, -1), (1, 1), (-1, 1), (-1, -0.98)):
        page.mouse.move(x + dx * across, y + dy * down, steps=8)
    page.mouse.up()


def test_a_loop_lists_what_leaks_and_a_typed_sentence_lands_on_the_map(
    visit: Visit, tmp_path: Path
) -> None:
    page = opened(visit)
    lasso(page)
    sentence = page.locator("p", has_text="texts selected")
    sync_api.expect(sentence).to_contain_text("of 10 words")
    n = int(re.match(r"[\d,]+", sentence.inner_text())[0].replace(",", ""))  # type: ignore[index]
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON").click()
    download.value.save_as(tmp_path / "json")
    found = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    assert len(found["points"]) == n > 100 and found["attacked"] == 50
    assert sum("recovered" in point for point in found["points"]) == 50
    page.get_by_role("textbox", name="Find in the texts").fill("government")
    sync_api.expect(page.get_by_text("texts contain")).to_contain_text("of 2,000")
    sync_api.expect(sentence).to_be_visible(), "another figure, the same selection"
    before = state_of(page, "typed")
    page.get_by_role("textbox", name="Your sentence").fill(SECRET)
    wait_for_state(page, "typed", lambda typed: typed != before)
    assert "text=" not in page.url, "what is typed stays out of the address"


def test_a_link_with_eta_shows_where_points_move_and_fits(fitting: Visit) -> None:
    page = opened(fitting, eta="60", shape="words", dims="2")
    sync_api.expect(page.get_by_text("protected vectors are still").last).to_be_visible()
    assert len(state_of(page, "moves")) == 200
    sync_api.expect(page.get_by_text("× after the defence (200)")).to_be_visible()


def test_the_keyboard_moves_and_selects_and_a_hidden_group_is_not_selected(visit: Visit) -> None:
    page = opened(visit)
    page.locator(".point-map canvas[role=img]").focus()
    scale, x = state_of(page, "view.scale"), state_of(page, "view.x")
    for key in ("+", "+", "ArrowLeft"):
        page.keyboard.press(key)
    assert state_of(page, "view.scale") == pytest.approx(scale * 1.5**2)
    assert state_of(page, "view.x") != x
    page.get_by_role("button", name="Select all points in view").press("Enter")
    sync_api.expect(page.get_by_text("texts selected")).to_be_visible()
    assert 0 < state_of(page, "n_selected") < 2000
    page.locator(".point-map canvas[role=img]").focus()
    page.keyboard.press("0")
    assert state_of(page, "view.scale") == pytest.approx(scale)
    page.keyboard.press("Escape")
    sync_api.expect(page.get_by_text("Draw a loop around points")).to_be_visible()
    wikipedia = page.locator(".point-map .legend").get_by_role("button", name="Wikipedia")
    wikipedia.click()
    sync_api.expect(wikipedia).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="Select all points in view").click()
    sync_api.expect(page.get_by_text("243 texts selected")).to_be_visible()


def test_a_map_that_is_drawn_survives_a_reload(visit: Visit) -> None:
    page = visit.open("/projection", dims="3").page  # its vectors ship, the map does not
    page.wait_for_function("() => location.search.includes('job=')")
    page.reload()
    sync_api.expect(headline(page)).to_contain_text("points nearest to a text")
    sync_api.expect(
        page.get_by_text("You can select points only in two dimensions")
    ).to_be_visible()


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
    choose_option(page.get_by_role("combobox", name="Texts"), "Your own file")
    given = (
        content
        if isinstance(content, Path)
        else {"name": name, "mimeType": "text/csv", "buffer": content}
    )
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
    wait_for_state(page, "n", lambda n: n == 29)
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
    assert files_containing(home, SECRET.encode()) == [], "an upload is on the disk"
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the picture").click()
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
