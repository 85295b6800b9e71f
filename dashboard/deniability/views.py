"""The cards of the deniability page: sentence, tokens, curves, vocabulary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import streamlit as st

from core.defences.deniability.eta_choice import MECHANISM
from core.defences.deniability.geometry import Geometry
from core.defences.deniability.sentence import DeniableSentence, TokenDeniability
from core.defences.deniability.vocabulary import VocabularyDeniability
from core.figures import deniability as figures
from core.protocols import WhiteBoxEncoder
from core.specs import EncoderSpec
from core.spreadsheets import table_csv
from core.studies.eta_outlook import outlook
from core.studies.tradeoff_summary import Tradeoff
from dashboard import cache, markup
from dashboard.charts import chart_config
from dashboard.deniability import state
from dashboard.deniability.eta import ONE_DRAW
from dashboard.downloads import save_csv, save_json
from dashboard.state import text

__all__ = [
    "curves_card",
    "downloads",
    "finding",
    "opened_sentence",
    "privatised_card",
    "token_table",
    "vocabulary_cards",
]


def opened_sentence(text: str, encoder: WhiteBoxEncoder, on: EncoderSpec) -> DeniableSentence:
    """Return the sentence's envelopes, from this session where it has seen the text."""
    kept = state.deniable_of((text, on))
    if kept is not None:
        return kept
    engine = cache.deniability_engine(on)
    return state.remember_deniable((text, on), DeniableSentence(encoder, engine, text))


_NEARLY_ALL, _MOST, _NEARLY_NONE = 95, 75, 10
"""Per cent of the tokens that come back, from which, and up to which, the verdict says so."""


def finding(sentence: DeniableSentence, eta: float, measured: Tradeoff | None) -> tuple[str, str]:
    """Return the verdict on η, and what it rests on and means.

    Parameters
    ----------
    measured : Tradeoff or None
        What noise was measured to cost; None where it was not, for this encoder.
    """
    unchanged = sentence.unchanged(eta)
    value, n = unchanged.value, len(sentence.ids)
    printed, interval = unchanged.parts(0)
    share = f"{printed} %"
    seen = None if measured is None else outlook(measured, MECHANISM, eta)
    more = ""
    if value >= _NEARLY_ALL:
        verdict = f"your text is published unchanged: {share} of its tokens come back"
        more = "**This protects almost nothing**: whoever gets the released text can read it. " + (
            seen.leak if seen else ""
        )
    elif value >= _MOST:
        verdict = f"most of your text is published unchanged: {share} of its tokens come back"
        more = seen.leak if seen else ""
    elif value <= _NEARLY_NONE:
        verdict = f"hardly anything of your text is left: {share} of its tokens come back"
        cost = seen.cost if seen else ""
        more = (
            f"**What that costs.** {cost}"
            if cost
            else "**What that costs** was not measured for this encoder: expect that little use of "
            "the released text is left."
        )
    else:
        verdict = f"{share} of your text's tokens come back unchanged"
    beside = (
        f"95 % interval {interval} %, over {unchanged.n:,} draws of noise for "
        f"{n} token{'s' if n > 1 else ''}. A reader who takes the released tokens at their word "
        "is right this often."
    )
    return f"At η = {eta:g}, {verdict}", f"{beside}\n\n{more}".strip()


def privatised_card(sentence: DeniableSentence, eta: float, on: EncoderSpec) -> None:
    """Draw the sentence as it might be released."""
    engine = cache.deniability_engine(on)
    changed = sentence.privatised(engine, eta, state.noise_seed())
    st.html(markup.label("What is released: one draw"))
    is_beside = st.toggle(
        "Before and after side by side",
        key=state.BESIDE_KEY,
        persist_state="session",
        help="The sentence as it was written beside what is released, as people read both",
    )
    if is_beside:
        before, after = st.columns(2, gap="medium")
        before.html(markup.label("Before") + markup.quoted(text()))
        after.html(markup.label("After") + markup.privatised_sentence(sentence.tokens, changed))
    else:
        st.html(markup.privatised_sentence(sentence.tokens, changed))
    st.html(markup.token_legend())
    st.caption(ONE_DRAW)
    n_unknown = sentence.tokens.count("[UNK]")
    if n_unknown:
        what = "1 token is" if n_unknown == 1 else f"{n_unknown} tokens are"
        st.caption(
            f"{what} unknown to the encoder ([UNK]): it reads nothing of them but that they are "
            "there, and this alone is what the noise hides."
        )


def token_table(found: Sequence[TokenDeniability], n_draws: int) -> None:
    """Draw each token's numbers and what it turns into."""
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
                "Token", help="As the encoder cuts the text; ## continues a word", pinned=True
            ),
            "N_w": columns.ProgressColumn(
                f"N_w: comes back, of {n_draws:,}",
                min_value=0,
                max_value=n_draws,
                format="%d",
                help="How many draws return this very token. Small hides it from readers who take "
                "what is released at its word.",
            ),
            "S_w": columns.ProgressColumn(
                f"S_w: outcomes, of {n_draws:,}",
                min_value=0,
                max_value=n_draws,
                format="%d",
                color="green",
                help="How many different tokens the draws return. Large hides it among many.",
            ),
            "half at η": columns.NumberColumn(
                "Even odds at η",
                format="%.1f",
                help="At this η half of the draws return the token itself",
            ),
            "turns into": columns.TextColumn(
                "Turns into (draws)", width="large", help="The ten most frequent outcomes"
            ),
        },
    )


def curves_card(
    sentence: DeniableSentence,
    eta: float,
    steps: Sequence[float],
    found: VocabularyDeniability | None,
) -> None:
    """Draw how often tokens come back, at every η, beside the vocabulary's where it is known."""
    etas = np.asarray(steps)
    vocabulary = (found.etas, found.mean_n_w.mean(0) / found.n_draws * 100) if found else None
    st.plotly_chart(
        figures.token_curves(
            etas,
            sentence.curves(etas) / sentence.n_draws * 100,
            sentence.tokens,
            vocabulary,
            eta,
        ),
        key="curves",
        config=chart_config(),
        alt=f"Share of tokens that come back over η, from {etas[0]:g} to {etas[-1]:g}; the "
        f"sentence, its tokens{' and all tokens' if found else ''}, with η = {eta:g} marked",
    )


def vocabulary_cards(found: VocabularyDeniability, geometry: Geometry, eta: float) -> None:
    """Draw all tokens' histograms and the geometry."""
    at = found.at(eta)
    shown = float(found.etas[at])
    left, right = st.columns(2, gap="medium")
    with left:
        st.plotly_chart(
            figures.outcome_histograms(found.n_w[:, at], found.s_w[:, at], found.n_draws, shown),
            key="histograms",
            config=chart_config(),
            alt=f"Histograms of N_w and S_w over {len(found.tokens):,} tokens at η = {shown:g}",
        )
        mean, spread = found.mean_n_w[:, at], found.mean_n_w[:, at].std(ddof=1)
        st.caption(
            f"{len(found.tokens):,} tokens, η rounded to the nearest measured one. Mean N_w "
            f"{mean.mean():.0f} (standard deviation {spread:.1f} over {len(mean)} sets of draws), "
            f"largest {found.n_w[:, at].max():,}; mean S_w {found.mean_s_w[:, at].mean():.0f}, "
            f"smallest {found.s_w[:, at].min():,}."
        )
    with right:
        st.plotly_chart(
            figures.geometry_figure(geometry, eta),
            key="geometry",
            config=chart_config(),
            alt=f"Mean distance to the k-th nearest token, from {geometry.mean_distance[0]:.2f} "
            f"to {geometry.mean_distance[-1]:.2f}, and the noise of length "
            f"{geometry.dimension / eta:.1f}",
        )
        if geometry.dimension / eta > geometry.mean_distance[-1]:
            st.caption(
                "The noise is longer than these distances and yet tokens come back: in so many "
                "dimensions it points almost at right angles to every other token."
            )


def downloads(
    text: str, on: EncoderSpec, eta: float, found: Sequence[TokenDeniability], n_draws: int
) -> None:
    """Draw the buttons that save the tokens' numbers."""
    facts = {"text": text, "encoder": on.name, "eta": eta, "n_draws": n_draws}
    save_json(
        lambda: json.dumps(
            {**facts, "tokens": [asdict(f) for f in found]},
            ensure_ascii=False,
            indent=1,
        ),
        "deniability",
        about="All of it, for programs. It holds your sentence.",
    )
    save_csv(
        lambda: table_csv([_row(token) for token in found]),
        "deniability",
        about="One row a token, for spreadsheets. It holds your sentence.",
    )


def _row(token: TokenDeniability) -> dict[str, object]:
    replacements = " ".join(f"{other}:{n}" for other, n in token.replacements)
    return {
        "token": token.token,
        "n_w": token.n_w,
        "s_w": token.s_w,
        "eta_star_median": token.eta_star_median,
        "replacements": replacements,
    }
