"""What attackers read, said to everyone: of ten words so many, and the F1 behind it.

One scale for all pages, so that nobody has to hold two against each other.
"""

from __future__ import annotations

import math

from core.results import Score

__all__ = ["instead_said", "leak_said", "of_ten"]


def of_ten(percent: float, out_of: int = 10) -> str:
    """Return how many of ten words a share of all words comes to.

    The share counts as it is shown, in whole per cent, and half a word is rounded up: 45, 55 and
    65 per cent are five, six and seven words, whatever stands behind the point.

    Examples
    --------
    >>> of_ten(61.4), of_ten(3.8), of_ten(0), of_ten(100)
    ('about 6 of 10 words', 'fewer than 1 of 10 words', 'none of 10 words', 'all of 10 words')
    >>> of_ten(54.6), of_ten(64.7)
    ('about 6 of 10 words', 'about 7 of 10 words')
    """
    if math.isnan(percent):
        return "not known how many words"
    if percent in (0, 100):
        return f"{'all' if percent else 'none'} of {out_of} words"
    n = (int(f"{percent:.0f}") * out_of + 50) // 100
    if n == 0:
        return f"fewer than 1 of {out_of} words"
    return f"{'nearly all' if n == out_of else f'about {n}'} of {out_of} words"


def leak_said(score: Score, recall: float | None = None, *, is_bold: bool = False) -> str:
    """Return what is read on average: of ten words so many, then the F1 with its interval.

    Parameters
    ----------
    score : Score
        A token-set F1 in per cent.
    recall : float, optional
        The per cent of the words that were read, where it is kept; without it the F1 stands for
        it, which it equals where as many of the answers are right.

    Examples
    --------
    >>> from core.results import Interval
    >>> leak_said(Score(61.4, Interval(60.4, 62.3), 1704), 58.2)
    'about 6 of 10 words (F1 61 [60, 62])'
    """
    mark = "**" if is_bold else ""
    share = score.value if recall is None else recall
    return f"{mark}{of_ten(share)}{mark} (F1 {score.said(0)})"


def instead_said(own: Score, base: Score) -> str:
    """Return what is read beside what was read before, finer where ten words tell no difference.

    Examples
    --------
    >>> instead_said(Score(23.0), Score(65.0))
    '**about 2 of 10 words** instead of **about 7** (F1 23 instead of 65)'
    >>> instead_said(Score(61.0), Score(64.0))
    '**about 61 of 100 words** instead of **about 64** (F1 61 instead of 64)'
    """
    out_of = 10 if of_ten(own.value) != of_ten(base.value) else 100
    now, before = (of_ten(score.value, out_of) for score in (own, base))
    return (
        f"**{now}** instead of **{before.removesuffix(f' of {out_of} words')}** "
        f"(F1 {own.said(0)} instead of {base.said(0)})"
    )
