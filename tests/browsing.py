"""What journeys share: a browser, a server, visits that remember complaints."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

import pytest
from processes import started

from core.attacks.inversion.shipped import WEIGHTS

with suppress(ImportError):  # journeys are then skipped, or fail where they must not be
    from playwright import sync_api

ROOT = Path(__file__).parents[1]
PATIENCE = 240_000
"""Milliseconds: long enough for a busy machine, and jobs that wait before a journey's own."""
TEXT = "The finance minister resigned after police searched his office in Berlin."
WINDOW: sync_api.ViewportSize = {"width": 1280, "height": 900}
FLAGS = ["--no-sandbox", "--disable-gpu", "--num-raster-threads=1", "--disable-lcd-text"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


_IS_DARK = """() => getComputedStyle(document.querySelector('.stApp')).backgroundColor
  .match(/\\d+/g).slice(0, 3).every(part => part < 60)"""
_IS_AT_REST = """() => new Promise(on => requestAnimationFrame(() => requestAnimationFrame(on)))
  .then(() => document.querySelector('.stApp').dataset.testScriptState === 'notRunning'
    && document.querySelector('[data-stale=true]:not([data-retained])') === null
    && document.getAnimations().every(each => !(each instanceof CSSTransition)))"""


def give_up(reason: str) -> None:
    if os.environ.get("LEAKSCOPE_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the browser, which keeps there what it compiled of the pages' scripts.

    A visit in a context of its own compiles all of them anew: a third of what journeys cost.
    """
    return tmp_path_factory.mktemp("profile")


@pytest.fixture(scope="module")
def browser(profile: Path) -> Iterator[sync_api.BrowserContext]:
    """A Chromium; no longer than for a module, for while it is there no loop of asyncio can run."""
    if importlib.util.find_spec("playwright") is None:
        give_up("playwright is not installed")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        give_up(f"no browser: none of {', '.join(NAMES)} is installed")
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch_persistent_context(
            profile, executable_path=found, args=FLAGS, timeout=PATIENCE, viewport=WINDOW
        )
        yield chromium
        chromium.close()


@contextmanager
def a_page(
    browser: sync_api.BrowserContext,
    window: sync_api.ViewportSize = WINDOW,
    theme: Literal["light", "dark"] = "light",
) -> Iterator[sync_api.Page]:
    """Open a page, and leave nothing of it, nor of those that it opened, to the next.

    Nothing moves on it: what moves takes a twelfth of what a journey costs.
    """
    page = browser.new_page()
    page.set_viewport_size(window)
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    yield page
    if page.url.startswith("http"):
        page.evaluate("() => localStorage.clear()")
    browser.clear_cookies()
    for opened in browser.pages[1:]:  # the first keeps the browser open
        opened.close()


WITH_ROWS = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path.cwd()))  # jobs look for the engine there
from core.studies import training_summary
training_summary.SHIPPED = Path(sys.argv.pop(1))
from dashboard.training import state
state.USUAL = state.TrialRequest(n_defence=240, n_known=120, n_targets=60, epochs=3)
from streamlit.web.cli import main
main()
"""
"""Streamlit with invented rows of training for privacy, and a smaller trial of it."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a running dashboard, one for all journeys, and its log.

    With the rows that ship, but for those of training for privacy, which are invented.
    """
    if not (WEIGHTS / "minilm" / "probe_mlc" / "model.json").exists():
        give_up("no trained weights in assets/weights")
    from training_rows import ship

    folder = tmp_path_factory.mktemp("server")
    rows = ship(folder / "rows")
    with serving(folder, ["-c", WITH_ROWS, str(rows)]) as served:
        yield served


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(folder: Path, program: Sequence[str], port: int = 0) -> Iterator[tuple[str, Path]]:
    """Serve the dashboard by a program of Python that is given Streamlit's arguments."""
    port = port or free_port()
    log = folder / "server.log"
    environment = {**os.environ, "LEAKSCOPE_HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, *program, "run", "dashboard/serve.py"]
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


def settled(shown: sync_api.Locator) -> float:
    """Return how far down something stands once it stays there: all above it is drawn."""
    seen = [-1.0]
    while len(seen) < 4 or len(set(seen[-3:])) > 1:
        shown.page.wait_for_timeout(300)
        box = shown.bounding_box()
        assert box is not None and len(seen) < 200
        seen.append(box["y"])
    return seen[-1]


def choose(box: sync_api.Locator, option: str) -> None:
    """Pick an entry of a list, as a reader does who has scrolled to it before.

    A list closes where the page still scrolls, and one that is out of sight is scrolled to.
    """
    box.scroll_into_view_if_needed()
    settled(box)
    box.click()
    box.page.get_by_role("option", name=option).click()


class Visit:
    """A page that remembers what the console complained about, and other hosts that it asked."""

    def __init__(self, page: sync_api.Page, address: str) -> None:
        self.page, self.address, self.complaints = page, address, list[str]()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._listen)
        page.on("request", self._see)

    def _listen(self, message: sync_api.ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location.get('url')})")

    def _see(self, request: sync_api.Request) -> None:
        own = (self.address, f"ws{self.address.removeprefix('http')}", "data:", "blob:", "about:")
        if not request.url.startswith(own):
            self.complaints.append(f"asks for {request.url}")

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
    def is_dark(self) -> bool:
        """Whether the page is drawn on a dark ground."""
        return bool(self.page.evaluate(_IS_DARK))

    def turn_dark(self) -> None:
        """Change the theme that the reader's system asks for, and wait until the page has it."""
        assert not self.is_dark
        self.page.emulate_media(color_scheme="dark")
        self.page.wait_for_function(_IS_DARK)
        # Colours fade from theme to theme, and what a run of the script will replace fades out.
        self.page.wait_for_function(_IS_AT_REST)

    def fits_both(self) -> None:
        """Look at the page as it stands, then on a telephone and in the dark: it has to fit.

        For what takes long to come to: `fitting` opens the page twice.
        """
        assert self.overflow <= 0
        self.page.set_viewport_size({"width": 390, "height": 844})
        self.turn_dark()
        self.page.wait_for_timeout(500)  # charts are drawn anew
        assert self.overflow <= 0

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
def visit(browser: sync_api.BrowserContext, server: tuple[str, Path]) -> Iterator[Visit]:
    """A visit that has to raise no complaint."""
    since = len(server[1].read_text())
    with a_page(browser) as page:
        visit = Visit(page, server[0])
        yield visit
    assert visit.complaints == []
    assert_clean(server[1], since)


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=lambda at: f"{at[0]}-{at[1]}")
def fitting(
    browser: sync_api.BrowserContext, server: tuple[str, Path], request: pytest.FixtureRequest
) -> Iterator[Visit]:
    """A visit at each width and in each theme, which has to fit and to raise no complaint.

    Once each, not in all pairs: no width changes a colour.
    """
    width, theme = request.param
    since = len(server[1].read_text())
    with a_page(browser, {"width": width, "height": 844}, theme) as page:
        visit = Visit(page, server[0])
        yield visit
        assert visit.overflow <= 0 and visit.complaints == []
    assert_clean(server[1], since)


def assert_clean(log: Path, since: int) -> None:
    text = log.read_text()[since:]
    assert "Traceback" not in text and "Error" not in text, text[-2000:]
    assert TEXT not in text, "what was typed is in the log"


def holding(folder: Path, text: bytes) -> list[Path]:
    """Return the files that hold a text; what a job takes away while it is looked at holds none."""
    found = []
    for place, _, names in os.walk(folder):
        for path in (Path(place) / name for name in names):
            with suppress(FileNotFoundError):
                if path.is_file() and text in path.read_bytes():
                    found.append(path)
    return found


def headline(page: sync_api.Page) -> sync_api.Locator:
    return page.get_by_role("heading", level=1).filter(visible=True).first
