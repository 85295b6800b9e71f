"""Training sentences for an attacker who targets certain names.

It needs the list of names, but no sentence about them. This is ours; the thesis does not do it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import regex

from leakscope.core.errors import InvalidInputError
from leakscope.core.names.person import PersonName

_CAPITALISED = regex.compile(r"(?<=\p{Ll},? )\p{Lu}\p{Ll}+(?: \p{Lu}\p{Ll}+){0,2}\b")
"""One to three capitalised words in a row, after a lower-case one: within a sentence."""


def insert_names(
    texts: Sequence[str], names: Sequence[PersonName], n: int, *, seed: int = 0
) -> list[str]:
    """Draw n sentences from texts, with a capitalised phrase replaced by one of the names.

    Every name is used equally often, alternately in full and by surname. Sentences are drawn with
    replacement; one capitalised phrase is drawn if a sentence has several.

    Raises
    ------
    InvalidInputError
        No name, or no text has a capitalised word after its start.
    """
    if n == 0:
        return []
    usable = [text for text in texts if _CAPITALISED.search(text)]
    if not usable or not names:
        raise InvalidInputError(
            "Names are inserted where a sentence has a capitalised word after its start; there is "
            "no such text, or no name."
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
