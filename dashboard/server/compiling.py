"""Compile the numba loops in another process while the server starts, and wait for them.

Compiling holds the interpreter's lock for seconds, which would block all pages of the server.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import streamlit as st

from leakscope.core.assets import ROOT
from leakscope.core.specs import EncoderSpec
from leakscope.dashboard import cache

PREPARE = [sys.executable, "-m", "leakscope.core.compile_ahead", "deniability", "--background"]
"""Loops that pages run; visitors do not wait for those that only jobs run."""

_LONGEST = 120.0
"""The longest wait for the process in seconds; after that, the page compiles the loops itself."""

_running: list[subprocess.Popen[bytes]] = []


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[None]:
    """Start the compiling process with the server, and kill it when the server ends."""
    try:
        process = subprocess.Popen(
            PREPARE,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:  # no other process can start: pages compile the loops themselves
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
def opening_encoder(slot: Any, on: EncoderSpec) -> Iterator[None]:
    """Show a skeleton, or a spinner if the encoder is not loaded yet, during the `with` block.

    Opening takes seconds, up to a minute on a slow machine, once per server start.
    """
    if cache.is_open(on):
        with slot.skeleton(height=60):
            yield
        return
    with (
        slot,
        st.spinner("Opening the encoder and its attacks (once after each start)", show_time=True),
    ):
        yield


def wait_for_loops() -> None:
    """Wait with a spinner until the compiling process has ended; return at once if none runs."""
    running = [process for process in _running if process.poll() is None]
    if not running:
        return
    with st.spinner("Compiling this page's loops (once after installation)", show_time=True):
        for process in running:
            try:
                process.wait(_LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
