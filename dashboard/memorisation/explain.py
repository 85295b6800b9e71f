"""The formulas and caveats of the memorisation page."""

from __future__ import annotations

import streamlit as st

from leakscope.core.attacks.membership.memorisation.registry import MEMORISATION_ATTACKS
from leakscope.dashboard.ui.formulas import draw_entries


def how_it_is_computed() -> None:
    """Draw how exposure is computed, and the formula of each attack."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "A canary $s[r]$ has a secret $r$ from a set $\\mathcal R$. The model $f$ gives the "
            "canary a log-perplexity $P$ with each possible secret, and the rank of $r$ is its "
            "place among all of them. A tenth of the sentences, at most 200, is held out. The "
            "secrets to compare with are drawn before training. So are 50 controls: canaries of "
            "the same format that are never planted. The rank of a control is uniform. For a "
            "large $\\mathcal R$, its exposure is therefore $\\log_2 e = 1.44$ bits on average, "
            "and one in twenty exceeds $\\log_2 20 = 4.32$."
        )
        draw_entries(MEMORISATION_ATTACKS.values())


def caveats() -> None:
    """Draw the limitations of the memorisation page."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- The models are small and trained from scratch. Large models were not measured.\n"
            "- If the model does not memorise this canary, it may still memorise other texts: "
            "rarer ones, longer ones, or ones that are repeated more often.\n"
            "- If there are too many secrets to rank, the exposure comes from a distribution "
            "fitted to a sample. The sample cannot show whether the fit holds in the tail.\n"
            "- Exposure needs the model's probabilities. An attacker who sees only the model's "
            "texts has to sample, which reveals less.\n"
            "- An audit gives a lower bound of ε. A low bound is not a guarantee; only the "
            "accountant's ε is."
        )
