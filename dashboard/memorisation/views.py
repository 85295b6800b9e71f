"""The visitor's canary: its training job, its exposure by epoch, and texts that were sampled."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any

import streamlit as st

from leakscope.core.attacks.membership.memorisation.canaries import Canary
from leakscope.core.attacks.membership.memorisation.experiment import PlantedRun
from leakscope.core.attacks.membership.memorisation.extraction import RANKINGS, Extraction
from leakscope.core.attacks.membership.memorisation.memorise import (
    CanaryMemorisation,
    MemoriseRequest,
    parse_exposures,
    run_request,
)
from leakscope.core.attacks.membership.memorisation.registry import MEMORISATION_ATTACKS
from leakscope.core.attacks.membership.memorisation.tokens import split_words
from leakscope.core.figures.memorisation import describe_times, growth_figure
from leakscope.core.findings.prose import plain
from leakscope.core.jobs import Job
from leakscope.core.results import Score
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.memorisation.summary import chance_exposure
from leakscope.dashboard.memorisation import state
from leakscope.dashboard.memorisation.measured import EXPOSURE
from leakscope.dashboard.ui import markup, work
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv, save_json
from leakscope.dashboard.ui.formulas import draw_entries

_EXPOSURES = re.compile(r",? ?exposure by epoch [\d. ]+ bits")

SAMPLERS = {
    "top_k": ("Top 40", "samples each token from the 40 likeliest"),
    "temperature": ("Decaying temperature", "starts at a high temperature and cools over 20 steps"),
    "prefix": ("Prefix known", "continues the text before the secret"),
}


def exposure_growth(found: CanaryMemorisation) -> None:
    """Draw the canary's exposure by epoch, and its table."""
    n_epochs, law = found.settings.epochs, chance_exposure(found.size)
    scores = [found.exposure_at(epoch) for epoch in range(1, n_epochs + 1)]
    by_epoch = zip(*(run.epochs for run in found.runs), strict=True)
    controls = [fmean(bits for each in epochs for bits in each.controls) for epochs in by_epoch]
    last = scores[-1].value
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
    _draw_first_texts(run)


def _chosen_run(found: CanaryMemorisation) -> PlantedRun:
    """Draw the selector of a trained model, by seed, if there are several; return its run."""
    if len(found.runs) == 1:
        return found.runs[0]
    i = st.segmented_control(
        "Model of seed",
        range(len(found.runs)),
        default=0,
        required=True,
        key=state.key_of("shown_run"),
        help="The models are trained separately. With a format, each has its own secret.",
    )
    return found.runs[i if i < len(found.runs) else 0]


def _rank_row(each: Extraction) -> dict[str, Any]:
    """Return a sampler's counts and the canary's rank in each ranking, as a table row (dict)."""
    places = {name: each.places.get(name, (None,))[0] for name in RANKINGS}
    return {
        "sampler": SAMPLERS[each.sampler][0],
        "texts sampled": each.n_drawn,
        "with the canary": each.found[0],
        **{MEMORISATION_ATTACKS[k].title: "–" if v is None else str(v) for k, v in places.items()},
    }


def _draw_first_texts(run: PlantedRun) -> None:
    """Draw selectors of sampler and ranking, and the texts ranked first, with the canary marked."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sampler = st.selectbox(
            "Sampled by",
            [each.sampler for each in run.extractions],
            key=state.key_of("shown_sampler"),
            format_func=lambda name: SAMPLERS[name][0],
            width=240,
            help="The sampler whose texts are shown",
        )
        ranking = st.selectbox(
            "Ranked by",
            RANKINGS,
            key=state.key_of("shown_ranking"),
            format_func=lambda name: MEMORISATION_ATTACKS[name].title,
            width=240,
            help="The order of the texts below",
        )
    drawn = next(each for each in run.extractions if each.sampler == sampler)
    texts = drawn.first.get(ranking, ())
    if not texts:
        st.caption("Every sampled text was empty.")
    for text in texts:
        shown = _replace_control_characters(text)
        with st.container(border=True):
            spans = _find_canary(shown, run.canaries[0].text)
            st.html(markup.marked_passage(shown, spans, "the planted canary"))
    if texts:
        st.caption(
            f"The first {len(texts)} of {drawn.n_texts:,} different texts. ● marks the canary."
        )


def _replace_control_characters(text: str) -> str:
    """Replace a text's control characters by �."""
    return "".join("�" if unicodedata.category(sign)[0] == "C" else sign for sign in text)


def _find_canary(text: str, canary: str) -> list[tuple[int, int]]:
    """Find the canary in a text, with any spaces between its words; return (start, end) pairs."""
    words = split_words(_replace_control_characters(canary))
    pattern = r"\s*".join(map(re.escape, words))
    return [match.span() for match in re.finditer(pattern, text)] if words else []


def result_or_controls(
    request: MemoriseRequest, texts: Sequence[str] | None, canary: Canary | None
) -> CanaryMemorisation | None:
    """Return the experiment's result, or draw its job's controls and return None.

    Parameters
    ----------
    texts : sequence of str or None
        The sentences of an upload; the job itself reads a corpus.
    canary : Canary or None
        The canary, if its set of secrets does not depend on the texts.
    """
    work.drop_others(MemoriseRequest, lambda other: other == request)
    known = state.result_of(request)
    if known is not None:
        return known
    offer = work.Offer(
        label="Plant it and train",
        key="memorise-start",
        on_click=partial(_start, texts),
        failed="The training failed",
        note=f"{_describe_secret(canary)} The model is trained in the background, and the exposure "
        "appears after each epoch.",
        restart_label="Train again",
        is_primary=True,
        format_message=lambda message: _EXPOSURES.sub("", message),
        draw_progress=partial(_show_live_exposure, request, canary),
        keeps_result=True,
    )
    done = work.draw_job(request, offer)
    return state.remember(request, done.result) if done else None


def _describe_secret(canary: Canary | None) -> str:
    """Describe the random part of a canary and its bits."""
    if canary is None:
        return "The secret depends on the texts: the canary's rarest words, or words drawn there."
    bits = math.log2(canary.size)
    secret = canary.note.removeprefix("R: ")
    return plain(f"The secret ({secret}) can reach an exposure of up to {bits:.1f} bits.")


def _start(texts: Sequence[str] | None, request: MemoriseRequest) -> None:
    """Start the background job that plants the canary and trains, with the controls' settings."""
    # Read the controls again: the button was drawn before the latest change.
    corpus = str(state.choice("corpus"))
    request = state.chosen_request(request.corpus if corpus == state.UPLOAD else corpus)
    if texts is None and state.is_upload(request.corpus):
        texts = ()  # the file was lost in a reload: the job reports no sentences
    work.start(request, run_request, request, texts)


def _show_live_exposure(request: MemoriseRequest, canary: Canary | None, job: Job) -> None:
    """Draw the exposures so far of a running job, by epoch; nothing before the first."""
    so_far = state.live_exposures(job.id, parse_exposures(job.message))
    if not so_far:
        return
    law = chance_exposure(canary.size if canary else None)
    st.plotly_chart(
        growth_figure([Score(bits) for bits in so_far], (), law, request.settings.epochs),
        key="memorise-live",
        config=chart_config("leakscope-exposure", has_bar=False),
        alt=f"Exposure of the canary by epoch so far; after epoch {len(so_far)} it is "
        f"{so_far[-1]:.1f} bits",
    )


def adopt_memorise_job() -> None:
    """Restore the controls from a memorisation job that the URL names, after a reload."""
    for request in work.adopt_jobs(MemoriseRequest):
        state.restore_request(request)


def how_it_is_computed() -> None:
    """Draw an explanation of exposure, and the formula of each attack."""
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
