"""What became of one's own canary: its exposure by epoch, and what sampling brings out."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from statistics import fmean
from typing import Any

import streamlit as st

from core.attacks.membership.memorisation.experiment import PlantedRun
from core.attacks.membership.memorisation.extraction import RANKINGS, Extraction
from core.attacks.membership.memorisation.memorise import Memorised
from core.attacks.membership.memorisation.registry import MEMORISATION_ATTACKS
from core.attacks.membership.memorisation.tokens import split_words
from core.figures.memorisation import growth_figure, times_said
from core.spreadsheets import table_csv
from core.studies.memorisation_summary import law_of
from dashboard import markup
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.downloads import save_csv, save_json
from dashboard.memorisation.measured import EXPOSURE
from dashboard.memorisation.state import key_of

__all__ = ["growth", "sampling"]

SAMPLERS = {
    "top_k": ("Top 40", "draws among the 40 likeliest next letters or words"),
    "temperature": ("Decaying temperature", "begins wildly and calms down over 20 steps"),
    "prefix": ("Beginning known", "continues what stands before the secret"),
}


def growth(found: Memorised) -> None:
    """Draw what became of one's own canary: its exposure by epoch, and the numbers."""
    n_epochs, law = found.settings.epochs, law_of(found.size)
    scores = [found.exposure_at(epoch) for epoch in range(1, n_epochs + 1)]
    last, controls = scores[-1].value, _controls_by_epoch(found)
    told = (
        "more than those planted nowhere reach by chance"
        if last > law.high
        else "no more than those planted nowhere reach"
    )
    st.subheader(f"Kept: {last:.1f} of {math.log2(found.size):.1f} bits, {told}", anchor=False)
    st.markdown(_growth_said(found), help=EXPOSURE)
    st.plotly_chart(
        growth_figure(scores, controls, law, n_epochs),
        key="memorise-growth",
        config=chart_config("leakscope-exposure"),
        alt="Exposure of the canary by epoch, beside canaries that were planted nowhere; the table "
        "below holds the same numbers",
    )
    rows = [
        {
            "epoch": each["epoch"],
            "exposure, bits": each["exposure"],
            "rank": each["rank"],
            "planted nowhere, bits": control,
            "bits a token, held out": each["bits_a_token"],
        }
        for each, control in zip(found.to_dict()["by_epoch"], controls, strict=True)
    ]
    with st.expander("The numbers as a table", icon=":material/table:"):
        formats = {name: st.column_config.NumberColumn(format="%.2f") for name in list(rows[0])[1:]}
        formats["rank"] = st.column_config.NumberColumn(format="%.0f")
        st.dataframe(rows, key="memorise-epochs", hide_index=True, column_config=formats)
        with st.container(horizontal=True):
            save_csv(lambda: table_csv(rows), "exposure", about="A row for each epoch")
            save_json(
                lambda: json.dumps(found.to_dict(), ensure_ascii=False, indent=2),
                "memorised",
                about="All that was found. It holds the canary and texts drawn from the model.",
            )


def _controls_by_epoch(found: Memorised) -> list[float]:
    """Return the mean exposure of canaries that were planted nowhere, after each epoch."""
    by_epoch = zip(*(run.epochs for run in found.runs), strict=True)
    return [fmean(bits for each in epochs for bits in each.controls) for epochs in by_epoch]


def _growth_said(found: Memorised) -> str:
    run = found.runs[0]
    canary, last = run.canaries[0], run.epochs[-1].canaries[0]
    how = "all of them ranked" if last.is_exact else "estimated from a sample by a skew-normal law"
    score = found.exposure_at(found.settings.epochs)
    n = len(found.runs)
    whose = "Its exposure" if n == 1 else f"The mean exposure of {n} models, each of its own seed,"
    first = "" if n == 1 else "Of the first seed: "
    high = law_of(found.size).high
    return (
        f"{first}Planted {times_said(found.settings.insertions)} among {run.n_texts:,} sentences: "
        f"**{plain(canary.text)}** ({plain(canary.note)}). Its rank is **{last.rank:,.0f}** of the "
        f"{found.size:,} that could stand in its place ({how}). {whose} is **{score.said()}** "
        f"bits. Of those planted nowhere one in twenty exceeds {high:.1f} bits; {found.controls.n} "
        f"were measured: {found.controls.said(2)} bits on average."
    )


def sampling(found: Memorised) -> None:
    """Draw what sampling brings out: where the canary stands among the texts drawn."""
    if not found.runs[0].extractions:
        st.info("No texts were drawn: choose how many under “More settings”.",
                icon=":material/tune:")  # fmt: skip
        return
    run = _chosen_run(found)
    rows = [_places(each) for each in run.extractions]
    held = sum(each.found[0] for each in run.extractions)
    n = sum(each.n_drawn for each in run.extractions)
    st.markdown(
        f"Texts were drawn from the model in three ways, and ranked in four by how likely it knows "
        f"them by heart. **{held:,} of {n:,}** hold the canary. A number is the place at which it "
        "first stands; – says that it was not drawn."
    )
    titles = {MEMORISATION_ATTACKS[name].title: MEMORISATION_ATTACKS[name].summary
              for name in RANKINGS}  # fmt: skip
    st.dataframe(
        rows,
        key="memorise-places",
        hide_index=True,
        column_config={k: st.column_config.TextColumn(help=v) for k, v in titles.items()},
    )
    st.caption(" ".join(f"*{title}* {said}." for title, said in SAMPLERS.values()))
    _first_texts(run)


def _chosen_run(found: Memorised) -> PlantedRun:
    if len(found.runs) == 1:
        return found.runs[0]
    i = st.segmented_control(
        "Model of seed",
        range(len(found.runs)),
        default=0,
        required=True,
        key=key_of("shown_run"),
        help="Each was trained on its own, with a secret of its own where a format draws it",
    )
    return found.runs[i if i < len(found.runs) else 0]


def _places(each: Extraction) -> dict[str, Any]:
    places = {name: each.places.get(name, (None,))[0] for name in RANKINGS}
    return {
        "sampler": SAMPLERS[each.sampler][0],
        "texts drawn": each.n_drawn,
        "hold the canary": each.found[0],
        **{MEMORISATION_ATTACKS[k].title: "–" if v is None else str(v) for k, v in places.items()},
    }


def _first_texts(run: PlantedRun) -> None:
    """Draw the texts that one ranking puts first, the canary marked."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sampler = st.selectbox(
            "Drawn by",
            [each.sampler for each in run.extractions],
            key=key_of("shown_sampler"),
            format_func=lambda name: SAMPLERS[name][0],
            width=240,
            help="The sampler whose texts are shown",
        )
        ranking = st.selectbox(
            "The first by",
            RANKINGS,
            key=key_of("shown_ranking"),
            format_func=lambda name: MEMORISATION_ATTACKS[name].title,
            width=240,
            help="The ranking by which they stand in order",
        )
    drawn = next(each for each in run.extractions if each.sampler == sampler)
    texts = drawn.first.get(ranking, ())
    if not texts:
        st.caption("Every text drawn was empty.")
    for text in texts:
        shown = _readable(text)
        with st.container(border=True):
            spans = _spans(shown, run.canaries[0].text)
            st.html(markup.marked_passage(shown, spans, "the planted canary"))
    if texts:
        st.caption(
            f"The first {len(texts)} of {drawn.n_texts:,} different texts; ● marks the canary."
        )


def _readable(text: str) -> str:
    """Return a text that a model wrote with a sign for what cannot be shown."""
    return "".join("�" if unicodedata.category(sign)[0] == "C" else sign for sign in text)


def _spans(text: str, canary: str) -> list[tuple[int, int]]:
    """Return where the canary stands, whatever spaces a model of words puts between them."""
    words = split_words(_readable(canary))
    pattern = r"\s*".join(map(re.escape, words))
    return [match.span() for match in re.finditer(pattern, text)] if words else []
