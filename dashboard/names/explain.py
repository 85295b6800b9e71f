"""The formulas and caveats of the names page."""

from __future__ import annotations

import streamlit as st

from leakscope.core.names.probing import KNOWLEDGE


def how_it_is_computed() -> None:
    """Draw the formulas of the heat map and of the probe."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "**Substitution** (Corò 2022, §5.2.3). $x_{a \\to b}$ is a sentence about $a$ with the "
            "name replaced by $b$: surname for surname and, directly before it, first name for "
            "first name. A cell is the share of the sentences $S_a$ for which the answer "
            "$\\hat W$ contains every word of the surname of $b$:"
        )
        st.latex(
            r"M_{ab} = \frac{1}{|S_a|} \sum_{x \in S_a} "
            r"\big[\, W(b) \subseteq \hat W(\Phi(x_{a \to b})) \,\big]"
        )
        st.markdown(
            "Cells have Wilson intervals. Names are matched as whole words; a capital letter of a "
            "name must be a capital in the text.\n\n"
            "**The probe** encodes a text with each candidate $c$ and picks the candidate whose "
            "text has the greatest cosine with the vector. The text depends on what else the "
            "attacker knows:\n\n"
            + "\n".join(f"- *{k.title}*. {k.assumes}" for k in KNOWLEDGE.values())
            + "\n\nA tie counts as a miss."
        )


def caveats(measured: str = "") -> None:
    """Draw the limitations of the names page; `measured` adds one of the study."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- A surname counts as recovered even if it is an everyday word, or is in the sentence "
            "for another reason.\n"
            "- First names are replaced too, but their recovery is not scored.\n"
            "- Few sentences give wide intervals: compare the intervals of two cells, not their "
            "values.\n"
            + (f"- {measured}\n" if measured else "")
            + "- A name that these attacks miss is not proven safe: an attacker who looks for it "
            "can train for it, or probe."
        )
