"""The views of the audit page: answer, figure, leaking rows, downloads, methods and caveats."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from leakscope.core.audit.identification import SAME
from leakscope.core.audit.leakage import mask_word
from leakscope.core.audit.summary import ANSWERS_MEAN, AuditSummary
from leakscope.core.browser import NO_BROWSER
from leakscope.core.cli.shared.output import jsonable
from leakscope.core.figures.audit import personal_alt, personal_figure
from leakscope.core.findings.audit import audit_slide, row_cells
from leakscope.core.findings.prose import plain
from leakscope.core.spreadsheets import neutral_cell
from leakscope.core.story.deck import audit_deck
from leakscope.dashboard.audit import state
from leakscope.dashboard.audit.controls import AuditInput
from leakscope.dashboard.server.visitor import share, visitor
from leakscope.dashboard.story.files import can_print, report_file
from leakscope.dashboard.story.pinning import NOTHING_REPEATS, OWN_FILE, PinnedView
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_json
from leakscope.dashboard.ui.terms import new_term_help


def draw_answer(
    slot: Any, chart: Any, found: AuditSummary, *, is_own: bool, is_chosen: bool = False
) -> None:
    """Draw an audit's title and answer in the slot, its figure and evidence in the chart place.

    Parameters
    ----------
    is_chosen : bool
        Whether the visitor has chosen vectors that are not audited yet.
    """
    slide = audit_slide(found, with_words=is_own, is_example=not is_own)
    example = "" if is_own else "**An example: news articles that come with Leakscope.** "
    if is_chosen:
        example = "**An example, not your vectors: yours are not audited yet.** "
    slot.title(plain(slide.title), anchor=False)
    answer, evidence = f"{example}{plain(found.answer)}", plain(found.evidence)
    slot.markdown(answer, help=new_term_help(answer))
    if slide.figure is not None:
        chart.plotly_chart(
            slide.figure,
            key="audit-figure",
            config=chart_config("leakscope-audit"),
            alt=slide.alt,
        )
    chart.caption(evidence, help=new_term_help(evidence))


def untested_list(found: AuditSummary, *, is_own: bool) -> None:
    """Draw the list of what the audit did not test."""
    reasons = list(found.not_tested)
    if not is_own and found.personal is None:
        reasons.append(
            "The example was not searched for personal data; “Look for personal data” applies to "
            "your vectors."
        )
    if reasons:
        st.header("Not tested", anchor=False)
        st.markdown("\n".join(f"- {plain(reason)}" for reason in reasons))


def personal_data(found: AuditSummary) -> None:
    """Draw a figure and sentences on what an attacker recovers of personal data in the texts."""
    if found.personal is None:
        return
    st.header("Personal data", anchor=False)
    st.markdown(plain(f"{found.personal.answer} {found.personal.by_kind}"))
    figure = personal_figure(found.personal)
    if figure is not None:
        st.plotly_chart(
            figure,
            key="audit-personal",
            config=chart_config("leakscope-audit-personal"),
            alt=personal_alt(found.personal),
        )
        st.caption(
            f"{ANSWERS_MEAN} The figure at the top counts single words instead: its “Names” are "
            "words with a capital letter."
        )


def what_if_results(found: AuditSummary) -> None:
    """Draw what an attacker would recover with other storage, defences, redaction or rotation."""
    if not found.what_if:
        return
    st.header("What if", anchor=False)
    for each in found.what_if:
        st.subheader(state.WHAT_IF.get(each.kind, each.kind), anchor=False)
        st.markdown(plain(each.answer))
        if each.alternatives:
            st.dataframe(
                [
                    {
                        "": row.title,
                        "F1": "not tested" if row.f1 is None else row.f1.format(),
                        "nearest rows found, %": "" if row.recall is None else row.recall.format(),
                    }
                    for row in each.alternatives
                ],
                key=f"audit-what-if-{each.kind}",
                hide_index=True,
            )


def leaking_rows(found: AuditSummary, *, is_own: bool) -> None:
    """Draw the rows that leak most; their words are masked by default."""
    if not found.rows:
        return
    st.header(f"The rows {'' if is_own else 'of the example '}that leak most", anchor=False)
    shows = is_own and st.toggle(
        "Show the words",
        key=state.WORDS_KEY,
        help="Shows words of your texts. Anyone who sees this screen can read them.",
    )
    table = []
    for row in found.rows:
        count, words = row_cells(row, with_words=shows)
        table.append({"row": row.row, "recovered": count, "F1": 100 * row.f1, "words": words})
    st.dataframe(
        [{name: neutral_cell(cell) for name, cell in row.items()} for row in table],
        key="audit-rows",
        hide_index=True,
        column_config={"F1": st.column_config.NumberColumn(format="%.0f")},
    )


def download_buttons(report: dict[str, Any], found: AuditSummary, place: Any) -> None:
    """Draw buttons that download an audit's report as PDF, HTML or JSON (words masked)."""
    whose = (visitor(), share())
    is_possible = can_print()
    for suffix, label, icon in ((".pdf", "PDF", "picture_as_pdf"), (".html", "HTML", "html")):
        is_ready = is_possible or suffix != ".pdf"
        place.download_button(
            f"Report, {label}",
            partial(_render_report, found, suffix, whose),
            f"leakscope-audit{suffix}",
            "application/pdf" if suffix == ".pdf" else "text/html",
            key=f"audit-report-{suffix.removeprefix('.')}",
            icon=f":material/{icon}:",
            help="One page with the answer, the evidence, what to do, and what was not tested."
            if is_ready
            else NO_BROWSER,
            on_click="ignore",
            disabled=not is_ready,
        )
    save_json(
        lambda: json.dumps(jsonable(_mask_report(report)), ensure_ascii=False, indent=1),
        "audit",
        about="The report of `audit --json` with masked words; `--baseline` accepts it.",
    )


def _render_report(found: AuditSummary, suffix: str, whose: tuple[str, str]) -> bytes:
    """Render an audit's one-page report; return the bytes of a file with this suffix."""
    return report_file(audit_deck(found), suffix, whose)


def commands_of(chosen: AuditInput | None) -> tuple[str, str]:
    """Return two commands: to audit the chosen files in a terminal, and to gate a build."""
    parts = ["leakscope", "audit", "SOURCE"]
    if chosen is not None:
        request = chosen.request
        parts[2] = request.name or "SOURCE"
        parts += ["--texts", chosen.texts.name] if chosen.texts else []
        for option, value in (("--encoder", request.encoder), ("--defence", request.defence)):
            parts += [option, value] if value else []
        parts += ["--personal"] * request.looks_for_personal
        parts += ["--sample", str(request.n), "--seed", str(request.seed)]
    return shlex.join([*parts, "--json", "report.json"]), shlex.join([*parts, "--max-f1", "30"])


def _mask_report(report: dict[str, Any]) -> dict[str, Any]:
    """Copy a report with the recovered words masked, so that it can be shared."""
    leaking_rows = [
        {**row, "recovered": [mask_word(word) for word in row["recovered"]]}
        for row in report.get("rows_that_leak_most", ())
    ]
    return {**report, **({"rows_that_leak_most": leaking_rows} if leaking_rows else {})}


def pinned(found: AuditSummary, *, is_own: bool, with_words: bool) -> PinnedView:
    """Build the audit's finding for a story; own words and names only if `with_words`."""
    slide = audit_slide(found, with_words=with_words and is_own, is_example=not is_own)
    if not is_own:
        return PinnedView(finding=slide)
    return PinnedView(
        finding=replace(slide, commands=(NOTHING_REPEATS,)),
        instead={} if with_words else {found.source: "your own vectors"},
        opens=OWN_FILE,
        is_live=False,
    )


def how_it_is_computed() -> None:
    """Draw an explanation of how the encoder is identified and F1 is measured or estimated."""
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
