"""Cost of an open page for its job, and of a job for other visitors' pages."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import Measurement
from benchmarks.dashboard.page_ready import (
    ROOT,
    find_chromium,
    running_chromium,
    running_server,
)

CORPUS = "wikipedia"
N_TEXTS = 10_000
N_ROUNDS = 3
N_VISITS = 5
SECONDS = 20.0
"""Over which the speed of encoding is taken."""

_NICENESS = 7
_TOLD = re.compile(r"Encoding, ([\d,]+) of")
_Samples = list[tuple[float, int]]


def measure() -> list[Measurement]:
    """Measure encoding speed behind an open page, and page visits during another visitor's job."""
    found = find_chromium()
    if found is None:
        return []
    alone, behind, free, busy = [], [], [], []
    with running_chromium(found) as browser:
        for _ in range(N_ROUNDS):
            alone.append(speed(encode_in_process()))
            with server() as address:
                visit(browser, address)
                free += [visit(browser, address) for _ in range(N_VISITS)]
                page, samples = start_map_job(browser, address)
                behind.append(speed(samples))
                busy += [visit(browser, address) for _ in range(N_VISITS)]
                assert page.locator("[data-testid=stProgress]").first.is_visible()
                page.context.close()
    return rows(alone, behind, free, busy)


def rows(
    alone: list[float], behind: list[float], free: list[float], busy: list[float]
) -> list[Measurement]:
    """Build the measurements: ratios of encoding speeds and of page-visit seconds."""
    ratio = statistics.median(b / a for a, b in zip(alone, behind, strict=True))
    slower = statistics.median(busy) / statistics.median(free)
    return [
        Measurement(
            name="encoding behind an open page / on the command line",
            value=ratio,
            unit="×",
            goal=0.8,
            n=len(alone),
            note=f"median; {statistics.median(behind):.0f} against {statistics.median(alone):.0f} "
            "texts a second, at the same priority",
        ),
        Measurement(
            name="another visitor's page with a job / without",
            value=slower,
            unit="×",
            at_most=1.3,
            n=len(busy),
            note=f"to recovered words; medians {statistics.median(busy):.2f} s and "
            f"{statistics.median(free):.2f} s",
        ),
    ]


def speed(samples: _Samples) -> float:
    """Return the texts per second between the first and last (time, texts done) sample."""
    (start, before), (end, after) = samples[0], samples[-1]
    return (after - before) / (end - start)


def encode_in_process() -> _Samples:
    """Encode in a separate process for some seconds; return (time, texts done) samples."""
    code = "from benchmarks.dashboard.jobs import encode; encode()"
    samples: _Samples = []
    with tempfile.TemporaryDirectory() as home:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "LEAKSCOPE_HOME": home},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            samples.append((time.perf_counter(), int(line)))
            if samples[0][1] == 0:
                samples.pop(0)
            elif samples[-1][0] - samples[0][0] >= SECONDS:
                break
        process.kill()
        process.wait()
    return samples


def encode() -> None:
    """Encode the page's texts, printing how many are done."""
    from leakscope.core.encoders import load_encoder
    from leakscope.core.encoders.cache import CachedEncoder
    from leakscope.core.projection.points import corpus_points

    os.nice(_NICENESS)
    texts = corpus_points(CORPUS, N_TEXTS).texts
    encoder = CachedEncoder(load_encoder("minilm"))
    encoder.encode(texts, lambda done, _: print(round(done * len(texts)), flush=True))


@contextmanager
def server() -> Iterator[str]:
    """Run the dashboard server with its own cache; yield its address."""
    with (
        tempfile.TemporaryDirectory() as home,
        running_server(LEAKSCOPE_HOME=home) as (address, _),
    ):
        yield address


def visit(browser: Any, address: str) -> float:
    """Open the inversion page as a new visitor; return seconds until recovered words are shown."""
    context = browser.new_context()
    start = time.perf_counter()
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{address}/inversion")
    page.locator(".ls-sentence mark").first.wait_for()
    seconds = time.perf_counter() - start
    context.close()
    return seconds


def start_map_job(browser: Any, address: str) -> tuple[Any, _Samples]:
    """Open a map page, which starts a job; return the page and (time, texts done) samples."""
    page = browser.new_context().new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{address}/projection?corpus={CORPUS}&method=tsne&n={N_TEXTS}")
    progress = page.locator("[data-testid=stProgress]").first
    progress.wait_for()
    samples: _Samples = []
    while not samples or samples[-1][0] - samples[0][0] < SECONDS:
        told = _TOLD.search(progress.inner_text())
        n_done = int(told[1].replace(",", "")) if told else 0
        if n_done > (samples[-1][1] if samples else 0):
            samples.append((time.perf_counter(), n_done))
        time.sleep(0.1)
    return page, samples
