"""Progress messages of the search: format the best sentence so far, and parse it back."""

from __future__ import annotations

import re

from leakscope.core.results import SentenceStep

_STEP_MESSAGE = re.compile(r"Best of ([\d,]+) queries, cosine (-?\d\.\d{3}): (.*)", re.DOTALL)


def format_step(step: SentenceStep, *, with_text: bool = True) -> str:
    """Format a step of the search, its best sentence so far, as a progress message.

    Examples
    --------
    >>> format_step(SentenceStep(1200, "the cat sat.", 0.9231))
    'Best of 1,200 queries, cosine 0.923: the cat sat.'
    """
    head = f"Best of {step.n_queries:,} queries, cosine {step.cosine:.3f}"
    return f"{head}: {step.text}" if with_text else head


def parse_step(line: str) -> SentenceStep | None:
    """Parse a message of `format_step` back to the step; None for any other message.

    Examples
    --------
    >>> parse_step("Best of 1,200 queries, cosine 0.923: wait: the cat sat.")
    SentenceStep(n_queries=1200, text='wait: the cat sat.', cosine=0.923)
    >>> parse_step("Loading the attack")
    """
    found = _STEP_MESSAGE.fullmatch(line)
    if found is None:
        return None
    return SentenceStep(int(found[1].replace(",", "")), found[3], float(found[2]))
