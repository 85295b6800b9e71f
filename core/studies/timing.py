"""What a text costs in time, behind a defence as without one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from core.corpora import bundled_sentences

__all__ = ["N_TIMED", "milliseconds_a_text"]

N_TIMED = 200
"""Texts of a batch that the time of a text is a mean of."""


def milliseconds_a_text(encode: Callable[[Sequence[str]], Any]) -> float:
    """Return how long a text takes in a batch of `N_TIMED`, where nothing is remembered.

    Bundled sentences, of 8 to 40 words, none of them twice: a mechanism that draws ahead for a
    token would else hand out what it has. What is made once, such as a table of distances, is made
    before, on other sentences.
    """
    known = bundled_sentences()
    encode(known[:8])
    texts = known[8 : 8 + N_TIMED]
    start = time.perf_counter()
    encode(texts)
    return round(1000 * (time.perf_counter() - start) / N_TIMED, 3)
