"""From the coefficients of sparse coding to words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.attacks.inversion.sparse.solvers import Floats
from core.results import RecoveredWord, Recovery

__all__ = ["words_of_codes"]

N_RUNNERS_UP = 25


def words_of_codes(codes: Floats, names: Sequence[str | None], threshold: float) -> list[Recovery]:
    """Turn coefficients (n, m) of tokens into words, `names` giving the word of each column.

    Examples
    --------
    >>> codes = np.array([[0.25, 0.5, 0.25, 0.125]])
    >>> [
    ...     (w.word, w.score)
    ...     for w in words_of_codes(codes, ["cat", None, "cat", "dog"], 0.2)[0].words
    ... ]
    [('cat', 0.5)]
    """
    answers = []
    for code in codes:
        scores: dict[str, float] = {}
        for i in np.flatnonzero(code > 0).tolist():
            name = names[i]
            if name is not None:
                scores[name] = scores.get(name, 0.0) + float(code[i])
        ranked = [
            RecoveredWord(word, score)
            for word, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
        ]
        n_answered = sum(word.score >= threshold for word in ranked)
        rest = ranked[n_answered : n_answered + N_RUNNERS_UP]
        answers.append(Recovery(tuple(ranked[:n_answered]), runners_up=tuple(rest)))
    return answers
