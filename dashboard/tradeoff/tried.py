"""A sentence under a defence, attacked live: kept for the session, by sentence and draw.

The attacker knows the defence. Where tokens are released, the likeliest that went in are read, by
what the mechanism does and how bundled sentences use tokens; as they are, where it cannot tell what
it does. Where the vector alone is changed, a linear map that was learnt from vectors of bundled
sentences behind the same defence leads it back first.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.attacks.inversion.lifted import Lift
from core.attacks.inversion.reading import Reading
from core.corpora import bundled_sentences
from core.protocols import Vectors
from core.specs import DefenceSpec
from core.studies.tradeoff_reader import Law, OwnTexts, law_of, likeliest_text, tells_law
from core.studies.tradeoff_setting import entry_shown
from core.studies.tradeoff_tried import Defended, defended, way_back
from dashboard import cache
from dashboard.deniability.state import noise_seed
from dashboard.inversion import answers
from dashboard.kept import Kept

__all__ = ["Tried", "tried"]

_ATTACK = "probe_mlc"
_SEED = 0
"""Of the attacker's own draws, and of the order of the texts that they know."""


@dataclass(frozen=True, eq=False)
class Tried:
    """What a defence leaves of a sentence, and what is read from it.

    Attributes
    ----------
    reading : Reading or None
        None where the vector lies in a space of its own, which no attack here knows.
    n_known : int
        Sentences that the attacker learnt from, who knows the defence; 0 for one who does not.
    how : str
        How released tokens were read by one who knows the mechanism: "literal", as they are, since
        that brings back most; "token" or "sequence", the likeliest each or in their order. Empty
        elsewhere.
    """

    defended: Defended
    reading: Reading | None
    n_known: int
    how: str = ""


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
        key = (spec, text, seed)
        told, how = _READ.once(key, lambda: _likeliest(spec, text, found))
        n_known = len(_own_texts().known) if how else 0
        return Tried(found, answers.told_reading(_ATTACK, text, told), n_known, how)
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


_READ: Kept[tuple[DefenceSpec, str, int], tuple[str, str]] = Kept("_read_off", 8)
_FITTING = threading.Lock()
"""Held while a law is learnt: it takes all cores and some hundred MB."""


def _likeliest(spec: DefenceSpec, text: str, found: Defended) -> tuple[str, str]:
    """Return what is read of released tokens, and how; see `Tried.how`."""
    assert found.told is not None
    if not (tells_law(spec) and found.released is not None):
        return found.told, ""
    own, law = _own_texts(), _law(spec)
    read = likeliest_text(own, found, own.prior_beside(text), law)
    assert read is not None
    return read, law.reading_


@st.cache_resource(show_spinner="Counting how sentences use tokens", max_entries=1)
def _own_texts() -> OwnTexts:
    return OwnTexts.of(cache.encoder(answers.ENCODER), bundled_sentences(), _SEED)


_LEARNING = "Learning what this mechanism does to each token, once for a setting: some seconds"


@st.cache_resource(show_spinner=_LEARNING, max_entries=8)
def _law(spec: DefenceSpec) -> Law:
    """Return who knows what a setting does; it keeps nothing of what visitors type."""
    with _FITTING:
        return law_of(_own_texts(), spec, _SEED)


@st.cache_resource(show_spinner=False, max_entries=1)
def _known() -> Vectors | None:
    """Return the vectors of bundled sentences, if they ship for the encoder."""
    from core.projection.points import corpus_points
    from core.projection.shipped import CORPUS, N_POINTS, find_vectors

    points = corpus_points(CORPUS, N_POINTS)
    return find_vectors(points, answers.ENCODER.name, cache.encoder(answers.ENCODER).fingerprint)
