"""What the server gets ready while nobody waits yet: the compiled loops, in another process.

Compiling holds the interpreter's lock for seconds, in which no page would answer.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import streamlit as st

from core.assets import ROOT
from core.specs import EncoderSpec
from dashboard import cache

__all__ = ["lifespan", "opening", "wait_for_loops"]

PREPARE = [sys.executable, "-m", "core.compile_ahead"]

_LONGEST = 120.0
"""Seconds to wait for the process; after that, the page compiles by itself."""

_running: list[subprocess.Popen[bytes]] = []


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[None]:
    """Compile while the server starts, and end that with the server."""
    try:
        process = subprocess.Popen(
            PREPARE,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:  # no room for another process: a page compiles what it needs by itself
        yield
        return
    _running.append(process)
    try:
        yield
    finally:
        _running.remove(process)
        process.kill()
        process.wait()


@contextmanager
def opening(slot: Any, on: EncoderSpec) -> Iterator[None]:
    """Keep a headline's place while it is worked out; say why where the encoder opens first.

    Opening takes seconds, and on a slow machine up to a minute, once after a start.
    """
    if cache.is_open(on):
        with slot.skeleton(height=60):
            yield
        return
    with (
        slot,
        st.spinner("Opening the encoder and its attacks, once after a start", show_time=True),
    ):
        yield


def wait_for_loops() -> None:
    """Wait, with a sign of it, where this server still compiles; otherwise do nothing."""
    running = [process for process in _running if process.poll() is None]
    if not running:
        return
    with st.spinner("Compiling this page's loops, once after installing", show_time=True):
        for process in running:
            try:
                process.wait(_LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
