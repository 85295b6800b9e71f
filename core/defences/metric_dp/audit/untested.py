"""Properties that a mechanism's audit does not test, listed with each verdict."""

from __future__ import annotations

CHOICE = "choice"
"""The kind of mechanisms that choose a token; see also `mechanism.KINDS`."""

_ALWAYS = (
    "Other settings, and inputs other than those of the probe.",
    "Whether the random stream can be predicted: only its statistics are tested.",
    "Side channels: the number of word pieces, running time, memory, errors.",
    "Several releases of one text: their odds multiply.",
    "Code that recognises the audit and behaves differently outside it.",
)

_OF_NUMBERS = (
    "Errors of η below about 0.7 %, at 384 dimensions.",
    "Norms cut off beyond their 99.5 % quantile.",
    "The odds of events rarer than about 1 in 4 releases, and of inputs farther apart than 1/η.",
    "Draws that are reused after more than 1,100 calls.",
    "Dependent norms within a call of many texts, except those of neighbours.",
    "Dependence among three or more draws that no pair shows.",
    "Dimensions other than 32 and the given one; noise drawn on a GPU or by threads.",
    "The sampler's own discreteness, about 2^-30.",
)

_OF_TEXT = (
    "The noise itself: the audit sees only the returned tokens, in 4 dimensions.",
    "Noise that is wrong by a few per cent, or correlated beyond neighbours and successive calls.",
    "Draws that are reused later than in the next call.",
    "The vocabulary of an encoder: the probe has four groups of 49 tokens.",
)

_OF_CHOICES = (
    "The vocabulary of an encoder: the probe has 24 tokens in 3 dimensions.",
    "Errors of ε of a few per cent, and outcomes rarer than 1 in 1,000.",
    "Draws that are reused later than in the next call, or correlated beyond neighbours and "
    "successive calls.",
)


def list_untested(kind: str) -> tuple[str, ...]:
    """Return what the audit of a kind of mechanism leaves untested, one sentence each.

    Parameters
    ----------
    kind : str
        Of `mechanism.KINDS`, or CHOICE.
    """
    own = {"text": _OF_TEXT, CHOICE: _OF_CHOICES}.get(kind, _OF_NUMBERS)
    return (*own, *_ALWAYS)
