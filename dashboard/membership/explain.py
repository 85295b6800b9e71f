"""The formulas and caveats of the membership page."""

from __future__ import annotations

import streamlit as st

from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.rates import COARSE
from leakscope.core.attacks.membership.registry import SENTENCE_ATTACKS, WORD_ATTACKS
from leakscope.dashboard.ui.formulas import draw_entries


def how_it_is_computed() -> None:
    """Draw definitions of AUC, rates and intervals, and the formula of each attack."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "**AUC**: the share of pairs of a member and a non-member in which the member has the "
            "higher score. **True-positive and false-positive rate** at a threshold $\\tau$ of the "
            "score $s$:"
        )
        st.latex(
            r"\text{TPR} = P(s > \tau \mid \text{member}),\quad"
            r"\text{FPR} = P(s > \tau \mid \text{non-member})"
        )
        st.markdown(
            "The interval of a true-positive rate combines two exact intervals: one for the "
            "position of the threshold among the non-members, one for the share of members above "
            "it (Fay, Proschan & Brittain 2015). The results on models trained here were measured "
            "earlier: in their text, only the second interval counts. Samples of one user or "
            "document count by their effective number. The interval of the AUC is a bootstrap over "
            "users or documents. A false-positive rate is *not resolvable* if fewer than one "
            f"non-member is expected above the threshold. {COARSE} **Precision of a positive "
            "verdict**, if a share $\\pi$ are members (the prior):"
        )
        st.latex(
            r"P(\text{member} \mid \text{called}) = "
            r"\frac{\text{TPR}\,\pi}{\text{TPR}\,\pi + \text{FPR}\,(1 - \pi)}"
        )
        st.markdown(
            "Its interval combines the extreme ends of both rates' intervals, so it is wider than "
            "a 95 % CI. A single verdict uses a threshold from shadow models that take the "
            "target's place, so no one under attack influences it.\n\n**The attacks**"
        )
        for registry in (CLASSIFIER_ATTACKS, WORD_ATTACKS, SENTENCE_ATTACKS):
            draw_entries(registry.values())


def caveats() -> None:
    """Draw the limitations of the membership page."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- What these attacks miss is not proven safe: a stronger attack may find more. "
            "Without shadow models, only the weakest attacks can run.\n"
            "- A verdict is a statistical statement, never proof about one person. *What a verdict "
            "is worth* shows how many of those called members are members.\n"
            "- Members and non-members must be drawn in the same way. If they differ in anything "
            "else, such as the year, an attack finds that difference and it looks like a leak. "
            "Results by year are shown, but the page never opens with one.\n"
            "- The models were trained here on small collections. How much another model leaks "
            "depends on its training, above all on how often it saw each text."
        )
