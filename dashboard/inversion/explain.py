"""The formulas and caveats of the inversion page."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS


def how_it_is_computed(chosen: Sequence[str]) -> None:
    """Draw the formulas of the scores and of the chosen attacks."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "$W(x)$ is the set of different words of the sentence $x$ in the attack's vocabulary; "
            r"$\hat W$ is the set of its answers. Both leave out stop words unless they count. "
            "Word order and repetitions do not matter."
        )
        st.latex(
            r"P = \frac{|W(x) \cap \hat W|}{|\hat W|} \qquad R = \frac{|W(x) \cap \hat W|}{|W(x)|}"
            r"\qquad F_1 = \frac{2PR}{P+R}"
        )
        st.caption("Corò (2022), Eq. 4.6, times 100. An empty answer has precision 0.")
        st.markdown(
            "**Guessing** answers the same most frequent words for every sentence: as many as "
            "maximise the expected F1. Whatever an attack scores above it leaked from the vector."
        )
        for name in chosen:
            entry = INVERSION_ATTACKS[name]
            reference = entry.reference[:1].upper() + entry.reference[1:]
            st.markdown(f"**{entry.title}** ({reference}). {entry.summary}")
            if entry.formula:
                st.latex(entry.formula)
            st.caption(f"Score of a word: {entry.score}. The attack {entry.cost}.")


def caveats() -> None:
    """Draw the limitations of the inversion page's numbers."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- One sentence is an example, not a measurement. The overview and the command line "
            "give averages with intervals.\n"
            "- Most of these attacks recover words without their order. Reconstruction writes a "
            "whole sentence, which may only resemble yours.\n"
            "- Other attackers may recover more: a low score does not prove safety.\n"
            "- Words outside an attack's vocabulary are not scored. An attack with a list of "
            "frequent words may miss a rare name that an attack with a list of names recovers.\n"
            "- The encoder is all-MiniLM-L6-v2. Other encoders leak more or less."
        )
