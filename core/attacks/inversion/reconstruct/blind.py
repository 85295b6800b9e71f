"""The readers without the vector: one sentence for all, and any sentence of that length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.reconstruct.scores import rouge_l, spoken
from core.corpora import load_bundled
from core.errors import InvalidInputError

__all__ = ["any_sentences", "likeliest_sentence", "sentences_between"]

_MOST_WORDS = 48
_COMPARED = 200
"""Sentences that are held against each other; of more the best comes no nearer to new ones."""


@cache
def _bundled() -> tuple[str, ...]:
    """Return the bundled sentences of any length that is attacked."""
    return load_bundled().sentences(1, _MOST_WORDS).texts


def sentences_between(low: int, high: int, most: int) -> list[str]:
    """Return the first bundled sentences of `low` to `high` words, `most` of them at most.

    Raises
    ------
    InvalidInputError
        There is none.
    """
    found = list(islice((t for t in _bundled() if low <= len(spoken(t)) <= high), most))
    if not found:
        raise InvalidInputError(
            f"No bundled sentence has {low} to {high} words, so that nobody can guess without the "
            f"vector. Ask for lengths between 1 and {_MOST_WORDS}."
        )
    return found


@lru_cache(maxsize=8)
def likeliest_sentence(known: tuple[str, ...], *, seed: int = 0) -> str:
    """Return the sentence of at most 200 drawn from n that is nearest to others, by mean ROUGE-L.

    Who has no vector may answer it for every text of that length: likelier than any sentence.
    It is held against as many others.

    Raises
    ------
    InvalidInputError
        No sentence is known.
    """
    if not known:
        raise InvalidInputError("Nothing can be guessed from no sentence. Give some.")
    order = np.random.default_rng([seed, 34]).permutation(len(known))
    drawn = [known[int(i)] for i in order[:_COMPARED]]
    others = [known[int(i)] for i in order[_COMPARED : 2 * _COMPARED]] or drawn
    near = [sum(rouge_l(other, each) for other in others if other != each) for each in drawn]
    return drawn[int(np.argmax(near))]


def any_sentences(texts: Sequence[str], *, seed: int = 0, most: int = 2000) -> list[str]:
    """Return for each text another sentence, drawn from the twenty nearest to it in length.

    Of the first `most` bundled ones.
    """
    known, lengths = _known(most)
    rng = np.random.default_rng([seed, 33])
    found = []
    for text in texts:
        apart = np.abs(lengths - len(spoken(text)))
        near = [int(i) for i in np.argsort(apart, kind="stable") if known[int(i)] != text][:20]
        found.append(known[int(rng.choice(near))])
    return found


@lru_cache(maxsize=2)
def _known(most: int) -> tuple[Sequence[str], NDArray[np.int64]]:
    """Return the first bundled sentences and how many words each has, counted once a process."""
    known = _bundled()[:most]
    return known, np.array([len(spoken(text)) for text in known], np.int64)
