"""The formulas behind the page of membership, and what its numbers do not say."""

from __future__ import annotations

import streamlit as st

from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.attacks.membership.rates import COARSE
from core.attacks.membership.sentences.registry import SENTENCE_ATTACKS
from core.attacks.membership.words.registry import WORD_ATTACKS
from dashboard.formulas import draw_entries

__all__ = ["caveats", "how_it_is_computed"]


def how_it_is_computed() -> None:
    """Draw what is counted, and each attack with its formula."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "**AUC**: the share of pairs of a member and a non-member in which the member has the "
            "higher score. **Found and falsely accused** at a threshold $\\tau$ of the score $s$:"
        )
        st.latex(
            r"\text{TPR} = P(s > \tau \mid \text{member}),\quad"
            r"\text{FPR} = P(s > \tau \mid \text{non-member})"
        )
        st.markdown(
            "The interval of a rate melds two exact ones: where among the non-members the "
            "threshold of that rate lies, and which share of the members lies above it (Fay, "
            "Proschan & Brittain 2015); users and documents count by their effective number. The "
            "interval of the AUC is a bootstrap of users or documents. A rate that is less than "
            f"one false accusation among the non-members is *not resolvable*. {COARSE} "
            "**What an accusation is worth** at a prior $\\pi$:"
        )
        st.latex(
            r"P(\text{member} \mid \text{called}) = "
            r"\frac{\text{TPR}\,\pi}{\text{TPR}\,\pi + \text{FPR}\,(1 - \pi)}"
        )
        st.markdown(
            "Its ends take the worse end of either rate. On a card the threshold is that of "
            "shadow models which play the target, so that nobody under attack takes part in it."
            "\n\n**The attacks**"
        )
        for registry in (CLASSIFIER_ATTACKS, WORD_ATTACKS, SENTENCE_ATTACKS):
            draw_entries(registry.values())


def caveats() -> None:
    """Draw what the page does not say."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- What these attacks do not find is not thereby safe: they are those that were tried, "
            "and a stronger one may find more. Without shadow models only the weakest can be run.\n"
            "- A verdict is a statement about many, never proof about one person: the line on "
            "what it is worth says how many of those accused would be members.\n"
            "- Members and non-members must be drawn alike. Where they differ in anything else, "
            "such as the year, an attack finds that difference and it looks like a leak: what "
            "is told apart by year is shown, and is never the page's first answer.\n"
            "- The models were trained here on small collections; how much another one gives away "
            "depends on its training, above all on how often it saw each text."
        )
