"""The η that three rules choose, with its guarantee, cost and leakage."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from leakscope.core.defences.deniability.eta_choice import (
    MECHANISM,
    EtaChoice,
    choose_by_corpus,
    choose_by_tokens,
)
from leakscope.core.defences.deniability.vocabulary import VocabularyDeniability
from leakscope.core.findings.deniability import describe_scales, recommended_eta
from leakscope.core.specs import EncoderSpec
from leakscope.core.studies.tradeoff import summary
from leakscope.dashboard import cache
from leakscope.dashboard.deniability import state
from leakscope.dashboard.deniability.own_text import OWN, upload_token_counts
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.ui.finding import show_answer, show_numbers
from leakscope.dashboard.ui.guarantee import guarantees_of

_CORPORA = {"News (Lee)": "lee", "Wikipedia extract": "wikipedia"}


def eta_choice_card(
    found: VocabularyDeniability, on: EncoderSpec, steps: Sequence[float], text: str
) -> None:
    """Draw the η recommended for real text, and those of two stricter rules in an expander."""
    measured = measured_tradeoff(on)

    def draw(key: str, choice: EtaChoice, rule: str, effect: str, why: str = "") -> None:
        """Draw a recommended η: its answer, a button that sets the slider, and its numbers."""
        at = None if choice.eta is None else guarantees_of(MECHANISM, choice.eta, text, on)
        finding = recommended_eta(choice, rule, effect, guarantees=at, measured=measured, why=why)
        show_answer(st, finding, is_title=False)
        if choice.eta is not None:
            st.button(
                f"Try η = {choice.eta:g} on your sentence",
                key=f"use-{key}",
                icon=":material/straighten:",
                help="Sets the slider to this η",
                on_click=state.set_eta,
                args=(choice.eta, steps),
            )
        show_numbers(st, finding, f"eta-{key}")

    left, right = st.columns((2, 1), gap="large")
    with right:
        recovered = st.slider(
            "Tokens that may stay unchanged",
            state.RECOVERED[0],
            state.RECOVERED[-1],
            format="%d %%",
            key=state.RECOVERED_KEY,
            help="The average case: over all tokens of real text, so frequent tokens count more",
        )
        corpus = st.selectbox(
            "Text",
            [*_CORPORA, OWN],
            key="corpus",
            help="Bundled texts or your own file. The more similar the text is to what you will "
            "release, the better the η fits",
        )
        counts = (
            upload_token_counts(on) if corpus == OWN else cache.token_counts(_CORPORA[corpus], on)
        )
        if counts:
            st.caption(f"{sum(counts.values()):,} tokens counted.")
    if counts:
        chosen = choose_by_corpus(found, counts, recovered=recovered / 100)
        why = (
            "**This is no recommendation**: of the η tried, it is the one with the least noise. "
            "The share is an average over the whole text: a rare token, such as a name, may stay "
            "unchanged more often. The rules below cover rare tokens."
        )
        with left:
            effect = f"leaves at most {recovered} % of the tokens of real text unchanged"
            draw("corpus", chosen, "the rule for real text", effect, why)
    with st.expander("Two other rules, for every token of the vocabulary", icon=":material/rule:"):
        by_worst, by_most = st.columns(2, gap="medium")
        with by_worst:
            changed = st.slider(
                "Every token changes in at least",
                5,
                99,
                50,
                5,
                format="%d%%",
                key="worst-changed",
                help="The strictest rule: it applies to each of the encoder's tokens",
            )
            chosen = choose_by_tokens(found, changed=changed / 100)
            effect = f"changes every token in at least {changed} % of draws"
            draw("worst", chosen, "the rule for the worst token", effect)
        with by_most:
            share = st.slider(
                "Share of tokens that change in half of the cases",
                50,
                99,
                95,
                1,
                format="%d%%",
                key="most-share",
                help="A few tokens far from all others determine the strictest rule; this rule "
                "leaves them out",
            )
            chosen = choose_by_tokens(found, changed=0.5, share=share / 100)
            effect = f"changes {share} % of all tokens in at least half of the draws"
            draw("most", chosen, "the rule for most tokens", effect)
        st.caption(describe_scales(measured, MECHANISM))


def measured_tradeoff(on: EncoderSpec) -> summary.Tradeoff | None:
    """Return the trade-off study's results for the bundled encoder; None for other encoders."""
    return summary.shipped_tradeoff() if on == answers.ENCODER else None
