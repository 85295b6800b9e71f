"""On what the figure of trade-offs rests, and what it does not say."""

from __future__ import annotations

import streamlit as st

from core.defences.registry import DEFENCES
from core.studies.tradeoff_summary import Tradeoff

__all__ = ["caveats", "how_it_is_computed"]


def how_it_is_computed(found: Tradeoff) -> None:
    """Draw on what the figure rests."""
    facts, base = found.facts, found.undefended
    tests = next(iter(base.utility.values()))
    with st.expander("How this was measured", icon=":material/function:"):
        st.markdown(
            f"- **Useful**: the encoder stays as it is. A linear (ridge) classifier is trained on "
            f"the protected vectors of {facts['n_train']:,} texts and tested on "
            f"{facts['n_test']:,} others, a random subset of each task, under "
            f"{tests.n_seeds} seeds. STS-b: Spearman's correlation of the cosine with human "
            f"scores on {facts['n_test']:,} pairs.\n"
            f"- **Leaks**: the probe-started classifier, trained anew *on protected vectors* of "
            f"{facts['n_auxiliary']:,} sentences, attacks {facts['n_targets']:,} others. It knows "
            "the defence, and the encoder. With so few sentences it reads less than the attacks "
            "of the other pages; between defences the comparison is fair.\n"
            "- **Intervals**: 95 %, of the mean over seeds: the greater of the error within a seed "
            "and the spread between seeds.\n"
            "- Dotted: the most frequent class, and an attacker who never sees the vector."
        )
        for name in dict.fromkeys(point.defence for point in found.points):
            entry = DEFENCES[name]
            st.markdown(f"**{entry.title}** ({entry.reference}). {entry.summary} It {entry.cost}.")
            if entry.formula:
                st.latex(entry.formula)


def caveats() -> None:
    """Draw what the figure does not say."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- A point that leaks little *to this attacker* may leak more to a better one. Only "
            "the d_χ mechanisms promise anything, and what they promise is a ratio per distance, "
            "not a score.\n"
            "- The classifier is linear and the encoder frozen. An encoder that is trained on "
            "privatised text can win some usefulness back.\n"
            "- One encoder, English, short texts."
        )
