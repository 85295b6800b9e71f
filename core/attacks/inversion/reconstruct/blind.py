"""The reader without the vector: any sentence of that length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.reconstruct.scores import spoken
from core.corpora import bundled_sentences

__all__ = ["any_sentences", "sentences_between"]


def sentences_between(low: int, high: int, most: int) -> list[str]:
    """Return the first bundled sentences of `low` to `high` words, `most` of them at most."""
    fitting = (text for text in bundled_sentences() if low <= len(spoken(text)) <= high)
    return list(islice(fitting, most))


def any_sentences(texts: Sequence[str], *, seed: int = 0, most: int = 2000) -> list[str]:
    """Return for each text another sentence, drawn from the twenty nearest to it in length.

    Of the first `most` bundled ones, which have 8 to 40 words.
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
def _known(most: int) -> tuple[list[str], NDArray[np.int64]]:
    """Return the first bundled sentences and how many words each has, counted once a process."""
    known = bundled_sentences()[:most]
    return known, np.array([len(spoken(text)) for text in known], np.int64)
