"""What the audit of a mechanism does not test, said beside each of its verdicts."""

from __future__ import annotations

__all__ = ["CHOICE", "untested_of"]

CHOICE = "choice"
"""The kind of mechanisms that choose a token, beside those of `mechanism.KINDS`."""

_ALWAYS = (
    "Other settings, and other inputs than those of the probe.",
    "Whether the random stream can be predicted: only its statistics are tested.",
    "What is visible beside the output: the number of word pieces, running time, memory, errors.",
    "Several releases of one text: their odds multiply.",
    "Code that recognises the audit and behaves differently outside it.",
)

_OF_NUMBERS = (
    "η that is off by less than about 0.7 %, at 384 dimensions.",
    "Norms cut off beyond their 99.5 % quantile.",
    "The odds of events that are rarer than about 1 in 4 releases, and of inputs that are farther "
    "apart than 1/η.",
    "Draws that are reused after more than 1,100 calls.",
    "Norms that follow each other only within a call of many texts, other than neighbours.",
    "Dependence among three or more draws that no two of them show.",
    "Dimensions other than 32 and the one that is given; noise drawn on a GPU or by threads.",
    "The sampler's own discreteness, about 2^-30.",
)

_OF_TEXT = (
    "The noise itself: only the returned tokens are seen, in 4 dimensions.",
    "Noise that is off by a few per cent, or correlated beyond neighbours and successive calls.",
    "Draws that are reused later than in the next call.",
    "The vocabulary of an encoder: the probe has four groups of 49 tokens.",
)

_OF_CHOICES = (
    "The vocabulary of an encoder: the probe has 24 tokens in 3 dimensions.",
    "ε that is off by a few per cent, and outcomes rarer than 1 in 1,000.",
    "Draws that are reused later than in the next call, or correlated beyond neighbours and "
    "successive calls.",
)


def untested_of(kind: str) -> tuple[str, ...]:
    """Return what the audit of a kind of mechanism leaves untested, a sentence each.

    Parameters
    ----------
    kind : str
        Of `mechanism.KINDS`, or CHOICE.
    """
    own = {"text": _OF_TEXT, CHOICE: _OF_CHOICES}.get(kind, _OF_NUMBERS)
    return (*own, *_ALWAYS)
