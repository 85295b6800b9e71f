"""A story as PDF, against Chromium's own print of the same document."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from benchmarks import Measurement, interleaved_medians
from benchmarks.dashboard.page_ready import find_chromium
from leakscope.core.story.deck import Deck, make_deck
from leakscope.core.story.files import report_bytes
from leakscope.core.story.html import html_report
from leakscope.core.story.shipped import shipped_stories

REPEATS = 5
PATIENCE = 10_000
"""Milliseconds of the document's own clock that the plain print waits for its figures."""


def measure() -> list[Measurement]:
    """Compare the time of our PDF export of a report with that of Chromium's own print."""
    found = find_chromium()
    if found is None:
        return []
    name, story = max(shipped_stories().items(), key=lambda named: len(named[1].pins))
    deck = make_deck(story, "2026-03-01")
    with tempfile.TemporaryDirectory() as folder:
        document, out = Path(folder) / "report.html", Path(folder) / "report.pdf"
        document.write_text(html_report(deck), encoding="utf-8")
        command = [
            found,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-pdf-header-footer",
            f"--virtual-time-budget={PATIENCE}",
            f"--print-to-pdf={out}",
            f"--user-data-dir={folder}/profile",
            document.as_uri(),
        ]

        def plain(_: int) -> None:
            """Print the report's HTML as PDF by Chromium itself, as the baseline."""
            subprocess.run(command, check=True, capture_output=True, timeout=120)

        seconds = interleaved_medians(
            {"ours": lambda _: report_bytes(deck, ".pdf"), "plain": plain}, repeats=REPEATS
        )
        return rows(name, deck, seconds, len(report_bytes(deck, ".pdf")), out.stat().st_size)


def rows(
    name: str, deck: Deck, seconds: dict[str, float], size: int, plain_size: int
) -> list[Measurement]:
    """Build the measurements of the export: time ratio, seconds and file size."""
    ours, plain = seconds["ours"], seconds["plain"]
    return [
        Measurement(
            name="a report as PDF, from the slides to the file",
            value=ours / plain,
            unit="× Chromium's print",
            at_most=2,
            n=REPEATS,
            note=f"{name}, {len(deck.pages)} slides; {ours:.1f} s against {plain:.1f} s of a print "
            "that fits no figure to its page, writes no document, and is not cut off from networks",
        ),
        Measurement(
            name="the same, for whoever waits",
            value=ours,
            unit="s",
            at_most=20,
            n=REPEATS,
            note="median",
        ),
        Measurement(
            name="its size",
            value=size / 1e6,
            unit="MB",
            at_most=5,
            note=f"the plain print: {plain_size / 1e6:.2f} MB",
        ),
    ]
