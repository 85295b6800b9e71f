"""The formulas and caveats of the attributes page."""

from __future__ import annotations

import streamlit as st

from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.dashboard.ui.formulas import draw_entries


def how_it_is_computed() -> None:
    """Draw how accuracy is measured, and how evidence is divided into topic and rest."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "**Attribute inference** (Song & Raghunathan 2020, §4 and Alg. 3). The attacker has "
            "$N_s$ texts of each of $|S|$ labels with their vectors $\\Phi(x)$, trains a "
            "classifier on them, and applies it to other vectors. Labelled texts and targets are "
            "split by source, and a target that nearly repeats a labelled text is left out. "
            "Intervals are 95 % CIs from a bootstrap over documents or, without documents, over "
            "distinct texts. *Guessing* answers the same labels for every text. With *shuffled "
            "labels* there is nothing to learn, so the accuracy should not exceed guessing."
        )
        draw_entries(ATTRIBUTE_ATTACKS.values())
        st.markdown(
            "**Topic and rest.** Ridge regression predicts $\\hat x$, the topic, from the content "
            "words of the text; what remains of the vector is the rest. Labels are not used. The "
            "probe is linear, so the contribution of each part to the log-odds of a label, "
            "relative to the mean over all labels, is exact:"
        )
        st.latex(
            r"(w_s - \bar w)^\top (\hat x - \mu) + (w_s - \bar w)^\top (x - \hat x)"
            r" + (b_s - \bar b)"
        )


def caveats() -> None:
    """Draw the limitations of the attributes page."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- The probabilities are divided among the labels that the probe knows. If the true "
            "author is not one of them, the probe still names somebody.\n"
            "- Topic is what a linear map predicts from single content words: a lower bound. The "
            "rest contains style, and also the topic that this map misses.\n"
            "- Texts of one work share people and places. Accuracy with labelled texts from the "
            "same works says less about an author than accuracy with other works.\n"
            "- The encoder reads at most a few hundred word pieces; it ignores the remainder of a "
            "longer text.\n"
            "- A label that this probe misses is not proven safe: the probe learned from few "
            "texts.\n"
            "- Other attributes, such as gender or employer, may leak more or less."
        )
