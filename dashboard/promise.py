"""What an η or ε promises, as it stands beside every one that a page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from core.specs import EncoderSpec
from dashboard import cache
from dashboard.calm import plain
from dashboard.kept import Kept

if TYPE_CHECKING:
    from core.defences.metric_dp.distances import TextDistances, TokenDistances
    from core.defences.metric_dp.promise import Promises

__all__ = ["is_hardly_any", "promises_of", "show_odds", "show_promises"]

_SEEN: Kept[tuple[str, str, EncoderSpec], TokenDistances] = Kept("_distances", 8)


def promises_of(mechanism: str, eta: float, text: str, on: EncoderSpec) -> Promises:
    """Return what a mechanism promises at η; distances in a text stay with the session.

    Raises
    ------
    CoreError
        The encoder is closed, or the text holds no token.
    """
    from core.defences.metric_dp.distances import TokenDistances
    from core.defences.metric_dp.promised import distances_of
    from core.defences.registry import DEFENCES

    acts_on = DEFENCES[mechanism].acts_on
    if acts_on == "vector":
        return _text_distances(on).promises(eta)
    kept = _SEEN.get(("tokens", text, on))
    if kept is None:
        found = distances_of(cache.encoder(on), mechanism, text)
        assert isinstance(found, TokenDistances)
        kept = _SEEN.add(("tokens", text, on), found)
    return kept.promises(eta)


@st.cache_resource(show_spinner=False, max_entries=4)
def _text_distances(on: EncoderSpec) -> TextDistances:
    """Measure bundled texts: nothing that was typed is among them."""
    from core.defences.metric_dp.promised import bundled_distances

    return bundled_distances(cache.encoder(on))


def is_hardly_any(promises: Promises) -> bool:
    """Return whether even the best that is promised, for nearest neighbours, is almost nothing."""
    from core.defences.metric_dp.promise import HARDLY

    return promises.nearest.epsilon > HARDLY


def show_odds(promises: Promises, slot: Any = st) -> None:
    """Draw the odds alone, where another place of the page says what they are worth."""
    slot.markdown(
        f"Odds against which a token can be denied: up to **{plain(promises.nearest.odds)}**. "
        f"{plain(promises.others)}",
        help="\n\n".join(plain(sentence) for sentence in promises.sentences),
    )


def show_promises(promises: Promises, slot: Any = st, *, lead: str = "") -> None:
    """Draw what is promised: all odds and what is not promised in sight, the comparison on hover.

    Parameters
    ----------
    lead : str
        Stands before it, instead of “What this η promises.”.
    """
    denied = "A token that may have changed can be denied against these odds, no better."
    told = [promises.headline, promises.others, *[denied] * (not promises.is_of_texts)]
    told += [promises.also] if promises.also else []
    slot.markdown(
        f"**{lead or f'What this {promises.symbol} promises.'}** {plain(' '.join(told))}",
        help="\n\n".join(plain(sentence) for sentence in promises.sentences),
    )
