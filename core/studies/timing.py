"""What a text costs in time, behind a defence as without one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from core.corpora import bundled_sentences

__all__ = ["N_TIMED", "milliseconds_a_text", "milliseconds_in_turn"]

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
    return _timed(encode, known[8 : 8 + N_TIMED])


def milliseconds_in_turn(
    encode: Callable[[Sequence[str]], Any], beside: Callable[[Sequence[str]], Any], rounds: int
) -> tuple[float, float]:
    """Return the same for two, each timed as often as the other and in turn; the least counts.

    What else a machine does slows either: the least of some rounds is nearest to what it takes, and
    one tells what the machine was good for when the other was timed. Each round has other
    sentences, the same for both.
    """
    known = bundled_sentences()
    both = (encode, beside)
    for each in both:
        each(known[:8])
    taken: list[list[float]] = [[], []]
    for i in range(rounds):
        texts = known[8 + i * N_TIMED : 8 + (i + 1) * N_TIMED]
        for each, own in zip(both, taken, strict=True):
            own.append(_timed(each, texts))
    return min(taken[0]), min(taken[1])


def _timed(encode: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> float:
    start = time.perf_counter()
    encode(texts)
    return round(1000 * (time.perf_counter() - start) / len(texts), 3)
