"""What attackers read, said to everyone: of ten words so many, and the F1 behind it.

One scale for all pages, so that nobody has to hold two against each other.
"""

from __future__ import annotations

import math

from core.results import Score

__all__ = ["instead_said", "leak_said", "of_ten", "rate_said"]


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


def rate_said(
    rate: Score, of: str = "", *, decimals: int = 0, count: int | None = None, is_bold: bool = False
) -> str:
    """Return how often something happened: as a count and in per cent, of what, with its interval.

    Parameters
    ----------
    rate : Score
        In per cent, of its trials or, where it has none of their own, of its samples.
    of : str
        What the trials are, in the plural.
    count : int, optional
        Trials in which it happened. It is told where it comes to the same per cent: a mean over
        samples of unlike size may not.

    Examples
    --------
    >>> from core.results import Interval
    >>> rate_said(Score(53.3, Interval(30, 75), 15), "sentences", count=8)
    '8 of 15 sentences (53 %, 95 % interval 30 to 75)'
    >>> rate_said(Score(40, Interval(20, 60), 15, n_trials=60), "vectors", count=27)
    '40 % of 60 vectors (95 % interval 20 to 60, over the 15 sentences that they come from)'
    >>> rate_said(Score(float("nan")))
    'none'
    """
    if not rate.n:
        return "none"
    n = rate.n if rate.n_trials is None else rate.n_trials
    percent, spread = f"{rate.value:.{decimals}f} %", f"95 % interval {rate.ci95.said(decimals)}"
    if rate.n_trials is not None:
        sentences = f"{rate.n} sentence{'s' if rate.n != 1 else ''}"
        spread += f", over the {sentences} that they come from"
    is_same = count is not None and f"{100 * count / n:.{decimals}f} %" == percent
    share = f"{count:,} of {n:,}" if is_same else f"{percent} of {n:,}"
    mark = "**" if is_bold else ""
    beside = f"{percent}, {spread}" if is_same else spread
    return f"{mark}{share}{of and f' {of}'}{mark} ({beside})"
