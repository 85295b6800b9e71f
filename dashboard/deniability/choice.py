"""Which η to take by a rule, and what it guarantees, costs and leaks; two more rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from core.defences.deniability.eta_choice import (
    MECHANISM,
    EtaChoice,
    choose_by_corpus,
    choose_by_tokens,
)
from core.defences.deniability.vocabulary import VocabularyDeniability
from core.defences.registry import DEFENCES
from core.specs import EncoderSpec
from core.studies.eta_outlook import outlook, scales_said
from core.studies.tradeoff_summary import Tradeoff
from dashboard import cache
from dashboard.deniability import state
from dashboard.deniability.own_text import OWN, own_counts
from dashboard.inversion import answers
from dashboard.promise import promises_of, show_odds

__all__ = ["eta_choice_card", "measured_tradeoff"]

_CORPORA = {"News (Lee)": "lee", "Wikipedia extract": "wikipedia"}


def eta_choice_card(
    found: VocabularyDeniability, on: EncoderSpec, steps: Sequence[float], text: str
) -> None:
    """Draw the η by the first rule with its reason, and the two other rules folded up below it."""
    measured = measured_tradeoff(on)
    beside = partial(_choice, steps=steps, text=text, on=on, measured=measured)
    left, right = st.columns((2, 1), gap="large")
    with right:
        recovered = st.slider(
            "Tokens that may come back",
            1,
            90,
            20,
            1,
            format="%d%%",
            key="corpus-recovered",
            help="The average case: over the tokens of real text, frequent ones counted often",
        )
        corpus = st.selectbox(
            "Text",
            [*_CORPORA, OWN],
            key="corpus",
            help="Bundled collections, or a file of your own: the more it is like what you will "
            "release, the better the η fits",
        )
        counts = own_counts(on) if corpus == OWN else cache.token_counts(_CORPORA[corpus], on)
        if counts:
            st.caption(f"{sum(counts.values()):,} tokens counted.")
    if counts:
        chosen = choose_by_corpus(found, counts, recovered=recovered / 100)
        with left:
            if chosen.eta is not None:
                st.subheader(f"η = {chosen.eta:g} by the rule for real text", anchor=False)
                st.markdown(
                    f"**Why.** It adds the least noise at which at most {recovered} % of the "
                    "tokens of real text come back. Real text is what an attacker gets, so tokens "
                    "count as often as they are used. A rare token may come back more often: the "
                    "rules below are for those."
                )
            beside("corpus", chosen)
    with st.expander("Two other rules, for every token of the vocabulary", icon=":material/rule:"):
        by_worst, by_most = st.columns(2, gap="medium")
        with by_worst:
            st.subheader("By the worst token", anchor=False)
            changed = st.slider(
                "Every token changed in at least",
                5,
                99,
                50,
                5,
                format="%d%%",
                key="worst-changed",
                help="The strictest rule: it holds for each of the encoder's tokens",
            )
            beside("worst", choose_by_tokens(found, changed=changed / 100))
        with by_most:
            st.subheader("By most tokens", anchor=False)
            share = st.slider(
                "Share of tokens changed in half of the cases",
                50,
                99,
                95,
                1,
                format="%d%%",
                key="most-share",
                help="A few tokens far from all others decide the strictest rule; "
                "this one leaves them out",
            )
            beside("most", choose_by_tokens(found, changed=0.5, share=share / 100))
    st.caption(_scales(measured))


def measured_tradeoff(on: EncoderSpec) -> Tradeoff | None:
    """Return what noise was measured to cost; None for encoders of which it is not known."""
    return cache.tradeoff(on) if on == answers.ENCODER else None


def _scales(measured: Tradeoff | None) -> str:
    if measured is not None:
        return scales_said(measured, MECHANISM)
    return (
        f"Every η here is for **{DEFENCES[MECHANISM].title}**, which returns tokens. The other "
        "mechanisms lie on other scales, and these rules say nothing of them. Usefulness and "
        "leakage under noise were measured for the bundled encoder alone: of this one they are "
        "not known."
    )


def _choice(
    key: str,
    chosen: EtaChoice,
    *,
    steps: Sequence[float],
    text: str,
    on: EncoderSpec,
    measured: Tradeoff | None,
) -> None:
    st.markdown(chosen.sentence)
    if chosen.eta is None:
        return
    st.button(
        f"Use η = {chosen.eta:g}",
        key=f"use-{key}",
        icon=":material/straighten:",
        help="Moves the slider there",
        on_click=partial(state.set_eta, chosen.eta, steps),
    )
    show_odds(promises_of(MECHANISM, chosen.eta, text, on))
    if measured is not None:
        st.markdown("\n\n".join(outlook(measured, MECHANISM, chosen.eta).sentences))
