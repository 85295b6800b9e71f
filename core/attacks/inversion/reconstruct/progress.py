"""What the search tells of itself while it goes on: a line to read, and to read back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from core.results import SentenceStep

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from core.attacks.inversion.reconstruct.search import Plan, Quest
    from core.protocols import OnProgress

__all__ = ["reporter", "step_of", "told"]

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


def reporter(
    on_progress: OnProgress,
    quests: Sequence[Quest],
    text: Callable[[NDArray[np.int32]], str],
    done: int,
    n_all: int,
) -> Callable[[Plan], None]:
    """Return what reports a round: how far it is, and the best sentence of the first vector."""

    def report(plan: Plan) -> None:
        spent = [1.0 if q.is_over else q.n_queries / plan.n_queries for q in quests]
        best = quests[0].best
        said = "Writing a first sentence"
        if best is not None:
            step = SentenceStep(quests[0].n_queries, text(best.tokens), best.cosine)
            said = told(step, with_text=n_all == 1)
        on_progress((done + sum(spent)) / n_all, said)

    return report
