"""Edits of one sentence that helped alone, made together: several steps for one query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.reconstruct.edits import Edit, Step, merged

__all__ = ["unions"]

_WEIGHED, _BEGUN, _JOINED = 12, 3, 8
"""Edits that gained most, of how many a union begins, and how many it holds at most."""


def unions(
    target: NDArray[np.float32], parent: Step, children: Sequence[tuple[Edit, Step]]
) -> Iterator[tuple[float, NDArray[np.int32]]]:
    """Yield sentences after several of the edits, with the value that is foreseen of each.

    What edits do together is foreseen by what each did alone: w + Σ (v − w), where w is the vector
    of the sentence without any and v that of the sentence after one. A union begins with one of
    the best and takes up what brings it furthest as long as anything does.
    """
    best = sorted(children, key=lambda child: -child[1].value)[:_WEIGHED]
    edits = [edit for edit, _ in best]
    changes = np.stack([step.vector - parent.vector for _, step in best])
    priors = np.array([_prior(step) - _prior(parent) for _, step in best])
    apart = [[merged(parent.tokens, a, b) is not None for b in edits] for a in edits]
    for begun in range(min(_BEGUN, len(edits))):
        chosen, open_ = [begun], np.array(apart[begun])
        vector, prior = parent.vector + changes[begun], _prior(parent) + priors[begun]
        value = best[begun][1].value
        while len(chosen) < _JOINED and open_.any():
            foreseen = vector + changes
            cosines = foreseen @ target / np.linalg.norm(foreseen, axis=1)
            values = np.where(open_, cosines + prior + priors, -np.inf)
            k = int(values.argmax())
            if values[k] <= value:
                break
            value, vector, prior = float(values[k]), foreseen[k], prior + priors[k]
            chosen.append(k)
            open_ &= apart[k]
            together = merged(parent.tokens, *(edits[i] for i in chosen))
            assert together is not None
            yield value, together


def _prior(step: Step) -> float:
    return step.value - step.cosine
