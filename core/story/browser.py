"""A Chromium without a window, cut off from every network: it prints a document, and draws figures.

The document is handed over in memory: nothing of it is written to the disk.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from core.errors import CoreError, MissingDependencyError

__all__ = ["NO_BROWSER", "draw_pictures", "has_browser", "print_document"]

_SECONDS = 60.0
_T = TypeVar("_T")
_ONE = threading.Lock()
"""A browser takes half a gigabyte: one at a time."""

NO_BROWSER = (
    "A report as PDF or PowerPoint needs a Chromium or Chrome, to draw its figures: install one, "
    "or take the report as HTML."
)

_FAILED = (
    "Chromium did not finish the document. Try again, or take the report as HTML and print it "
    "from a browser."
)


def has_browser() -> bool:
    """Return whether there is a Chromium or Chrome to draw with."""
    from choreographer.browsers import Chromium

    return Chromium.find_browser(skip_local=False) is not None


def print_document(document: str) -> bytes:
    """Return a document as PDF, A4 across, its figures drawn.

    Raises
    ------
    MissingDependencyError
        There is no Chromium or Chrome.
    """

    async def work(tab: Any) -> bytes:
        await _run(tab, "leakscope.ready.then(() => leakscope.forPrint())")
        asked = {"printBackground": True, "preferCSSPageSize": True, "landscape": True,
                 "generateTaggedPDF": True, "generateDocumentOutline": True}  # fmt: skip
        printed = await _send(tab, "Page.printToPDF", asked)
        return base64.b64decode(printed["data"])

    return _in_browser(document, work)


def draw_pictures(document: str, width: int, height: int, scale: float) -> dict[int, bytes]:
    """Return the figures of a document as PNG, by the number of their slide.

    Raises
    ------
    MissingDependencyError
        There is no Chromium or Chrome.
    """

    async def work(tab: Any) -> dict[int, bytes]:
        asked = f"leakscope.ready.then(() => leakscope.pictures({width}, {height}, {scale}))"
        found = json.loads(await _run(tab, f"{asked}.then(JSON.stringify)"))
        return {int(i): base64.b64decode(told.partition(",")[2]) for i, told in found.items()}

    return _in_browser(document, work)


def _in_browser(document: str, work: Callable[[Any], Awaitable[_T]]) -> _T:
    """Run in a thread of its own: whoever calls may have a loop of theirs."""
    try:
        with _ONE, ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, _worked(document, work)).result()
    except CoreError:
        raise
    except TimeoutError as error:
        raise MissingDependencyError(_FAILED) from error


async def _worked(document: str, work: Callable[[Any], Awaitable[_T]]) -> _T:
    from choreographer import Browser
    from choreographer.errors import BrowserClosedError, BrowserFailedError, ChromeNotFoundError

    try:
        browser = await Browser()
    except ChromeNotFoundError as error:
        raise MissingDependencyError(NO_BROWSER) from error
    except BrowserFailedError as error:
        raise MissingDependencyError(_FAILED) from error
    try:
        async with asyncio.timeout(_SECONDS):
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


async def _run(tab: Any, expression: str) -> Any:
    asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
    found = await _send(tab, "Runtime.evaluate", asked)
    if "exceptionDetails" in found:
        raise MissingDependencyError(_FAILED)
    return found["result"].get("value")


async def _send(tab: Any, command: str, parameters: dict[str, Any] | None = None) -> Any:
    answer = await tab.send_command(command, parameters)
    if "error" in answer:
        raise MissingDependencyError(_FAILED)
    return answer["result"]
