"""Encoding time per text, with and without a defence."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from leakscope.core.corpora import bundled_sentences

N_TIMED = 200
"""Texts in a timed batch."""


def milliseconds_per_text(encode: Callable[[Sequence[str]], Any]) -> float:
    """Measure the encoding time per text, in ms, on a batch of `N_TIMED` uncached sentences.

    Bundled sentences, of 8 to 40 words, none of them twice: a mechanism that draws ahead for a
    token would else hand out what it has. What is made once, such as a table of distances, is made
    before, on other sentences.
    """
    known = bundled_sentences()
    encode(known[:8])
    return _time_batch(encode, known[8 : 8 + N_TIMED])


def compare_milliseconds(
    encode: Callable[[Sequence[str]], Any], beside: Callable[[Sequence[str]], Any], rounds: int
) -> tuple[float, float]:
    """Measure the time per text of two encoders in alternating rounds; return both minima.

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
            own.append(_time_batch(each, texts))
    return min(taken[0]), min(taken[1])


def _time_batch(encode: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> float:
    """Return the milliseconds per text that encoding a batch takes."""
    start = time.perf_counter()
    encode(texts)
    return round(1000 * (time.perf_counter() - start) / len(texts), 3)
