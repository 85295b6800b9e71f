"""A headless Chromium, in its own sandbox and cut off from every network.

It prints a document and draws figures. The document is handed over in memory: nothing of it is
written to the disk but what Chromium keeps in a folder that goes with it. Figures of a story come
from anybody, so what draws them is nobody: another user where this is root, with no more of the
environment than a program needs, and without a network where the system can take it away.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from leakscope.core.errors import CoreError, MissingDependencyError

if TYPE_CHECKING:
    from choreographer.browsers import Chromium

_SECONDS, _SECONDS_EACH = 30.0, 3.0
"""Time limits for a document, and additionally for each of its figures."""

_T = TypeVar("_T")

_NOBODY = 65534
"""User and group id that Chromium runs as if this process is root."""

_UNSAFE_FLAGS = {
    "--allow-file-access-from-files",
    "--disable-web-security",
    "--no-sandbox",
    "--disable-popup-blocking",
    "--disable-ipc-flooding-protection",
}
"""Flags that choreographer sets by default and that would weaken Chromium's sandbox."""

_SAFE_FLAGS = (
    "--disable-background-networking",
    "--disable-quic",
    "--disable-domain-reliability",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--js-flags=--max-old-space-size=1024",
)

NO_BROWSER = (
    "A report as PDF or PowerPoint needs a Chromium or Chrome, to draw its figures: install one, "
    "or take the report as HTML."
)

_FAILED = (
    "Chromium did not finish the document. Take the report as HTML and print it from a browser."
)

_UNSAFE = (
    "Chromium does not start in its sandbox on this computer, and without it no report is printed. "
    "Take the report as HTML and print it from a browser."
)


def has_browser() -> bool:
    """Return whether a Chromium or Chrome is installed."""
    from choreographer.browsers import Chromium

    return Chromium.find_browser(skip_local=False) is not None


def print_document(document: str) -> bytes:
    """Render an HTML document in Chromium; return it as PDF bytes (A4 landscape), figures drawn.

    Raises
    ------
    MissingDependencyError
        There is no Chromium or Chrome.
    """

    async def work(tab: Any) -> bytes:
        """Draw the figures in the tab and print it; return the PDF's bytes."""
        await _evaluate(tab, "leakscope.ready.then(() => leakscope.forPrint())")
        asked = {
            "printBackground": True,
            "preferCSSPageSize": True,
            "landscape": True,
            "generateTaggedPDF": True,
            "generateDocumentOutline": True,
        }
        printed = await _send(tab, "Page.printToPDF", asked)
        return base64.b64decode(printed["data"])

    return _in_browser(document, work)


def draw_pictures(document: str, width: int, height: int, scale: float) -> dict[int, bytes]:
    """Render the figures of an HTML document; return PNG bytes by slide number.

    Raises
    ------
    MissingDependencyError
        There is no Chromium or Chrome.
    """

    async def work(tab: Any) -> dict[int, bytes]:
        """Draw the figures in the tab and return their PNG bytes by slide number."""
        asked = f"leakscope.ready.then(() => leakscope.pictures({width}, {height}, {scale}))"
        found = json.loads(await _evaluate(tab, f"{asked}.then(JSON.stringify)"))
        return {int(i): base64.b64decode(told.partition(",")[2]) for i, told in found.items()}

    return _in_browser(document, work)


def draw_svg(figure: Mapping[str, Any], width: int, height: int) -> str:
    """Draw a Plotly figure, given as plain data, in Chromium; return it as SVG text.

    Raises
    ------
    MissingDependencyError
        There is no Chromium or Chrome.
    """
    from plotly.offline import get_plotlyjs

    size = json.dumps({"format": "svg", "width": width, "height": height})

    async def work(tab: Any) -> str:
        """Draw the figure in the tab and return its SVG text."""
        told = await _evaluate(tab, f"Plotly.toImage({json.dumps(figure)}, {size})")
        return unquote(str(told).partition(",")[2])

    return _in_browser(f"<script>{get_plotlyjs()}</script>", work)


def _in_browser(document: str, work: Callable[[Any], Awaitable[_T]]) -> _T:
    """Load an HTML document in Chromium, call `work` with its tab, and return what it returns.

    A separate thread runs it, since the caller may already have an event loop.
    """
    try:
        with _temporary_folder() as folder, ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, _work_in_tab(document, work, folder)).result()
    except CoreError:
        raise
    except TimeoutError as error:
        raise MissingDependencyError(_FAILED) from error


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Yield a temporary folder that is removed when this process ends, however it ends."""
    is_root = os.geteuid() == 0
    place = tempfile.mkdtemp(
        prefix="leakscope-browser-", dir=_shared_temp_folder() if is_root else None
    )
    if is_root:
        os.chown(place, _NOBODY, _NOBODY)
    # It lives as long as a pipe is open, outside this process's group, which may be killed.
    removal = 'read _; for i in 1 2 3 4 5; do rm -rf "$1" && exit; sleep 0.2; done'
    keeper = subprocess.Popen(
        ["sh", "-c", removal, "sh", place],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield Path(place)
    finally:
        keeper.communicate()


def _shared_temp_folder() -> str | None:
    """Return a temporary folder that another user can enter; None for the default one."""
    for name in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        there = Path(name).resolve()
        if all(
            folder.is_dir() and folder.stat().st_mode & 0o001 for folder in (there, *there.parents)
        ):
            return str(there)
    return None


@cache
def _sandbox_prefix() -> tuple[str, ...]:
    """Return the command prefix that drops root and, where possible, the network, for Chromium."""
    is_root = os.geteuid() == 0
    drop = ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups") * is_root
    unshare = (
        ("unshare", "--net") if is_root else ("unshare", "--user", "--map-current-user", "--net")
    )
    for words in ((*unshare, *drop), drop):
        if not words or _can_run(words):
            return words
    raise MissingDependencyError(_UNSAFE)


def _can_run(words: Sequence[str]) -> bool:
    """Return whether the program `true` succeeds when started with a command prefix."""
    try:
        done = subprocess.run([*words, "true"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _sandboxed_chromium(folder: Path) -> type[Chromium]:
    """Return a Chromium driver class with safe flags, a minimal environment and its own folder."""
    from choreographer.browsers import Chromium
    from choreographer.utils import TmpDirectory

    class FixedFolder(TmpDirectory):
        """The given folder in the place of choreographer's temporary one."""

        def __init__(self) -> None:
            """Set the path to the given folder instead of creating one."""
            self.path = folder

        def clean(self) -> None:
            """Leave the folder to `_temporary_folder`, which removes it."""

    class SandboxedChromium(Chromium):
        """Chromium with safe flags, without privileges, network and environment."""

        def pre_open(self) -> None:
            """Use the given folder for what Chromium writes."""
            self.tmp_dir = FixedFolder()

        def get_cli(self) -> Sequence[str]:
            """Return the command line: sandbox prefix, program and safe flags."""
            python, wrapper, program, *flags = super().get_cli()
            flags = [flag for flag in flags if flag not in _UNSAFE_FLAGS]
            return [python, wrapper, *_sandbox_prefix(), program, *flags, *_SAFE_FLAGS]

        def get_env(self) -> MutableMapping[str, str]:
            """Return the environment: PATH, LANG and the given folder as home."""
            kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
            return {**kept, "HOME": str(folder), "TMPDIR": str(folder)}

        def get_popen_args(self) -> Mapping[str, Any]:
            """Return the options of the process: in the group of this one, to be ended with it."""
            return {**super().get_popen_args(), "start_new_session": False, "cwd": "/"}

    return SandboxedChromium


async def _work_in_tab(document: str, work: Callable[[Any], Awaitable[_T]], folder: Path) -> _T:
    """Start Chromium offline, load an HTML document and return the result of `work` on its tab."""
    from choreographer import Browser
    from choreographer.errors import BrowserClosedError, BrowserFailedError, ChromeNotFoundError

    try:
        browser = await Browser(
            browser_cls=_sandboxed_chromium(folder), enable_sandbox=True, enable_extensions=False
        )
    except ChromeNotFoundError as error:
        raise MissingDependencyError(NO_BROWSER) from error
    except BrowserFailedError as error:
        raise MissingDependencyError(_UNSAFE) from error
    try:
        n_figures = document.count("data-figure=")
        async with asyncio.timeout(_SECONDS + _SECONDS_EACH * n_figures):
            tab = await browser.create_tab("about:blank")
            paper = {"width": 1032, "height": 720, "deviceScaleFactor": 1, "mobile": False}
            await _send(tab, "Emulation.setDeviceMetricsOverride", paper)
            await _send(tab, "Network.enable")
            cut = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
            await _send(tab, "Network.emulateNetworkConditions", cut)
            tree = await _send(tab, "Page.getFrameTree")
            frame = tree["frameTree"]["frame"]["id"]
            await _send(tab, "Page.setDocumentContent", {"frameId": frame, "html": document})
            return await work(tab)
    except BrowserClosedError as error:
        raise MissingDependencyError(_FAILED) from error
    finally:
        await browser.close()


async def _evaluate(tab: Any, expression: str) -> Any:
    """Evaluate a JavaScript expression in a tab and return its value."""
    asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
    found = await _send(tab, "Runtime.evaluate", asked)
    if "exceptionDetails" in found:
        raise MissingDependencyError(_FAILED)
    return found["result"].get("value")


async def _send(tab: Any, command: str, parameters: dict[str, Any] | None = None) -> Any:
    """Send a DevTools command to a tab and return its result."""
    answer = await tab.send_command(command, parameters)
    if "error" in answer:
        raise MissingDependencyError(_FAILED)
    return answer["result"]
