"""The visitor's sentence under a defence: its guarantee, and a live attack cached in the session.

The attacker knows the defence. Released tokens are decoded to the likeliest original tokens, by the
mechanism's distribution and the token statistics of bundled sentences; if the distribution is
unknown, the attacker takes them literally. A changed vector is first mapped back by a linear map,
which is learned from defended vectors of bundled sentences.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from leakscope.core.attacks.inversion.lifted import Lift
from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences.metric_dp.distances import has_d_chi_guarantee
from leakscope.core.defences.setting import entry_shown, first_of, setting_name, why_not_tried
from leakscope.core.defences.tried import (
    AttackerTexts,
    DefendedSentence,
    PosteriorAttack,
    defend_sentence,
    fit_inverse_map,
    fit_posterior_attack,
    has_known_distribution,
    likeliest_text,
)
from leakscope.core.protocols import Vectors
from leakscope.core.specs import DefenceSpec
from leakscope.dashboard import cache
from leakscope.dashboard.deniability.state import noise_seed
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.ui.guarantee import guarantees_of
from leakscope.dashboard.ui.session_results import SessionCache

_ATTACK = "probe_mlc"
_SEED = 0
"""Seed of the attacker's own draws, and of the order of the attacker's texts."""


@dataclass(frozen=True, eq=False)
class DefendedReading:
    """A defended sentence, and what a live attack recovers from it.

    Attributes
    ----------
    reading : Reading or None
        None if the defended vectors are in another space, which no attack here knows.
    n_known : int
        The number of defended sentences that the attacker trained on; 0 for none.
    how : str
        How released tokens were decoded: "literal" (unchanged, if that recovers most), "token" or
        "sequence" (the likeliest token or sequence). Empty for an attacker who does not know the
        mechanism's distribution.
    """

    defended: DefendedSentence
    reading: Reading | None
    n_known: int
    how: str = ""


_DEFENDED: SessionCache[tuple[DefenceSpec, str, int], DefendedSentence] = SessionCache(
    "_defended", 8
)


def attack_defended(spec: DefenceSpec, text: str) -> DefendedReading:
    """Apply a defence to a sentence, attack what is stored or released; return both results.

    Raises
    ------
    CoreError
        The defence does not fit, or the text cannot be encoded.
    """
    encoder, seed = cache.encoder(answers.ENCODER), noise_seed() % 2**32
    found = _DEFENDED.once((spec, text, seed), lambda: defend_sentence(encoder, spec, text, seed))
    if found.told is not None:
        key = (spec, text, seed)
        decoded, how = _DECODED.once(key, lambda: _decode_tokens(spec, text, found))
        n_known = len(_attacker_texts().known) if how else 0
        return DefendedReading(
            found, answers.reading_from_text(_ATTACK, text, decoded), n_known, how
        )
    entry = entry_shown(spec.name)
    known = None if entry.is_baseline else _bundled_vectors()
    if known is not None:
        back = _LIFTS.once((spec, seed), lambda: (fit_inverse_map(encoder, spec, known, seed),))[0]
        if back is not None:
            read = answers.uncached_reading(_ATTACK, text, back(found.vector))
            return DefendedReading(found, read, len(known))
    if not entry.keeps_space:
        return DefendedReading(found, None, 0)
    n_cut = encoder.dimension - found.vector.shape[1]  # zeros replace removed dimensions
    vector = np.pad(found.vector, ((0, 0), (0, n_cut)))
    return DefendedReading(found, answers.uncached_reading(_ATTACK, text, vector), 0)


_LIFTS: SessionCache[tuple[DefenceSpec, int], tuple[Lift | None]] = SessionCache("_lifts", 8)


_DECODED: SessionCache[tuple[DefenceSpec, str, int], tuple[str, str]] = SessionCache("_decoded", 8)
_FITTING = threading.Lock()
"""Held while a distribution is learned, which takes all cores and several hundred MB."""


def _decode_tokens(spec: DefenceSpec, text: str, found: DefendedSentence) -> tuple[str, str]:
    """Decode released tokens by the mechanism's distribution; return (text, method)."""
    assert found.told is not None
    if not (has_known_distribution(spec) and found.released is not None):
        return found.told, ""
    own, law = _attacker_texts(), _mechanism_law(spec)
    read = likeliest_text(own, found, own.prior_beside(text), law)
    assert read is not None
    return read, law.reading_


@st.cache_resource(show_spinner="Counting tokens in sentences", max_entries=1)
def _attacker_texts() -> AttackerTexts:
    """Return the bundled sentences that the attacker knows, with token statistics; cached."""
    return AttackerTexts.of(cache.encoder(answers.ENCODER), bundled_sentences(), _SEED)


_LEARNING = "Learning what this mechanism does to each token, once per setting; this takes seconds"


@st.cache_resource(show_spinner=_LEARNING, max_entries=8)
def _mechanism_law(spec: DefenceSpec) -> PosteriorAttack:
    """Fit how a setting's mechanism replaces each token, cached; uses no visitor text."""
    with _FITTING:
        return fit_posterior_attack(_attacker_texts(), spec, _SEED)


@st.cache_resource(show_spinner=False, max_entries=1)
def _bundled_vectors() -> Vectors | None:
    """Load the shipped vectors of the bundled sentences; None if none fit the encoder."""
    from leakscope.core.projection.points import corpus_points
    from leakscope.core.projection.shipped import CORPUS, N_POINTS, find_vectors

    points = corpus_points(CORPUS, N_POINTS)
    return find_vectors(points, answers.ENCODER.name, cache.encoder(answers.ENCODER).fingerprint)


if TYPE_CHECKING:
    from leakscope.core.defences.metric_dp.guarantee import Guarantees

_GUARANTEES: SessionCache[tuple[str, str], Guarantees] = SessionCache("_setting_guarantees", 8)


def setting_guarantees(spec: DefenceSpec, text: str) -> Guarantees | None:
    """Return the guarantee that a defence (or a chain's first stage) gives a text, or None.

    Raises
    ------
    CoreError
        The text holds no token.
    """
    first = first_of(spec)
    entry, settings = entry_shown(first.name), dict(first.settings)
    if not entry.guarantee or why_not_tried(first, ENCODER.name):
        return None
    if has_d_chi_guarantee(first.name):
        start = entry.strength[1].start if entry.strength else 0.0
        return guarantees_of(first.name, float(settings.get("eta", start)), text, ENCODER)
    from leakscope.core.defences.metric_dp.exponential_guarantee import (
        guarantees_of as guarantees_at,
    )

    key = (setting_name(first.name, settings), text)
    return _GUARANTEES.once(key, lambda: guarantees_at(cache.encoder(ENCODER), first, text))
