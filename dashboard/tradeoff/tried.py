"""A sentence under a defence, attacked live: kept for the session, by sentence and draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.attacks.inversion.reading import Reading
from core.specs import DefenceSpec
from core.studies.tradeoff_setting import entry_shown
from core.studies.tradeoff_tried import Defended, defended
from dashboard import cache
from dashboard.deniability.state import noise_seed
from dashboard.inversion import answers
from dashboard.kept import Kept

__all__ = ["Tried", "tried"]

_ATTACK = "probe_mlc"


@dataclass(frozen=True, eq=False)
class Tried:
    """What a defence leaves of a sentence, and what is read from it.

    Attributes
    ----------
    reading : Reading or None
        None where the vector lies in a space of its own, which no attack here knows.
    is_padded : bool
        Whether zeros stand for numbers that were cut.
    """

    defended: Defended
    reading: Reading | None
    is_padded: bool


_SEEN: Kept[tuple[DefenceSpec, str, int], Defended] = Kept("_defended", 8)


def tried(spec: DefenceSpec, text: str) -> Tried:
    """Put a sentence through a defence, and attack what is stored.

    Raises
    ------
    CoreError
        The defence does not fit, or the text cannot be encoded.
    """
    encoder, seed = cache.encoder(answers.ENCODER), noise_seed() % 2**32
    found = _SEEN.once((spec, text, seed), lambda: defended(encoder, spec, text, seed))
    if not entry_shown(spec.name).keeps_space:
        return Tried(found, None, False)
    missing = encoder.dimension - found.vector.shape[1]
    vector = np.pad(found.vector, ((0, 0), (0, missing)))
    return Tried(found, answers.unprepared_reading(_ATTACK, text, vector), missing > 0)
