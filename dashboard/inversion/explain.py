"""The formulas behind the inversion page, and what its numbers do not say."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS

__all__ = ["caveats", "how_it_is_computed"]


def how_it_is_computed(chosen: Sequence[str]) -> None:
    """Draw the formulas of the scores and of the chosen attacks."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "$W(x)$ is the set of different words of the sentence $x$ that the attack can answer, "
            r"$\hat W$ the set that it answered; stop words are left out unless they count. "
            "The order and the number of times a word occurs do not matter."
        )
        st.latex(
            r"P = \frac{|W(x) \cap \hat W|}{|\hat W|} \qquad R = \frac{|W(x) \cap \hat W|}{|W(x)|}"
            r"\qquad F_1 = \frac{2PR}{P+R}"
        )
        st.caption("Corò (2022), Eq. 4.6; times 100. An empty answer has precision 0.")
        st.markdown(
            "**Guessing** answers the same most frequent words for every sentence: as many as "
            "maximise the expected F1. What an attack has above it, the vector gave away."
        )
        for name in chosen:
            entry = INVERSION_ATTACKS[name]
            reference = entry.reference[:1].upper() + entry.reference[1:]
            st.markdown(f"**{entry.title}** ({reference}). {entry.summary}")
            if entry.formula:
                st.latex(entry.formula)
            st.caption(f"Score of a word: {entry.score}. The attack {entry.cost}.")


def caveats() -> None:
    """Draw what the numbers of the page do not say."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- One sentence is an example, not a measurement: the overview and the command line "
            "give averages with intervals.\n"
            "- Most of these attacks read words and not their order; the one that writes a whole "
            "sentence may write another that only resembles yours. Other attackers may read more; "
            "a low score is no proof of safety.\n"
            "- Words outside an attack's vocabulary are not scored. A rare name can be out "
            "of reach for an attack that lists frequent words, and in reach for one that tries "
            "names.\n"
            "- The encoder is all-MiniLM-L6-v2. Other encoders leak more or less."
        )
