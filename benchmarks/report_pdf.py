"""A story as PDF, against Chromium's own print of the same document."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks import Measurement, interleaved_medians
from benchmarks.page_ready import NAMES
from core.story.deck import Deck, make_deck
from core.story.html import html_report
from core.story.pdf import pdf_report
from core.story.shipped import shipped_stories

REPEATS = 5
PATIENCE = 10_000
"""Milliseconds of the document's own clock that the plain print waits for its figures."""


def measure() -> list[Measurement]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        return []
    name, story = max(shipped_stories().items(), key=lambda named: len(named[1].pins))
    deck = make_deck(story, "2026-03-01")
    with tempfile.TemporaryDirectory() as folder:
        document, out = Path(folder) / "report.html", Path(folder) / "report.pdf"
        document.write_text(html_report(deck), encoding="utf-8")
        command = [found, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
                   f"--virtual-time-budget={PATIENCE}", f"--print-to-pdf={out}",
                   f"--user-data-dir={folder}/profile", document.as_uri()]  # fmt: skip

        def plain(_: int) -> None:
            subprocess.run(command, check=True, capture_output=True, timeout=120)

        seconds = interleaved_medians({"ours": lambda _: pdf_report(deck), "plain": plain},
                                      repeats=REPEATS)  # fmt: skip
        return rows(name, deck, seconds, len(pdf_report(deck)), out.stat().st_size)


def rows(
    name: str, deck: Deck, seconds: dict[str, float], size: int, plain_size: int
) -> list[Measurement]:
    """Return what was measured, as ratios and against what a person waits for."""
    ours, plain = seconds["ours"], seconds["plain"]
    return [
        Measurement(
            name="a report as PDF, from the slides to the file",
            value=ours / plain,
            unit="× Chromium's print",
            goal=2,
            is_upper_bound=True,
            n=REPEATS,
            note=f"{name}, {len(deck.pages)} slides; {ours:.1f} s against {plain:.1f} s of a print "
            "that fits no figure to its page, writes no document, and is not cut off from networks",
        ),
        Measurement(
            name="the same, for whoever waits",
            value=ours,
            unit="s",
            goal=20,
            is_upper_bound=True,
            n=REPEATS,
            note="median",
        ),
        Measurement(
            name="its size",
            value=size / 1e6,
            unit="MB",
            goal=5,
            is_upper_bound=True,
            note=f"the plain print: {plain_size / 1e6:.2f} MB",
        ),
    ]
