"""What a setting promises, as it stands beside it: odds, and where there are none, words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from core.defences.metric_dp.promised import EXAMPLE, is_promising
from core.specs import DefenceSpec
from core.studies.tradeoff_setting import (
    NO_PROMISE,
    entry_shown,
    first_of,
    promise_said,
    read_setting,
    setting_name,
    why_not_tried,
)
from dashboard import cache
from dashboard.inversion.answers import ENCODER
from dashboard.kept import Kept
from dashboard.promise import is_hardly_any, promises_of

if TYPE_CHECKING:
    from core.defences.metric_dp.promise import Promises

__all__ = ["HARDLY_ANY", "odds_promised", "odds_sentence", "promised"]

HARDLY_ANY = " (almost no promise)"
"""Stands behind odds that promise almost nothing."""

_SEEN: Kept[tuple[str, str], Promises] = Kept("_promises_of_settings", 8)


def promised(spec: DefenceSpec, text: str = EXAMPLE) -> Promises | None:
    """Return what a defence, or the first of a chain, promises for a text; None for nothing.

    Raises
    ------
    CoreError
        The text holds no token.
    """
    first = first_of(spec)
    if not entry_shown(first.name).guarantee or why_not_tried(first, ENCODER.name):
        return None
    if is_promising(first.name):
        settings = dict(first.settings)
        return promises_of(
            first.name, float(settings.get("eta", _start(first.name))), text, ENCODER
        )
    if text == EXAMPLE:
        return _of_example(setting_name(first.name, dict(first.settings)))
    key = (setting_name(first.name, dict(first.settings)), text)
    return _SEEN.once(key, lambda: _measured(first, text))


def _start(name: str) -> float:
    strength = entry_shown(name).strength
    return strength[1].start if strength else 0.0


@st.cache_resource(show_spinner=False, max_entries=64)
def _of_example(name: str) -> Promises:
    """Measure what a setting promises for the example: nothing that was typed."""
    return _measured(read_setting(name), EXAMPLE)


def _measured(spec: DefenceSpec, text: str) -> Promises:
    from core.defences.metric_dp.choice_promise import promises_of as promises_at

    return promises_at(cache.encoder(ENCODER), spec, text)


def odds_promised(spec: DefenceSpec, releases: int = 1) -> str:
    """Return the odds of a setting, the best promise first; else what is promised, in words.

    Parameters
    ----------
    releases : int
        Of the same text, over which the odds are composed.
    """
    said = promise_said(spec)
    if said == NO_PROMISE:
        return said
    found = promised(spec)
    if found is None:
        return said or "none"
    is_of_sets = first_of(spec).name == "custext"
    found = found.after(releases)
    return f"{found.odds_in_turn}{'; the first within a set that shows' * is_of_sets}"


def odds_sentence(mechanism: str, etas: Sequence[float], releases: int = 1) -> str:
    """Return what the least and the greatest η of a mechanism promise, in a sentence; or nothing.

    That is for a token of the example and its nearest neighbour, which is the best promise there
    is, and for the whole example; infinite η, which are no noise, are left out. Composed over
    several releases of the same text where there are any.
    """
    ends = sorted({eta for eta in etas if math.isfinite(eta)})
    if not ends:
        return ""
    told = []
    for eta in dict.fromkeys((ends[0], ends[-1])):
        found = promised(DefenceSpec.of(mechanism, {"eta": eta}))
        if found is None:
            return ""
        found = found.after(releases)
        worth = HARDLY_ANY if is_hardly_any(found) else ""
        whole = f", for a whole sentence {found.whole.odds}," if found.whole else ""
        told.append(f"up to {found.nearest.odds}{whole} at η {eta:g}{worth}")
    times = f", after {releases} releases of a text," if releases > 1 else ""
    return f"{entry_shown(mechanism).title}{times} promises odds of {' and '.join(told)}."
