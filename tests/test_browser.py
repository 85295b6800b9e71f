"""Journeys through the served dashboard, with the weights that ship, in a real Chromium."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from processes import started

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.shipped import WEIGHTS

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[1]
PATIENCE = 240_000
"""Milliseconds: long enough for a busy machine, and jobs that wait before a journey's own."""
TEXT = "The finance minister resigned after police searched his office in Berlin."
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def give_up(reason: str) -> None:
    if os.environ.get("LEAKSCOPE_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module", autouse=True)
def patience() -> None:
    sync_api.expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        give_up(f"no browser: none of {', '.join(NAMES)} is installed")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"], timeout=PATIENCE
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a running dashboard, and its log."""
    if not (WEIGHTS / "minilm" / "probe_mlc" / "model.json").exists():
        give_up("no trained weights in assets/weights")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "server.log"
    environment = {**os.environ, "LEAKSCOPE_HOME": str(log.parent), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/serve.py"]
    command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
    command += ["--server.fileWatcherType", "none"]
    address = f"http://127.0.0.1:{port}"
    with log.open("w") as out, started(command, output=out, cwd=ROOT, env=environment) as process:
        wait_until_healthy(address, process)
        yield address, log
        process.terminate()
        process.wait(30)


def wait_until_healthy(address: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail("The server did not start.")


class Visit:
    """A page that remembers what the console complained about."""

    def __init__(self, page: sync_api.Page, address: str) -> None:
        self.page, self.address, self.complaints = page, address, list[str]()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._listen)

    def _listen(self, message: sync_api.ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location.get('url')})")

    def open(self, path: str, **params: str | list[str]) -> Visit:
        query = f"?{urlencode(params, doseq=True)}" if params else ""
        self.page.goto(f"{self.address}{path}{query}")
        return self

    def answered(self, title: str) -> sync_api.Locator:
        """Return the card of an attack once it holds an answer."""
        card = self.page.locator("[class*='st-key-card-']").filter(
            has=self.page.get_by_role("heading", name=title)
        )
        # Streamlit may keep a hidden copy of what it drew before beside what it shows.
        needed = card.locator(".ls-facts").filter(visible=True).first
        sync_api.expect(needed).to_be_visible()
        return card.filter(visible=True).first

    @property
    def overflow(self) -> int:
        """How many pixels the page is wider than its window."""
        return int(
            self.page.evaluate(
                "() => Math.max(...[document.documentElement, "
                "document.querySelector('[data-testid=stMain]')]"
                ".map(e => e.scrollWidth - e.clientWidth))"
            )
        )


@pytest.fixture
def visit(browser: sync_api.Browser, server: tuple[str, Path]) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    visit, since = Visit(context.new_page(), server[0]), len(server[1].read_text())
    yield visit
    context.close()
    assert visit.complaints == []
    assert_clean(server[1], since)


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=lambda at: f"{at[0]}-{at[1]}")
def fitting(
    browser: sync_api.Browser, server: tuple[str, Path], request: pytest.FixtureRequest
) -> Iterator[Visit]:
    """A visit at each width and in each theme, which has to fit and to raise no complaint.

    Once each, not in all pairs: no width changes a colour.
    """
    width, theme = request.param
    since = len(server[1].read_text())
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=theme, reduced_motion="reduce"
    )
    visit = Visit(context.new_page(), server[0])
    yield visit
    assert visit.overflow <= 0 and visit.complaints == []
    context.close()
    assert_clean(server[1], since)


def assert_clean(log: Path, since: int) -> None:
    text = log.read_text()[since:]
    assert "Traceback" not in text and "Error" not in text, text[-2000:]
    assert TEXT not in text, "what was typed is in the log"


PROBE = INVERSION_ATTACKS["probe_mlc"].title


def test_the_overview_has_an_answer_and_leads_to_the_next_page(visit: Visit) -> None:
    page = visit.open("/").page
    sync_api.expect(page.get_by_role("heading", level=1)).to_contain_text("the attacker reads")
    page.get_by_role("button", name="Try your own sentence").click()
    page.wait_for_url("**/inversion")
    visit.answered(PROBE)


def test_typing_shows_recovered_words_as_one_types(visit: Visit) -> None:
    page = visit.open("/inversion", attack="probe_mlc").page
    visit.answered(PROBE)
    line = page.get_by_role("textbox", name="Your sentence")
    line.fill("")
    line.press_sequentially(TEXT, delay=5)  # neither Enter nor Tab: it answers live
    sync_api.expect(page.locator("mark", has_text="minister")).to_be_visible()
    assert "text=" not in page.url, "what is typed stays out of the address"


def test_a_link_opens_in_a_fresh_session(visit: Visit) -> None:
    page = visit.open("/inversion", text=TEXT, attack=["mlc", "probe_mlc"]).page
    for name in ("mlc", "probe_mlc"):
        card = visit.answered(INVERSION_ATTACKS[name].title)
        sync_api.expect(card.locator(".ls-sentence")).to_contain_text("searched his")
    sync_api.expect(page.get_by_role("textbox", name="Your sentence")).to_have_value(TEXT)


def test_a_slow_attack_starts_and_stops(visit: Visit) -> None:
    page = visit.open("/inversion", text=TEXT, attack="relaxation").page
    page.get_by_role("button", name="Run continuous relaxation").click()
    page.locator("[class*='st-key-stop-'] button").filter(visible=True).first.click()
    again = page.get_by_role("button", name="Run continuous relaxation again")
    sync_api.expect(again).to_be_visible()
    sync_api.expect(page.get_by_text("Nothing of it was kept")).to_be_visible()


def test_a_slow_attack_survives_a_reload_and_answers(visit: Visit) -> None:
    page = visit.open("/inversion", text=TEXT, attack="sparse").page
    page.get_by_role("button", name="Run sparse coding").click()
    page.wait_for_function("() => location.search.includes('job=')", timeout=PATIENCE)
    page.reload()
    card = visit.answered(INVERSION_ATTACKS["sparse"].title)
    sync_api.expect(card).to_contain_text("for this text")


def test_the_strongest_attack_answers_by_itself_above_the_fold(visit: Visit) -> None:
    page = visit.page
    for width, height in ((1280, 800), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        visit.open("/inversion")
        sync_api.expect(headline(page)).to_contain_text("the attacker reads")
        sentence = page.locator(".st-key-answer .ls-sentence").filter(visible=True).first
        box = sentence.bounding_box()
        assert box is not None and box["y"] + box["height"] <= height, (width, box)
        assert (
            INVERSION_ATTACKS["search"].title.lower()
            in page.locator(".st-key-headline").inner_text()
        )


def test_what_one_types_in_stays_where_it_is(visit: Visit) -> None:
    page = visit.open("/inversion").page
    sync_api.expect(headline(page)).to_contain_text("the attacker reads")
    line = page.get_by_role("textbox", name="Your sentence")
    before = line.bounding_box()
    line.fill("A minister.")
    sync_api.expect(headline(page)).to_contain_text("Of 1 word the attacker")
    after = line.bounding_box()
    assert before is not None and after is not None and abs(before["y"] - after["y"]) < 2


def test_results_download_as_json_and_csv(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("/inversion", text=f"=1+1 {TEXT}", attack="probe_mlc").page
    visit.answered(PROBE)
    page.get_by_role("button", name="Save").click()
    for name in ("JSON", "CSV"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        download.value.save_as(tmp_path / name)
    (row,) = json.loads((tmp_path / "JSON").read_text(encoding="utf-8"))
    assert row["text"] == f"=1+1 {TEXT}" and row["attack"] == "probe_mlc"
    assert {"minister"} <= {word["word"] for word in row["words"] if word["is_in_text"]}
    rows = list(csv.DictReader((tmp_path / "CSV").open(encoding="utf-8-sig", newline="")))
    assert {r["text"] for r in rows} == {f"'=1+1 {TEXT}"}, "no cell starts a formula"
    assert [r["word"] for r in rows if r["rank"]] == [word["word"] for word in row["words"]]


@pytest.mark.parametrize("path", ["/", "/inversion", "/deniability", "/tradeoff"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_fits_width_and_theme(
    browser: sync_api.Browser, server: tuple[str, Path], path: str, theme: str, width: int
) -> None:
    size, since = {"width": width, "height": 844}, len(server[1].read_text())
    context = browser.new_context(viewport=size, color_scheme=theme, reduced_motion="reduce")
    visit = Visit(context.new_page(), server[0]).open(path)
    sentence = visit.page.locator(".ls-sentence").last
    sync_api.expect(sentence).to_be_visible()
    visit.page.locator(".js-plotly-plot").first.wait_for()
    assert visit.overflow <= 0
    ground = visit.page.evaluate(
        "() => getComputedStyle(document.querySelector('.stApp')).backgroundColor"
    )
    assert (max(map(int, re.findall(r"\d+", ground)[:3])) < 60) == (theme == "dark")
    assert visit.complaints == []
    context.close()
    assert_clean(server[1], since)


def test_bad_input_and_markup_do_no_harm(visit: Visit) -> None:
    page = visit.open("/inversion", text="<script>alert(1)</script> :red[government] $x$",
                      attack="probe_mlc").page  # fmt: skip
    visit.answered(PROBE)
    sync_api.expect(page.locator(".st-key-answer .ls-sentence")).to_have_text(
        "<script>alert(1)</script> :red[government] $x$"
    )
    line = page.get_by_role("textbox", name="Your sentence")
    for text, told in (("\N{GRINNING FACE}", "nothing to recover"), ("the of", "stop words")):
        line.fill(text)
        sync_api.expect(page.get_by_role("alert")).to_contain_text(told)


def test_presenting_hides_the_controls(visit: Visit) -> None:
    page = visit.open("/inversion", attack="probe_mlc").page
    visit.answered(PROBE)
    page.get_by_role("button", name="Present").click()
    sync_api.expect(page.get_by_role("textbox", name="Your sentence")).to_be_hidden()
    stage = page.locator(".st-key-stage .ls-sentence")
    sync_api.expect(stage).to_contain_text("merger")
    # The keys work from the moment that the buttons that own them are there.
    page.get_by_role("button", name="Next").wait_for()
    for key, word in (("ArrowRight", "diabetes"), ("PageUp", "merger"), ("PageDown", "diabetes")):
        page.keyboard.press(key)
        shown = page.locator(".ls-sentence").filter(visible=True).first
        sync_api.expect(shown).to_contain_text(word)
    page.keyboard.press("Escape")
    sync_api.expect(page.get_by_role("textbox", name="Your sentence")).to_be_visible()


def headline(page: sync_api.Page) -> sync_api.Locator:
    return page.get_by_role("heading", level=1).filter(visible=True).first


def test_the_slider_of_eta_moves_text_and_numbers(visit: Visit) -> None:
    page = visit.open("/deniability", text=TEXT, eta="30").page
    sync_api.expect(headline(page)).to_contain_text("At η = 30,")
    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press("End")
    sync_api.expect(headline(page)).to_contain_text(re.compile(r"At η = 200, (100|99\.\d)%"))
    sentence = page.locator(".ls-sentence").filter(visible=True).first
    sync_api.expect(sentence).to_contain_text("finance minister resigned")
    assert "eta=" not in page.url and "text=" not in page.url, "the address no longer holds"
    slider.press("Home")
    sync_api.expect(headline(page)).to_contain_text(re.compile(r"At η = 15, (0|less than 1)%"))


def test_drawing_again_and_finding_an_eta(visit: Visit) -> None:
    page = visit.open("/deniability", text=TEXT, eta="45").page
    sentence = page.locator(".ls-sentence").filter(visible=True).first
    before = sentence.inner_text()
    page.get_by_role("button", name="Draw again").click()
    sync_api.expect(sentence).not_to_have_text(before)
    page.get_by_role("button", name="Use η =").first.click()
    sync_api.expect(headline(page)).to_contain_text("At η = 42,")


def test_a_click_on_a_point_shows_a_sentence_at_its_setting(visit: Visit) -> None:
    page = visit.open("/tradeoff", text=TEXT, task="SUBJ").page
    figure = page.locator(".js-plotly-plot").first
    figure.wait_for()
    sync_api.expect(page.get_by_text("(SUBJ) keeps").first).to_be_visible()
    figure.locator(".scatterlayer .trace").nth(1).locator(".point").nth(2).click(force=True)
    chosen = page.get_by_role("combobox", name="A: this defence")
    sync_api.expect(chosen).to_have_value("Text to text, η 90")
    sync_api.expect(page.get_by_text("What is released: one draw")).to_be_visible()


def test_a_missing_part_of_the_tests_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKSCOPE_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception):
        give_up("no browser")
    monkeypatch.delenv("LEAKSCOPE_REQUIRE_BROWSER")
    with pytest.raises(pytest.skip.Exception):
        give_up("no browser")
