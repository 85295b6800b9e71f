"""Results on the visitor's canary: exposure by epoch, and texts sampled from the model."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from statistics import fmean
from typing import Any

import streamlit as st

from leakscope.core.attacks.membership.memorisation.experiment import PlantedRun
from leakscope.core.attacks.membership.memorisation.extraction import RANKINGS, Extraction
from leakscope.core.attacks.membership.memorisation.memorise import CanaryMemorisation
from leakscope.core.attacks.membership.memorisation.registry import MEMORISATION_ATTACKS
from leakscope.core.attacks.membership.memorisation.tokens import split_words
from leakscope.core.figures.memorisation import describe_times, growth_figure
from leakscope.core.findings.prose import plain
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.memorisation.summary import chance_exposure
from leakscope.dashboard.memorisation.measured import EXPOSURE
from leakscope.dashboard.memorisation.state import key_of
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv, save_json

SAMPLERS = {
    "top_k": ("Top 40", "samples each token from the 40 likeliest"),
    "temperature": ("Decaying temperature", "starts at a high temperature and cools over 20 steps"),
    "prefix": ("Prefix known", "continues the text before the secret"),
}


def exposure_growth(found: CanaryMemorisation) -> None:
    """Draw the canary's exposure by epoch, and its table."""
    n_epochs, law = found.settings.epochs, chance_exposure(found.size)
    scores = [found.exposure_at(epoch) for epoch in range(1, n_epochs + 1)]
    last, controls = scores[-1].value, _controls_by_epoch(found)
    comparison = "more than chance" if last > law.high else "no more than chance"
    st.header(
        f"Its exposure is {last:.1f} of {math.log2(found.size):.1f} bits, {comparison}",
        anchor=False,
    )
    st.markdown(_describe_growth(found), help=EXPOSURE)
    st.plotly_chart(
        growth_figure(scores, controls, law, n_epochs),
        key="memorise-growth",
        config=chart_config("leakscope-exposure"),
        alt="Exposure of the canary by epoch, beside canaries that were never planted; the table "
        "below has the same numbers",
    )
    rows = [
        {
            "epoch": each["epoch"],
            "exposure, bits": each["exposure"],
            "rank": each["rank"],
            "never planted, bits": control,
            "bits per token, held out": each["bits_a_token"],
        }
        for each, control in zip(found.to_dict()["by_epoch"], controls, strict=True)
    ]
    with st.expander("The numbers as a table", icon=":material/table:"):
        formats = {name: st.column_config.NumberColumn(format="%.2f") for name in list(rows[0])[1:]}
        formats["rank"] = st.column_config.NumberColumn(format="%.0f")
        st.dataframe(rows, key="memorise-epochs", hide_index=True, column_config=formats)
        with st.container(horizontal=True):
            save_csv(lambda: table_csv(rows), "exposure", about="One row per epoch")
            save_json(
                lambda: json.dumps(found.to_dict(), ensure_ascii=False, indent=2),
                "memorised",
                about="All results, with the canary and texts sampled from the model",
            )


def _controls_by_epoch(found: CanaryMemorisation) -> list[float]:
    """Return the mean exposure of the control canaries after each epoch."""
    by_epoch = zip(*(run.epochs for run in found.runs), strict=True)
    return [fmean(bits for each in epochs for bits in each.controls) for epochs in by_epoch]


def _describe_growth(found: CanaryMemorisation) -> str:
    """Describe the canary's rank and its exposure beside the controls."""
    run = found.runs[0]
    canary, last = run.canaries[0], run.epochs[-1].canaries[0]
    how = "all ranked" if last.is_exact else "estimated with a skew-normal fit to a sample"
    score = found.exposure_at(found.settings.epochs)
    n = len(found.runs)
    whose = "Its exposure" if n == 1 else f"The mean exposure in {n} models, one per seed,"
    first = "" if n == 1 else "First seed: "
    high = chance_exposure(found.size).high
    return (
        f"{first}Planted {describe_times(found.settings.insertions)} among {run.n_texts:,} "
        f"sentences: **{plain(canary.text)}** ({plain(canary.note.removeprefix('R: '))}). Its rank "
        f"is **{last.rank:,.0f}** of {found.size:,} possible secrets ({how}). {whose} is "
        f"{score.in_text(is_bold=True)} bits. The {found.controls.n} controls, which were never "
        f"planted, have a mean of {found.controls.in_text(2)} bits; by chance, one in twenty "
        f"canaries exceeds {high:.1f} bits."
    )


def sampling_results(found: CanaryMemorisation) -> None:
    """Draw how often sampled texts contain the canary, and the ranks of those texts."""
    if not found.runs[0].extractions:
        st.info(
            "No texts were sampled. Choose how many under “More settings”.",
            icon=":material/tune:",
        )
        return
    run = _chosen_run(found)
    rows = [_rank_row(each) for each in run.extractions]
    held = sum(each.found[0] for each in run.extractions)
    n = sum(each.n_drawn for each in run.extractions)
    st.markdown(
        "The model's texts were sampled in three ways. Four rankings put memorised texts first. "
        f"**{held:,} of {n:,}** texts contain the canary. The numbers are its best ranks; – means "
        "that it was not sampled."
    )
    titles = {
        MEMORISATION_ATTACKS[name].title: MEMORISATION_ATTACKS[name].summary for name in RANKINGS
    }
    st.dataframe(
        rows,
        key="memorise-places",
        hide_index=True,
        column_config={k: st.column_config.TextColumn(help=v) for k, v in titles.items()},
    )
    st.caption(" ".join(f"*{title}* {about}." for title, about in SAMPLERS.values()))
    _first_texts(run)


def _chosen_run(found: CanaryMemorisation) -> PlantedRun:
    """Draw the choice of the model by seed if there are several; return its run."""
    if len(found.runs) == 1:
        return found.runs[0]
    i = st.segmented_control(
        "Model of seed",
        range(len(found.runs)),
        default=0,
        required=True,
        key=key_of("shown_run"),
        help="The models are trained separately. With a format, each has its own secret.",
    )
    return found.runs[i if i < len(found.runs) else 0]


def _rank_row(each: Extraction) -> dict[str, Any]:
    """Return a sampler's counts and the canary's best rank in each ranking, as a table row."""
    places = {name: each.places.get(name, (None,))[0] for name in RANKINGS}
    return {
        "sampler": SAMPLERS[each.sampler][0],
        "texts sampled": each.n_drawn,
        "with the canary": each.found[0],
        **{MEMORISATION_ATTACKS[k].title: "–" if v is None else str(v) for k, v in places.items()},
    }


def _first_texts(run: PlantedRun) -> None:
    """Draw the sampled texts ranked first, with the canary marked."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sampler = st.selectbox(
            "Sampled by",
            [each.sampler for each in run.extractions],
            key=key_of("shown_sampler"),
            format_func=lambda name: SAMPLERS[name][0],
            width=240,
            help="The sampler whose texts are shown",
        )
        ranking = st.selectbox(
            "Ranked by",
            RANKINGS,
            key=key_of("shown_ranking"),
            format_func=lambda name: MEMORISATION_ATTACKS[name].title,
            width=240,
            help="The order of the texts below",
        )
    drawn = next(each for each in run.extractions if each.sampler == sampler)
    texts = drawn.first.get(ranking, ())
    if not texts:
        st.caption("Every sampled text was empty.")
    for text in texts:
        shown = _readable(text)
        with st.container(border=True):
            spans = _spans(shown, run.canaries[0].text)
            st.html(markup.marked_passage(shown, spans, "the planted canary"))
    if texts:
        st.caption(
            f"The first {len(texts)} of {drawn.n_texts:,} different texts. ● marks the canary."
        )


def _readable(text: str) -> str:
    """Return a text with control characters replaced by �."""
    return "".join("�" if unicodedata.category(sign)[0] == "C" else sign for sign in text)


def _spans(text: str, canary: str) -> list[tuple[int, int]]:
    """Return the spans of the canary in a text, with any spaces between its words."""
    words = split_words(_readable(canary))
    pattern = r"\s*".join(map(re.escape, words))
    return [match.span() for match in re.finditer(pattern, text)] if words else []
