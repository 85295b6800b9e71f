"""The formulas behind the page of attributes, and what its numbers do not say."""

from __future__ import annotations

import streamlit as st

from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from dashboard.formulas import draw_entries

__all__ = ["caveats", "how_it_is_computed"]


def how_it_is_computed() -> None:
    """Draw how accuracy, topic and rest come about."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "**Attribute inference** (Song & Raghunathan 2020, §4 and Alg. 3). The attacker has "
            "$N_s$ texts of each of $|S|$ labels with their vectors $\\Phi(x)$, learns a "
            "classifier from them, and asks it of other vectors. Labelled texts and targets are "
            "parted by what they come from, and a target that nearly repeats a labelled text is "
            "left out. Intervals are of 95 %, by a bootstrap of documents or, without them, of "
            "distinct texts. "
            "*Guessing* answers the same labels for every text; where *labels are shuffled*, "
            "there is nothing to learn, and no more than guessing may come of it."
        )
        draw_entries(ATTRIBUTE_ATTACKS.values())
        st.markdown(
            "**Topic and rest.** A vector is parted in what the content words of its text predict "
            "by ridge regression, $\\hat x$, and the rest. No label is looked at. The probe is "
            "linear, so that what each part adds to the log-odds of a label over the mean of all "
            "labels is told exactly:"
        )
        st.latex(
            r"(w_s - \bar w)^\top (\hat x - \mu) + (w_s - \bar w)^\top (x - \hat x)"
            r" + (b_s - \bar b)"
        )


def caveats() -> None:
    """Draw what the page does not say."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- The probabilities are shared out among the labels that the probe knows. The true "
            "author may be none of them, and then somebody is named all the same.\n"
            "- Topic is what single content words tell by a linear map: a lower bound. The rest "
            "holds how things are said, and also what that map misses.\n"
            "- Texts of one work share people and places. A score with labelled texts of the same "
            "works says less about an author than one with other works.\n"
            "- The encoder reads a few hundred word pieces at most; of a longer text the rest "
            "counts for nothing.\n"
            "- A label that this probe misses is not thereby safe: it learned from few texts."
        )
