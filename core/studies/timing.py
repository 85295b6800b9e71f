"""What a text costs in time, behind a defence as without one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["N_TIMED", "milliseconds_a_text"]

N_TIMED = 200
"""Texts of a batch that the time of a text is a mean of."""


def milliseconds_a_text(encode: Callable[[Sequence[str]], Any]) -> float:
    """Return how long a text takes in a batch of `N_TIMED`, where nothing is remembered.

    What is made once, such as a table of distances, is made before.
    """
    texts = [f"Text {i} says that the river rose over its banks." for i in range(N_TIMED)]
    encode(texts[:8])
    start = time.perf_counter()
    encode(texts)
    return round(1000 * (time.perf_counter() - start) / N_TIMED, 3)
