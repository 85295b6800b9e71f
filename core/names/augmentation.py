"""An attacker who is after certain names: training sentences with those names put in.

Needs the list of names and no sentence about them. Ours; the thesis does not do it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import regex

from core.errors import InvalidInputError
from core.names.person import PersonName

__all__ = ["sentences_with_names"]

_CAPITALISED = regex.compile(r"(?<=\p{Ll},? )\p{Lu}\p{Ll}+(?: \p{Lu}\p{Ll}+){0,2}\b")
"""One to three capitalised words in a row, after a lower-case one: within a sentence."""


def sentences_with_names(
    texts: Sequence[str], names: Sequence[PersonName], n: int, *, seed: int = 0
) -> list[str]:
    """Return n sentences in which a run of capitalised words became one of the names.

    Every name is used equally often, in turn in full and by its surname; the sentences are drawn
    with replacement, and so is the run where a sentence holds several.

    Raises
    ------
    InvalidInputError
        No name, or no text holds a capitalised word within it.
    """
    if n == 0:
        return []
    usable = [text for text in texts if _CAPITALISED.search(text)]
    if not usable or not names:
        raise InvalidInputError(
            "Names can be put into texts that hold a capitalised word within a sentence; there "
            "is no such text, or no name."
        )
    rng = np.random.default_rng([seed, 11])
    written = []
    for i, at in enumerate(rng.integers(len(usable), size=n)):
        name = names[i % len(names)]
        # Full and bare alternate from one round of the names to the next.
        put = name.full if i // len(names) % 2 else name.surname
        runs = list(_CAPITALISED.finditer(usable[at]))
        run = runs[rng.integers(len(runs))]
        written.append(usable[at][: run.start()] + put + usable[at][run.end() :])
    return written
