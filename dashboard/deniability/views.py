"""The cards of the deniability page: sentence, tokens, curves and vocabulary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import streamlit as st

from leakscope.core.defences.deniability.eta_choice import MECHANISM
from leakscope.core.defences.deniability.geometry import Geometry
from leakscope.core.defences.deniability.sentence import DeniableSentence, TokenDeniability
from leakscope.core.defences.deniability.vocabulary import VocabularyDeniability
from leakscope.core.errors import CoreError
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.deniability import (
    all_outcomes,
    distances_and_noise,
    near_words,
    privatised_sentence,
)
from leakscope.core.findings.finding import Finding
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.specs import EncoderSpec
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.deniability import replacements
from leakscope.dashboard import cache
from leakscope.dashboard.deniability import state
from leakscope.dashboard.deniability.choice import measured_tradeoff
from leakscope.dashboard.deniability.eta import ONE_DRAW
from leakscope.dashboard.inversion.pinned import is_typed
from leakscope.dashboard.ui import encoder_choice, markup
from leakscope.dashboard.ui.downloads import save_csv, save_json
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_figure, show_finding
from leakscope.dashboard.ui.guarantee import guarantees_of
from leakscope.dashboard.ui.leakage import deniability_command
from leakscope.dashboard.ui.state import text


def deniable_sentence(text: str, encoder: WhiteBoxEncoder, on: EncoderSpec) -> DeniableSentence:
    """Return the deniability statistics of a sentence, cached in the session."""
    cached = state.deniable_of((text, on))
    if cached is not None:
        return cached
    engine = cache.deniability_engine(on)
    return state.remember_deniable((text, on), DeniableSentence(encoder, engine, text))


def finding(
    sentence: DeniableSentence,
    eta: float,
    steps: Sequence[float],
    on: EncoderSpec,
    released: Sequence[str],
    *,
    with_typed: bool = True,
) -> Finding:
    """Return the finding on how much of the sentence stays unchanged at η.

    Parameters
    ----------
    released : sequence of str
        One draw of the privatised sentence, token by token.
    with_typed : bool
        Whether the finding may contain typed text.
    """
    typed, statistics = text(), cache.token_statistics(on)
    is_shown = with_typed or not is_typed(typed)
    is_named = with_typed or not encoder_choice.is_typed(on)
    command = deniability_command(
        typed if is_shown else "YOUR SENTENCE", eta, on.name if is_named else "YOUR ENCODER"
    )
    return privatised_sentence(
        sentence,
        eta,
        steps,
        promises=guarantees_of(MECHANISM, eta, typed, on),
        statistics=statistics and statistics[0],
        measured=measured_tradeoff(on),
        released=released if is_shown else None,
        encoder=on.name if is_named and encoder_choice.address().query() else "",
        commands=(command,)
        if encoder_choice.is_typed(on)
        else (command, command_of("deniability")),
    )


def privatised_card(sentence: DeniableSentence, released: Sequence[str]) -> None:
    """Draw one draw of the privatised sentence, with the original beside it on request."""
    st.html(markup.label("Released, one draw"))
    is_beside = st.toggle(
        "Before and after side by side",
        key=state.BESIDE_KEY,
        persist_state="session",
        help="Shows the original sentence beside the released one",
    )
    if is_beside:
        before, after = st.columns(2, gap="medium")
        before.html(markup.label("Before") + markup.plain_paragraph(text()))
        after.html(markup.label("After") + markup.privatised_sentence(sentence.tokens, released))
    else:
        st.html(markup.privatised_sentence(sentence.tokens, released))
    st.html(markup.token_legend())
    st.caption(ONE_DRAW)
    n_unknown = sentence.tokens.count("[UNK]")
    if n_unknown:
        what = "1 token is" if n_unknown == 1 else f"{n_unknown} tokens are"
        st.caption(
            f"{what} unknown to the encoder ([UNK]). It encodes only that a token is there, and "
            "only this is what the noise hides."
        )


def token_table(found: Sequence[TokenDeniability], n_draws: int) -> None:
    """Draw the table of each token's statistics and its most frequent replacements."""
    rows = [
        {
            "token": token.token,
            "N_w": token.n_w,
            "S_w": token.s_w,
            "half at η": round(token.eta_star_median, 1),
            "turns into": ", ".join(f"{other} ({n})" for other, n in token.replacements),
        }
        for token in found
    ]
    columns = st.column_config
    st.dataframe(
        rows,
        key="tokens",
        hide_index=True,
        column_config={
            "token": columns.TextColumn(
                "Token", help="As the encoder splits the text; ## continues a word", pinned=True
            ),
            "N_w": columns.ProgressColumn(
                f"N_w: unchanged, of {n_draws:,}",
                min_value=0,
                max_value=n_draws,
                format="%d",
                help="How many draws return the token itself. A small N_w protects it from "
                "readers who take the released token as the original.",
            ),
            "S_w": columns.ProgressColumn(
                f"S_w: outcomes, of {n_draws:,}",
                min_value=0,
                max_value=n_draws,
                format="%d",
                help="How many different tokens the draws return. A large S_w hides the token "
                "among many.",
            ),
            "half at η": columns.NumberColumn(
                "Half unchanged at η",
                format="%.1f",
                help="At this η, half of the draws return the token itself",
            ),
            "turns into": columns.TextColumn(
                "Replaced by (draws)", width="large", help="The ten most frequent outcomes"
            ),
        },
    )


def vocabulary_cards(found: VocabularyDeniability, geometry: Geometry, eta: float) -> None:
    """Draw the histograms over all tokens, and their distances compared with the noise."""
    shown = {"histograms": all_outcomes(found, eta), "geometry": distances_and_noise(geometry, eta)}
    for column, (name, finding) in zip(st.columns(2, gap="medium"), shown.items(), strict=True):
        show_figure(column, finding, name)
        if finding.body:
            column.caption(finding.body)


def replacements_card() -> None:
    """Draw how often a similar word replaces a token, or that this was not measured."""
    st.header("How often does a near word replace a token?", anchor=False)
    try:
        rows = cache.token_replacements() if replacements.SHIPPED.exists() else []
    except CoreError as error:
        show_error(error, title="The replacement results cannot be read")
        return
    if rows:
        show_finding(st.container(), near_words(rows), "replacements", is_title=False)
        return
    st.info(
        "Not measured yet: no results ship with this version. In a checkout, run "
        "`leakscope study replacements --out results/replacements.json`; this takes some minutes.",
        icon=":material/hourglass_empty:",
    )


def downloads(
    text: str, on: EncoderSpec, eta: float, found: Sequence[TokenDeniability], n_draws: int
) -> None:
    """Draw the download buttons of the tokens' statistics."""
    facts = {"text": text, "encoder": on.name, "eta": eta, "n_draws": n_draws}
    save_json(
        lambda: json.dumps(
            {**facts, "tokens": [asdict(f) for f in found]},
            ensure_ascii=False,
            indent=1,
        ),
        "deniability",
        about="All statistics, for programs. The file contains your sentence.",
    )
    save_csv(
        lambda: table_csv([_csv_row(token) for token in found]),
        "deniability",
        about="One row per token, for spreadsheets. The file contains your sentence.",
    )


def _csv_row(token: TokenDeniability) -> dict[str, object]:
    """Return a token's statistics as a CSV row."""
    replacements = " ".join(f"{other}:{n}" for other, n in token.replacements)
    return {
        "token": token.token,
        "n_w": token.n_w,
        "s_w": token.s_w,
        "eta_star_median": token.eta_star_median,
        "replacements": replacements,
    }
