"""The formulas behind the page of names, and what its numbers do not say."""

from __future__ import annotations

import streamlit as st

from core.names.probing import KNOWLEDGE

__all__ = ["caveats", "how_it_is_computed"]


def how_it_is_computed() -> None:
    """Draw how the heat map and the probe come about."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "**Substitution** (Corò 2022, §5.2.3). $x_{a \\to b}$ is a sentence of $a$ in which "
            "the name $b$ stands instead, surname for surname and, before it, first name for first "
            "name. A cell is the share of the sentences $S_a$ whose answer $\\hat W$ holds every "
            "word of the surname of $b$:"
        )
        st.latex(
            r"M_{ab} = \frac{1}{|S_a|} \sum_{x \in S_a} "
            r"\big[\, W(b) \subseteq \hat W(\Phi(x_{a \to b})) \,\big]"
        )
        st.markdown(
            "The interval of a cell is Wilson's. Names are found as whole words; a capital has to "
            "be a capital.\n\n"
            "**The probe** compares the vector with texts that the attacker writes with each "
            "candidate $c$ and takes the greatest cosine. By what else is known:\n\n"
            + "\n".join(f"- *{k.title}*: {k.assumes}." for k in KNOWLEDGE.values())
            + "\n\nTies count as lost."
        )


def caveats(measured: str = "") -> None:
    """Draw what the page does not say; `measured` adds what holds for the news."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- A surname that is also an everyday word, or stands in the sentence for another "
            "reason, counts as read all the same.\n"
            "- The first name is exchanged but not asked for.\n"
            "- A handful of sentences gives wide intervals: compare cells by them, not by their "
            "values.\n"
            + measured
            + "- A name that these attacks miss is not thereby safe: an attacker who is after it "
            "can train for it, or probe."
        )
