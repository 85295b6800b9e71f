"""What attackers read, said to everyone, the same everywhere.

Of ten words so many, where it was counted which of a text's words were read; else the score, as a
score: one thing never has two scales. What tells two groups apart is told from 0 to 100, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.results import Score

__all__ = [
    "auc_said",
    "guess_said",
    "in_a_row",
    "instead_said",
    "leak_said",
    "of_ten",
    "percent_said",
    "rate_said",
    "read_said",
]


def of_ten(recall: float) -> str:
    """Return how many of ten words a recall comes to: the per cent of a text's words that is read.

    It counts as it is shown, in whole per cent, and half a word is rounded up: 45, 55 and
    65 per cent are five, six and seven words, whatever stands behind the point.

    Examples
    --------
    >>> of_ten(61.4), of_ten(3.8), of_ten(0), of_ten(100)
    ('about 6 of 10 words', 'fewer than 1 of 10 words', 'none of 10 words', 'all of 10 words')
    >>> of_ten(54.6), of_ten(64.7)
    ('about 6 of 10 words', 'about 7 of 10 words')
    """
    if math.isnan(recall):
        return "not known how many words"
    if recall in (0, 100):
        return f"{'all' if recall else 'none'} of 10 words"
    n = (int(f"{recall:.0f}") * 10 + 50) // 100
    if n == 0:
        return "fewer than 1 of 10 words"
    return f"{'nearly all' if n == 10 else f'about {n}'} of 10 words"


def leak_said(score: Score, recall: float | None = None, *, is_bold: bool = False) -> str:
    """Return what is read on average, as one reads it: of ten words so many, then the F1.

    Parameters
    ----------
    score : Score
        A token-set F1 in per cent.
    recall : float, optional
        The per cent of the words that were read, where it is kept. An F1 counts what was wrongly
        answered, too, and is no share of the words: without a recall it is told as a score.

    Examples
    --------
    >>> from core.results import Interval
    >>> leak_said(Score(61.4, Interval(60.4, 62.3), 1704), 58.2)
    'about 6 of 10 words (F1 61 [60, 62])'
    >>> leak_said(Score(61.4, Interval(60.4, 62.3), 1704))
    'words with a score of 61 [60, 62] of 100 (F1)'
    """
    if recall is None:
        return f"words with a score of {score.said(0, is_bold=is_bold)} of 100 (F1)"
    mark = "**" if is_bold else ""
    return f"{mark}{of_ten(recall)}{mark} (F1 {score.said(0)})"


def read_said(score: Score, recall: float | None) -> str:
    """Return what is read in as few words as a title or a list has room for.

    Examples
    --------
    >>> read_said(Score(61.4), 58.2), read_said(Score(61.4), None)
    ('about 6 of 10 words', 'words with a score of 61 of 100')
    """
    return f"words with a score of {score.value:.0f} of 100" if recall is None else of_ten(recall)


def guess_said(f1: float) -> str:
    """Return what guessing comes to, of which the F1 alone is kept.

    Examples
    --------
    >>> guess_said(3.8)
    'a score of 4 of 100 (F1)'
    """
    return f"a score of {f1:.0f} of 100 (F1)"


def instead_said(own: Score, base: Score) -> str:
    """Return what is read beside what was read before, as the scores that are kept of both.

    Examples
    --------
    >>> instead_said(Score(23.0), Score(65.0))
    'words with a score of **23** instead of **65** of 100 (F1)'
    """
    scores = " instead of ".join(score.said(0, is_bold=True) for score in (own, base))
    return f"words with a score of {scores} of 100 (F1)"


def auc_said(auc: Score, decimals: int = 1, *, is_bold: bool = False) -> str:
    """Return an AUC from 0 to 100, as the glossary explains it.

    Parameters
    ----------
    auc : Score
        As it is measured and stored, from 0 to 1.

    Examples
    --------
    >>> from core.results import Interval
    >>> auc_said(Score(0.643, Interval(0.61, 0.672)))
    '64.3 [61.0, 67.2]'
    """
    return auc.in_percent().said(decimals, is_bold=is_bold)


def in_a_row(parts: Sequence[str]) -> str:
    """Return one part or more as `a, b and c`."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def percent_said(share: float, decimals: int = 0) -> str:
    """Return a share of 1 in per cent, with the space that stands before the sign everywhere.

    Examples
    --------
    >>> percent_said(0.9), percent_said(0.987, 1)
    ('90 %', '98.7 %')
    """
    return f"{100 * share:.{decimals}f} %"


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
    value, interval = rate.parts(decimals)
    percent, spread = f"{value} %", f"95 % interval {interval}"
    if rate.n_trials is not None and rate.ci95.is_known:
        sentences = f"{rate.n} sentence{'s' if rate.n != 1 else ''}"
        spread += f", over the {sentences} that they come from"
    is_same = (
        count is not None and f"{100 * count / n:.{decimals}f}" == f"{rate.value:.{decimals}f}"
    )
    share = f"{count:,} of {n:,}" if is_same else f"{percent} of {n:,}"
    mark = "**" if is_bold else ""
    beside = f"{percent}, {spread}" if is_same else spread
    return f"{mark}{share}{of and f' {of}'}{mark} ({beside})"
