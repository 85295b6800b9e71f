"""Format scores, rates and AUCs as sentences, the same on every page.

A recall is given as words out of ten, an F1 and an AUC from 0 to 100.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from leakscope.core.results import Score


def format_out_of_ten(recall: float) -> str:
    """Return a recall in per cent as words: "about 6 of 10 words".

    The recall is rounded to whole per cent first, and half a word is rounded up: 45, 55 and 65 per
    cent are five, six and seven words.

    Examples
    --------
    >>> (
    ...     format_out_of_ten(61.4),
    ...     format_out_of_ten(3.8),
    ...     format_out_of_ten(0),
    ...     format_out_of_ten(100),
    ... )
    ('about 6 of 10 words', 'fewer than 1 of 10 words', 'none of 10 words', 'all of 10 words')
    >>> format_out_of_ten(54.6), format_out_of_ten(64.7)
    ('about 6 of 10 words', 'about 7 of 10 words')
    """
    if math.isnan(recall):
        return "an unknown number of words"
    if recall in (0, 100):
        return f"{'all' if recall else 'none'} of 10 words"
    n = (int(f"{recall:.0f}") * 10 + 50) // 100
    if n == 0:
        return "fewer than 1 of 10 words"
    return f"{'nearly all' if n == 10 else f'about {n}'} of 10 words"


def describe_leak(score: Score, recall: float | None = None, *, is_bold: bool = False) -> str:
    """Describe a mean leak: about how many of ten words were recovered, and the F1 with interval.

    Parameters
    ----------
    score : Score
        A token-set F1 in per cent.
    recall : float, optional
        The per cent of the words that were recovered, if known. An F1 also counts wrong answers
        and is no share of the words: without a recall the F1 is shown alone.

    Examples
    --------
    >>> from leakscope.core.results import Interval
    >>> describe_leak(Score(61.4, Interval(60.4, 62.3), 1704), 58.2)
    'about 6 of 10 words (F1 61, 95 % CI 60–62)'
    >>> describe_leak(Score(61.4, Interval(60.4, 62.3), 1704))
    'words with an F1 of 61 (95 % CI 60–62)'
    """
    if recall is None:
        return f"words with an F1 of {score.in_text(0, is_bold=is_bold)}"
    mark = "**" if is_bold else ""
    inside = score.in_text(0, is_inside=True)
    return f"{mark}{format_out_of_ten(recall)}{mark} (F1 {inside})"


def format_recall(score: Score, recall: float | None) -> str:
    """Format the leak in a few words without an interval: the recall or, if None, the F1.

    Examples
    --------
    >>> format_recall(Score(61.4), 58.2), format_recall(Score(61.4), None)
    ('about 6 of 10 words', 'words with an F1 of 61')
    """
    return f"words with an F1 of {score.value:.0f}" if recall is None else format_out_of_ten(recall)


def format_guess(f1: float) -> str:
    """Return a guessing baseline's F1: "an F1 of 4".

    Examples
    --------
    >>> format_guess(3.8)
    'an F1 of 4'
    """
    return f"an F1 of {f1:.0f}"


def format_f1_change(own: Score, base: Score) -> str:
    """Format two F1 scores, the new one beside the one it replaces: "23 instead of 65".

    Examples
    --------
    >>> format_f1_change(Score(23.0), Score(65.0))
    'words with an F1 of **23** instead of **65**'
    """
    scores = " instead of ".join(score.in_text(0, is_bold=True) for score in (own, base))
    return f"words with an F1 of {scores}"


def format_auc(auc: Score, decimals: int = 1, *, is_bold: bool = False) -> str:
    """Format an AUC in [0, 1] and its interval as numbers from 0 to 100.

    Parameters
    ----------
    auc : Score
        As it is measured and stored, from 0 to 1.

    Examples
    --------
    >>> from leakscope.core.results import Interval
    >>> format_auc(Score(0.643, Interval(0.61, 0.672)))
    '64.3 (95 % CI 61.0–67.2)'
    """
    return auc.in_percent().in_text(decimals, is_bold=is_bold)


def join_words(parts: Sequence[str]) -> str:
    """Join one or more strings as "a, b and c"."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def format_percent(share: float, decimals: int = 0) -> str:
    """Return a share in [0, 1] as "90 %".

    Examples
    --------
    >>> format_percent(0.9), format_percent(0.987, 1)
    ('90 %', '98.7 %')
    """
    return f"{100 * share:.{decimals}f} %"


def format_rate(
    rate: Score, of: str = "", *, decimals: int = 0, count: int | None = None, is_bold: bool = False
) -> str:
    """Format a rate in per cent as text: the count, the per cent and the 95 % interval.

    Parameters
    ----------
    rate : Score
        In per cent, of its trials or, where it has none of their own, of its samples.
    of : str
        What the trials are, in the plural.
    count : int, optional
        Trials in which it happened. It is shown if it gives the same per cent: a mean over
        samples of unlike size may not.

    Examples
    --------
    >>> from leakscope.core.results import Interval
    >>> format_rate(Score(53.3, Interval(30, 75), 15), "sentences", count=8)
    '8 of 15 sentences (53 %, 95 % CI 30–75)'
    >>> format_rate(Score(40, Interval(20, 60), 15, n_trials=60), "vectors", count=27)
    '40 % of 60 vectors (95 % CI 20–60 over 15 sentences)'
    >>> format_rate(Score(float("nan")))
    'none'
    """
    if not rate.n:
        return "none"
    n = rate.n if rate.n_trials is None else rate.n_trials
    value, interval = rate.parts(decimals)
    percent, spread = f"{value} %", f"95 % CI {interval}"
    if rate.n_trials is not None and rate.ci95.is_known:
        spread += f" over {rate.n} sentence{'s' if rate.n != 1 else ''}"
    is_same = (
        count is not None and f"{100 * count / n:.{decimals}f}" == f"{rate.value:.{decimals}f}"
    )
    share = f"{count:,} of {n:,}" if is_same else f"{percent} of {n:,}"
    mark = "**" if is_bold else ""
    beside = f"{percent}, {spread}" if is_same else spread
    return f"{mark}{share}{of and f' {of}'}{mark} ({beside})"


_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def power_of_ten(exponent: int) -> str:
    """Format a power of ten with superscript digits: "10³¹".

    Examples
    --------
    >>> power_of_ten(31), power_of_ten(-6)
    ('10³¹', '10⁻⁶')
    """
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def capitalise(text: str) -> str:
    """Return a text with its first letter in upper case and the rest unchanged.

    Examples
    --------
    >>> capitalise("the F1 of NATO")
    'The F1 of NATO'
    """
    return f"{text[:1].upper()}{text[1:]}"
