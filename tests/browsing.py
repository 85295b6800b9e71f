"""Browser and server fixtures for the browser tests, and visits that record console errors."""

from __future__ import annotations

import importlib.util
import json
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
from processes import running_process

from leakscope.core.attacks.inversion.shipped import WEIGHTS

with suppress(ImportError):  # journeys are then skipped, or fail where they must not be
    from playwright import sync_api

ROOT = Path(__file__).parents[1]
PATIENCE = 240_000
"""Milliseconds to wait at most: enough for a busy machine and for jobs in the queue."""
TEXT = "The finance minister resigned after police searched his office in Berlin."
WINDOW: sync_api.ViewportSize = {"width": 1280, "height": 900}
TELEPHONE: sync_api.ViewportSize = {"width": 390, "height": 844}
FLAGS = ["--no-sandbox", "--disable-gpu", "--num-raster-threads=1", "--disable-lcd-text"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


_IS_DARK = """() => getComputedStyle(document.querySelector('.stApp')).backgroundColor
  .match(/\\d+/g).slice(0, 3).every(part => part < 60)"""
_OVERFLOW = """() => Math.max(...[document.documentElement,
  document.querySelector('[data-testid=stMain]')].map(e => e.scrollWidth - e.clientWidth))"""
_IS_AT_REST = """() => new Promise(on => requestAnimationFrame(() => requestAnimationFrame(on)))
  .then(() => document.querySelector('.stApp').dataset.testScriptState === 'notRunning'
    && document.querySelector('[data-stale=true]:not([data-retained])') === null
    && document.getAnimations().every(each => !(each instanceof CSSTransition)))"""


def skip_or_fail(reason: str) -> None:
    """Skip the test, or fail it if LEAKSCOPE_REQUIRE_BROWSER=1."""
    if os.environ.get("LEAKSCOPE_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A browser profile that caches the compiled scripts of the pages.

    Without it, each visit compiles all scripts again, a third of the time of the browser tests.
    """
    return tmp_path_factory.mktemp("profile")


@pytest.fixture(scope="module")
def browser(profile: Path) -> Iterator[sync_api.BrowserContext]:
    """A Chromium for one module, since no asyncio loop can run while it is open."""
    if importlib.util.find_spec("playwright") is None:
        skip_or_fail("playwright is not installed")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        skip_or_fail(f"no browser: none of {', '.join(NAMES)} is installed")
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch_persistent_context(
            profile, executable_path=found, args=FLAGS, timeout=PATIENCE, viewport=WINDOW
        )
        yield chromium
        chromium.close()


@contextmanager
def open_tab(
    browser: sync_api.BrowserContext,
    window: sync_api.ViewportSize = WINDOW,
    theme: Literal["light", "dark"] = "light",
) -> Iterator[sync_api.Page]:
    """Open a browser tab without animations; close all tabs and clear cookies and storage after it.

    Animations would take a twelfth of the time of the browser tests.
    """
    page = browser.new_page()
    page.set_viewport_size(window)
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    yield page
    if page.url.startswith("http"):
        page.evaluate("() => localStorage.clear()")
    browser.clear_cookies()
    for opened in browser.pages[1:]:  # the first tab keeps the browser open
        opened.close()


WITH_ROWS = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path.cwd()))  # jobs look for the engine there
from leakscope.core.studies.training import summary as training_summary
training_summary.SHIPPED = Path(sys.argv.pop(1))
from leakscope.dashboard.training import state
state.USUAL = state.TrialRequest(n_defence=240, n_known=120, n_targets=60, epochs=3)
from streamlit.web.cli import main
main()
"""
"""A program that runs Streamlit with invented rows of the training studies, and a small trial."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address and the log of a running dashboard, shared by all browser tests.

    It has the shipped rows, except for invented rows of the training studies.
    """
    if not (WEIGHTS / "minilm" / "probe_mlc" / "model.json").exists():
        skip_or_fail("no trained weights in assets/weights")
    from training_rows import write_shipped

    folder = tmp_path_factory.mktemp("server")
    rows = write_shipped(folder / "rows")
    with serve_dashboard(folder, ["-c", WITH_ROWS, str(rows)]) as served:
        yield served


def free_port() -> int:
    """Return a free local port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serve_dashboard(
    folder: Path, program: Sequence[str], port: int = 0
) -> Iterator[tuple[str, Path]]:
    """Serve the dashboard by a Python program that gets Streamlit's arguments."""
    port = port or free_port()
    log = folder / "server.log"
    environment = {**os.environ, "LEAKSCOPE_HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, *program, "run", "dashboard/serve.py"]
    command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
    command += ["--server.fileWatcherType", "none"]
    address = f"http://127.0.0.1:{port}"
    with (
        log.open("w") as out,
        running_process(command, output=out, cwd=ROOT, env=environment) as process,
    ):
        wait_until_healthy(address, process)
        yield address, log
        process.terminate()
        process.wait(30)


def wait_until_healthy(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers its health check."""
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail("The server did not start.")


def settled_top(shown: sync_api.Locator) -> float:
    """Return an element's vertical position once it no longer changes."""
    seen = [-1.0]
    while len(seen) < 4 or len(set(seen[-3:])) > 1:
        shown.page.wait_for_timeout(300)
        box = shown.bounding_box()
        assert box is not None and len(seen) < 200
        seen.append(box["y"])
    return seen[-1]


def choose_option(box: sync_api.Locator, option: str) -> None:
    """Choose an option of a select box, after scrolling to it.

    A list closes if the page scrolls, and an element out of sight is scrolled to.
    """
    box.scroll_into_view_if_needed()
    settled_top(box)
    box.click()
    box.page.get_by_role("option", name=option).click()


class Visit:
    """A page that records console errors and requests to other hosts."""

    def __init__(self, page: sync_api.Page, address: str) -> None:
        self.page, self.address, self.complaints = page, address, list[str]()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._record_error)
        page.on("request", self._record_foreign_request)

    def _record_error(self, message: sync_api.ConsoleMessage) -> None:
        """Record a console error."""
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location.get('url')})")

    def _record_foreign_request(self, request: sync_api.Request) -> None:
        """Record a request to another host."""
        own = (self.address, f"ws{self.address.removeprefix('http')}", "data:", "blob:", "about:")
        if not request.url.startswith(own):
            self.complaints.append(f"asks for {request.url}")

    def open(self, path: str, **params: str | list[str]) -> Visit:
        """Open a path of the dashboard with query parameters."""
        query = f"?{urlencode(params, doseq=True)}" if params else ""
        self.page.goto(f"{self.address}{path}{query}")
        return self

    def answered(self, title: str) -> sync_api.Locator:
        """Return the card of an attack once it contains an answer."""
        card = self.page.locator("[class*='st-key-card-']").filter(
            has=self.page.get_by_role("heading", name=title)
        )
        # Streamlit may keep a hidden copy of a replaced element.
        needed = card.get_by_text("What the attacker needed").filter(visible=True).first
        sync_api.expect(needed).to_be_visible()
        return card.filter(visible=True).first

    @property
    def is_dark(self) -> bool:
        """Whether the page has a dark background."""
        return bool(self.page.evaluate(_IS_DARK))

    def turn(self, theme: Literal["light", "dark"]) -> None:
        """Switch the system's theme, and wait until the page follows."""
        assert self.is_dark == (theme == "light")
        self.page.emulate_media(color_scheme=theme)
        self.page.wait_for_function(f"() => ({_IS_DARK})() === {json.dumps(theme == 'dark')}")
        # Colours and replaced elements fade gradually.
        self.page.wait_for_function(_IS_AT_REST)

    def resize(self, window: sync_api.ViewportSize) -> None:
        """Resize the window, and assert that the page fits it once its charts are redrawn."""
        self.page.set_viewport_size(window)
        with suppress(sync_api.TimeoutError):
            self.page.wait_for_function(f"({_OVERFLOW})() <= 0", timeout=10_000)
        self.page.wait_for_function(_IS_AT_REST)
        assert self.overflow <= 0

    def fits_both(self) -> None:
        """Assert that the page fits its window now, and the other one in the other theme.

        The windows are a wide one in the light theme and a telephone's in the dark one. Not in all
        combinations, since the width does not change colours.
        """
        assert self.overflow <= 0
        is_dark = self.is_dark
        self.turn("light" if is_dark else "dark")
        self.resize(WINDOW if is_dark else TELEPHONE)

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate(_OVERFLOW))


@pytest.fixture
def visit(browser: sync_api.BrowserContext, server: tuple[str, Path]) -> Iterator[Visit]:
    """A visit that must cause no errors."""
    since = len(server[1].read_text())
    with open_tab(browser) as page:
        visit = Visit(page, server[0])
        yield visit
    assert visit.complaints == []
    assert_clean(server[1], since)


@pytest.fixture
def fitting(browser: sync_api.BrowserContext, server: tuple[str, Path]) -> Iterator[Visit]:
    """A visit on a telephone in the dark theme that must fit both windows and cause no errors."""
    since = len(server[1].read_text())
    with open_tab(browser, TELEPHONE, "dark") as page:
        visit = Visit(page, server[0])
        yield visit
        visit.fits_both()
        assert visit.complaints == []
    assert_clean(server[1], since)


def assert_clean(log: Path, since: int) -> None:
    """Assert that the server's log has no error and no typed text since a position."""
    text = log.read_text()[since:]
    assert "Traceback" not in text and "Error" not in text, text[-2000:]
    assert TEXT not in text, "what was typed is in the log"


def files_containing(folder: Path, text: bytes) -> list[Path]:
    """Return the files that contain a text; files deleted meanwhile are ignored."""
    found = []
    for place, _, names in os.walk(folder):
        for path in (Path(place) / name for name in names):
            with suppress(FileNotFoundError):
                if path.is_file() and text in path.read_bytes():
                    found.append(path)
    return found


def headline(page: sync_api.Page) -> sync_api.Locator:
    """Return the page's visible main heading."""
    return page.get_by_role("heading", level=1).filter(visible=True).first
