"""The methods and caveats of the audit page."""

from __future__ import annotations

import streamlit as st

from leakscope.core.audit.identification import SAME


def how_it_is_computed() -> None:
    """Draw how the encoder is identified, and how F1 is measured or estimated."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "**Encoder.** With texts, it is the encoder whose vectors agree with yours "
            f"(median cosine of at least {SAME:g}). Without texts, the distribution of the "
            "vectors identifies it. The score tells how much better the mean $\\mu$ and the "
            "covariance $\\Sigma$ of a known encoder explain them than an isotropic distribution "
            "does:"
        )
        st.latex(
            r"\frac{1}{2d}\left[d\log s^2 - \log\det\Sigma + d - "
            r"\overline{(x-\mu)^\top\Sigma^{-1}(x-\mu)}\,\right]"
        )
        st.markdown(
            "The score must exceed that of random rotations of your vectors. Otherwise the encoder "
            "is “unknown”, and nothing is attacked.\n\n"
            "**What leaks, measured.** The strongest shipped attack for the encoder recovers "
            "words from each sampled vector. F1, recall and precision compare them with the words "
            "of the text. The 95 % CI comes from a bootstrap over distinct texts. *Guessing* "
            "answers the same common words for every vector.\n\n"
            "**What leaks, estimated.** Without texts, a regression line estimates the F1 from the "
            "F1 that the attack predicts for its own answers. The line was fitted on corpora of "
            "several genres. The interval is the prediction interval for a new corpus."
        )


def caveats() -> None:
    """Draw the limitations of an audit."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- What this attack misses is not proven safe: another attack, or more training texts, "
            "may recover more.\n"
            "- Words outside the attack's vocabulary were not tested. They include many names and "
            "most numbers.\n"
            "- Only a sample was attacked. A rare row that leaks everything may not be in it.\n"
            "- If the vectors were changed after encoding, the attack does not know it. Name the "
            "defence under “More settings”, or with `audit --defence`."
        )
