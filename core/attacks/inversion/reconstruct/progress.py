"""What the search tells of itself while it goes on: a line to read, and to read back."""

from __future__ import annotations

import re

from core.results import SentenceStep

__all__ = ["step_of", "told"]

_TOLD = re.compile(r"Best of ([\d,]+) queries, cosine (-?\d\.\d{3}): (.*)", re.DOTALL)


def told(step: SentenceStep, *, with_text: bool = True) -> str:
    """Return the best sentence so far as a line.

    Examples
    --------
    >>> told(SentenceStep(1200, "the cat sat.", 0.9231))
    'Best of 1,200 queries, cosine 0.923: the cat sat.'
    """
    head = f"Best of {step.n_queries:,} queries, cosine {step.cosine:.3f}"
    return f"{head}: {step.text}" if with_text else head


def step_of(line: str) -> SentenceStep | None:
    """Return the sentence that a line of `told` holds; None for a line of something else.

    Examples
    --------
    >>> step_of("Best of 1,200 queries, cosine 0.923: wait: the cat sat.")
    SentenceStep(n_queries=1200, text='wait: the cat sat.', cosine=0.923)
    >>> step_of("Loading the attack")
    """
    found = _TOLD.fullmatch(line)
    if found is None:
        return None
    return SentenceStep(int(found[1].replace(",", "")), found[3], float(found[2]))
