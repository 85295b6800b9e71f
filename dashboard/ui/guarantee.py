"""The privacy guarantee of a mechanism at η, for pages that show an η or ε."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from leakscope.core.findings.prose import plain
from leakscope.core.specs import EncoderSpec
from leakscope.dashboard import cache
from leakscope.dashboard.ui.session_results import SessionCache

if TYPE_CHECKING:
    from leakscope.core.defences.metric_dp.distances import TextDistances, TokenDistances
    from leakscope.core.defences.metric_dp.guarantee import Guarantees

_DISTANCES: SessionCache[tuple[str, str, EncoderSpec], TokenDistances] = SessionCache(
    "_distances", 8
)


def guarantees_of(mechanism: str, eta: float, text: str, on: EncoderSpec) -> Guarantees:
    """Compute a mechanism's guarantees at η for a text; the text's distances are cached.

    Raises
    ------
    CoreError
        The encoder gives no token vectors, or the text has no token.
    """
    from leakscope.core.defences.metric_dp.distances import TokenDistances, distances_of
    from leakscope.core.defences.registry import DEFENCES

    acts_on = DEFENCES[mechanism].acts_on
    if acts_on == "vector":
        return _text_distances(on).guarantees(eta)
    distances = _DISTANCES.get(("tokens", text, on))
    if distances is None:
        found = distances_of(cache.encoder(on), mechanism, text)
        assert isinstance(found, TokenDistances)
        distances = _DISTANCES.add(("tokens", text, on), found)
    return distances.guarantees(eta)


@st.cache_resource(show_spinner=False, max_entries=4)
def _text_distances(on: EncoderSpec) -> TextDistances:
    """Measure the distances between bundled texts' vectors; no user input is involved."""
    from leakscope.core.defences.metric_dp.distances import bundled_distances

    return bundled_distances(cache.encoder(on))


def show_guarantees(guarantees: Guarantees, slot: Any = st, *, lead: str = "") -> None:
    """Draw the odds of a guarantee and what it does not cover; explanations on hover.

    Parameters
    ----------
    lead : str
        The heading instead of “What this η guarantees.”.
    """
    slot.markdown(
        f"**{lead or f'What this {guarantees.symbol} guarantees.'}** {plain(guarantees.in_full)}",
        help="\n\n".join(plain(sentence) for sentence in guarantees.sentences),
    )
