"""A sentence under a defence, attacked live: kept for the session, by sentence and draw.

Where tokens are released, they are read as they are. Where the vector alone is changed, the
attacker knows how: a linear map that was learnt from vectors of bundled sentences behind the same
defence leads it back first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.attacks.inversion.lifted import Lift
from core.attacks.inversion.reading import Reading
from core.protocols import Vectors
from core.specs import DefenceSpec
from core.studies.tradeoff_setting import entry_shown
from core.studies.tradeoff_tried import Defended, defended, way_back
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
    n_known : int
        Sentences behind the defence that the attacker learnt from; 0 for one who does not know it.
    """

    defended: Defended
    reading: Reading | None
    n_known: int


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
    if found.told is not None:
        return Tried(found, answers.told_reading(_ATTACK, text, found.told), 0)
    entry = entry_shown(spec.name)
    known = None if entry.is_baseline else _known()
    if known is not None:
        back = _BACK.once((spec, seed), lambda: (way_back(encoder, spec, known, seed),))[0]
        if back is not None:
            read = answers.unprepared_reading(_ATTACK, text, back(found.vector))
            return Tried(found, read, len(known))
    if not entry.keeps_space:
        return Tried(found, None, 0)
    n_cut = encoder.dimension - found.vector.shape[1]  # zeros stand for what was cut
    vector = np.pad(found.vector, ((0, 0), (0, n_cut)))
    return Tried(found, answers.unprepared_reading(_ATTACK, text, vector), 0)


_BACK: Kept[tuple[DefenceSpec, int], tuple[Lift | None]] = Kept("_ways_back", 8)


@st.cache_resource(show_spinner=False, max_entries=1)
def _known() -> Vectors | None:
    """Return the vectors of bundled sentences, if they ship for the encoder."""
    from core.projection.points import corpus_points
    from core.projection.shipped import CORPUS, N_POINTS, find_vectors

    points = corpus_points(CORPUS, N_POINTS)
    return find_vectors(points, answers.ENCODER.name, cache.encoder(answers.ENCODER).fingerprint)
