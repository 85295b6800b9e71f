"""What prints reports: a browser in its sandbox, without a network, that leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from leakscope.core import browser
from leakscope.core.browser import draw_svg, has_browser, print_document
from leakscope.core.errors import MissingDependencyError

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not has_browser(), reason="no Chromium or Chrome is installed"),
]

ROOT = Path(__file__).parents[1]
READY = "window.leakscope = {ready: Promise.resolve(), forPrint() {}};"
FOR_EVER = "window.leakscope = {ready: Promise.resolve(), forPrint() { while (true) {} }};"
PRINTS = f"""
import sys
from leakscope.core import browser
browser._SECONDS = 60.0
print("begun", flush=True)
browser.print_document("<script>{FOR_EVER}</script>")
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that another user may enter, and that holds nothing else."""
    found = Path(tempfile.mkdtemp(prefix="guarded-"))
    found.chmod(0o711)
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    return found


def of_browser(place: Path) -> list[Path]:
    """Return the processes that were started with a folder in this one, as they stand in /proc."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if f"--user-data-dir={place}".encode() in words:
            found.append(process)
    return found


def seen(place: Path, seconds: float = 30.0) -> list[Path]:
    end = time.monotonic() + seconds
    while not (found := of_browser(place)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def is_gone(place: Path, seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not of_browser(place) and not list(place.iterdir()):
            return True
        time.sleep(0.1)
    return False


@pytest.fixture
def printing(place: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, with a secret in its environment, that prints a document without an end."""
    there = {**os.environ, "TMPDIR": str(place), "LEAKSCOPE_KEY": "a phrase for the tests"}
    started = subprocess.Popen(
        [sys.executable, "-c", PRINTS],
        cwd=ROOT,
        env=there,
        text=True,
        stdout=subprocess.PIPE,
        process_group=0,
    )
    assert started.stdout is not None and started.stdout.readline() == "begun\n"
    yield started
    if started.poll() is None:
        os.killpg(started.pid, 9)
    started.wait()


@pytest.mark.skipif(not Path("/proc/self/ns").exists(), reason="there is no /proc to look into")
def test_the_browser_is_guarded(printing: subprocess.Popen[str], place: Path) -> None:
    assert seen(place)
    time.sleep(1.0)  # the processes of pages come after its own
    words, worlds = [], []
    for process in of_browser(place):
        told = (process / "cmdline").read_bytes().split(b"\0")
        if b"chrom" not in told[0]:
            continue
        words += [word.decode() for word in told]
        environment = (process / "environ").read_bytes()
        assert b"LEAKSCOPE" not in environment and b"PYTHONPATH" not in environment
        worlds.append((process / "ns" / "net").readlink())
        if os.geteuid() == 0:
            assert process.stat().st_uid == browser._NOBODY
    assert words and not browser._UNSAFE_FLAGS & set(words)
    if "unshare" in browser._sandbox_prefix():
        assert Path("/proc/self/ns/net").readlink() not in worlds, "it sees none of our network"


def test_nothing_is_left_of_a_browser_whose_process_was_killed(
    printing: subprocess.Popen[str], place: Path
) -> None:
    assert seen(place) and list(place.iterdir())
    os.killpg(printing.pid, 9)
    assert is_gone(place)


def test_a_document_without_an_end_is_given_up(place: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(browser, "_SECONDS", 4.0)
    with pytest.raises(MissingDependencyError, match="HTML"):
        print_document(f"<script>{FOR_EVER}</script>")
    assert is_gone(place)


def test_a_document_reaches_nobody(place: Path) -> None:
    asked = []

    class Heard(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    server = HTTPServer(("127.0.0.1", 0), Heard)
    Thread(target=server.serve_forever, daemon=True).start()
    there = f"http://127.0.0.1:{server.server_port}"
    document = f"""<script>{READY}</script><img src="{there}/a.png"><img src="{there}/b.png">
    <link rel=stylesheet href="{there}/c.css"><iframe src="{there}/d"></iframe>
    <script>fetch("{there}/e").catch(() => 0)</script>
    <img src="file:///etc/hostname"><p>text</p>"""
    try:
        assert print_document(document).startswith(b"%PDF")
    finally:
        server.shutdown()
    assert asked == []


def test_it_does_not_start_unguarded(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    browser._sandbox_prefix.cache_clear()
    monkeypatch.setattr(browser, "_can_run", lambda words: False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda *_: None)
    with pytest.raises(MissingDependencyError, match="sandbox"):
        print_document("a")
    browser._sandbox_prefix.cache_clear()
    assert is_gone(place)


def test_a_figure_is_drawn_as_svg(place: Path) -> None:
    figure = {"data": [{"type": "bar", "x": ["ä", "b"], "y": [1, 2]}], "layout": {}}
    drawn = draw_svg(figure, 300, 200)
    assert drawn.startswith("<svg") and "ä" in drawn and 'width="300"' in drawn
    assert is_gone(place)
