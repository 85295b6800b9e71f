"""The formulas behind the page of memorisation, and what its numbers do not say."""

from __future__ import annotations

import streamlit as st

from core.attacks.membership.memorisation.registry import MEMORISATION_ATTACKS
from dashboard.formulas import draw_entries

__all__ = ["caveats", "how_it_is_computed"]


def how_it_is_computed() -> None:
    """Draw how exposure, the rankings and the audit come about."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "A canary $s[r]$ has a secret $r$ out of a set $\\mathcal R$. The model $f$ gives each "
            "filling a log-perplexity $P$, and its rank is its place among all of them. A tenth "
            "of the sentences, 200 at most, is held out. What is compared with is drawn before "
            "the training, and so are 50 controls: canaries of the same format that are planted "
            "nowhere. Their rank is uniform, so that their exposure is $\\log_2 e = 1.44$ bits on "
            "average for a large $\\mathcal R$, and one in twenty exceeds $\\log_2 20 = 4.32$."
        )
        draw_entries(MEMORISATION_ATTACKS.values())


def caveats() -> None:
    """Draw what the page does not say."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- The models are small and trained from nothing. What a large one keeps of its texts "
            "is another question; the measure is the same.\n"
            "- A canary that is not kept does not show that nothing is: a text may be rarer, "
            "longer, or repeated more often.\n"
            "- Where there are too many secrets to rank, the exposure follows from a law that was "
            "fitted to a sample. Whether it holds in its tail, the sample cannot say.\n"
            "- Exposure needs the probabilities of the model. Who sees its texts alone has "
            "sampling, which brings out less.\n"
            "- An audit bounds ε from below. A low bound is no promise, and promises are the "
            "accountant's."
        )
