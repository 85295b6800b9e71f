"""The views of the attributes page: finding, confused labels, a typed text's likeliest labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.errors import CoreError
from leakscope.core.figures.attributes import confusion_figure, guesses_figure, reasons_figure
from leakscope.core.findings.attributes import NOT_MEASURED, describe_parts, first_view
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.prose import plain
from leakscope.core.formatting import format_percent
from leakscope.core.results.rows import Row
from leakscope.core.spreadsheets import neutral_cell, table_csv
from leakscope.core.studies.attributes.curves import (
    FILES,
    View,
    curves,
    row_with_confusions,
    table,
)
from leakscope.core.studies.attributes.request import InferenceResult
from leakscope.core.text import check_text
from leakscope.dashboard import cache
from leakscope.dashboard.attributes import controls, state
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.story.pinning import PinnedView
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_finding
from leakscope.dashboard.ui.formulas import draw_entries
from leakscope.dashboard.ui.terms import new_term_help

if TYPE_CHECKING:
    from leakscope.core.attacks.attributes.parts import LabelEvidence

_OPENS = "at the default view of the page: the address omits the choices below the figure"


def unmeasured(slot: Any) -> PinnedView:
    """Draw a note that nothing was measured yet; return the view to pin."""
    slot.title(NOT_MEASURED.title, anchor=False)
    slot.info(
        f"Nothing was measured on many authors yet. Run `{NOT_MEASURED.commands[0]} --out "
        f"results/{FILES[0]}`, or try a few authors below.",
        icon=":material/science:",
    )
    return PinnedView(finding=NOT_MEASURED)


def show_measured(
    slot: Any, found: Finding, rows: Sequence[Row], view: View, name: str, *, is_title: bool = True
) -> None:
    """Draw a finding, and below it the accuracy from topic alone and from the rest alone."""
    show_finding(slot, found, name, is_title=is_title)
    if parts := describe_parts(rows, view):
        slot.caption(parts, help=new_term_help(parts))


def pinned(found: Finding, rows: Sequence[Row], view: View) -> PinnedView:
    """Wrap a finding for a story, noting what its address omits if the view is not the default."""
    return PinnedView(finding=found, opens="" if view == first_view(rows) else _OPENS)


def size_table(rows: Sequence[Row], view: View, along: str, name: str) -> None:
    """Draw the table of accuracy at each size and seed, with CSV downloads of it and the figure."""
    with st.expander("Every size and seed as a table", icon=":material/table:"):
        cells = table(rows)
        st.dataframe(
            [{k: neutral_cell(v) for k, v in row.items()} for row in cells],
            key=f"{name}-table",
            hide_index=True,
        )
        save_csv(lambda: table_csv(cells), name, about="One row per attack, size and seed.")
    save_csv(
        lambda: table_csv(figure_points(rows, view, along)),
        f"{name}-figure",
        about="The figure's points: each a mean over seeds, with its interval.",
    )


def figure_points(rows: Sequence[Row], view: View, along: str) -> list[dict[str, Any]]:
    """Return the figure's points as table rows (dicts), in per cent."""
    return [
        {
            "attack": curve.attack,
            "encoder": curve.encoder,
            "shuffled labels": curve.is_shuffled,
            along: size,
            "right, %": 100 * score.value,
            "95 % CI from": 100 * score.ci95.low,
            "95 % CI to": 100 * score.ci95.high,
            "n": score.n,
            "seeds": score.n_seeds,
            "guessing, %": 100 * score.chance,
        }
        for curve in curves(rows, view, along)
        for size, score in zip(curve.sizes, curve.scores, strict=True)
    ]


def show_mistakes(rows: Sequence[Row], view: View, name: str) -> None:
    """Draw which labels the attack confuses at its largest size, if the rows record it."""
    row = row_with_confusions(rows, view.source, ENCODER.name)
    if row is not None:
        attack = ATTRIBUTE_ATTACKS[row["attribute_attack"]].title.lower()
        confusion(row["mixed_labels"], row["mixed_shares"], row["mixed_pairs"], name, attack)


def confusion(
    labels: Sequence[str],
    shares: Sequence[Sequence[float]],
    pairs: Sequence[Sequence[Any]],
    name: str,
    attack: str,
) -> None:
    """Draw an attack's confusion matrix, and the list of its most frequent confusions."""
    if not pairs:
        st.markdown("No label is mistaken for another.")
        return
    true, answered, share = pairs[0]
    absent = "" if true in labels else "This mistake is not in the figure, which shows"
    st.markdown(
        f"The {attack} makes one mistake most often: for {format_percent(share)} of the texts of "
        f"**{plain(true)}**, it answers **{plain(answered)}**. "
        f"{absent or 'The figure shows'} the {len(labels)} labels with the most mistakes in total. "
        "Rows: the true label. "
        "Columns: the answer. Cells: % of the row's texts. A frame marks the right answers."
    )
    st.plotly_chart(
        confusion_figure(labels, shares, is_dark=st.context.theme.type == "dark"),
        key=f"{name}-confusion",
        config=chart_config(f"leakscope-{name}-mistakes"),
        alt="How often each label is inferred (columns) for each true label (rows); the most "
        "frequent mistakes are listed below",
    )
    with st.expander("The most frequent mistakes", icon=":material/table:"):
        st.dataframe(
            [
                {
                    "true label": neutral_cell(t),
                    "mistaken for": neutral_cell(s),
                    "share of its texts": format_percent(p),
                }
                for t, s, p in pairs
            ],
            key=f"{name}-mistakes",
            hide_index=True,
        )


def typed_text_card(found: InferenceResult, attribute: str) -> None:
    """Draw the text input; attack the text and draw its five likeliest labels with evidence."""
    controls.text_input()
    st.button(
        "Draw an unseen text",
        key="attributes-draw",
        icon=":material/shuffle:",
        help="Draws a text that was not used for training, and shows its true label beside the "
        "answer",
        on_click=state.use_random_text,
        args=(found.unseen,),
    )
    if not state.text().strip():
        st.info("Type or paste a text, or draw one.", icon=":material/edit:")
        return
    try:
        vector = cache.encoder(ENCODER).encode([check_text(state.text())])[0]
    except CoreError as error:
        show_error(error, title="This text cannot be attacked")
        return
    from leakscope.core.attacks.attributes.experiment import top_labels  # takes seconds to import

    guesses = top_labels(found.linear, found.labels, vector)
    reasons = _label_evidence(found, [guess.label for guess in guesses], vector)
    truth = state.true_label() if state.true_label() in found.labels else ""
    _draw_verdict(guesses[0].label, guesses[0].probability, truth, attribute, reasons)
    left, right = st.columns(2)
    left.markdown(f"**The likeliest of {len(found.labels)}**{' (● true label)' if truth else ''}")
    left.plotly_chart(
        guesses_figure(guesses, truth),
        key="attributes-guesses",
        config=chart_config("leakscope-likeliest"),
        alt="; ".join(f"{guess.label}: {format_percent(guess.probability)}" for guess in guesses),
    )
    if reasons:
        right.markdown("**Evidence: topic or the rest**")
        right.plotly_chart(
            reasons_figure([guess.label for guess in guesses], reasons),
            key="attributes-reasons",
            config=chart_config("leakscope-topic-or-style"),
            alt="; ".join(
                f"{g.label}: topic {w.topic:+.1f}, rest {w.rest:+.1f} nats"
                for g, w in zip(guesses, reasons, strict=True)
            ),
        )
        r2 = found.topic.r2_ if found.topic is not None else 0.0
        st.caption(
            "Topic: the part of the vector that the text's content words predict. The rest: "
            "function words, punctuation, word order, and what single words do not predict. "
            f"Content words predict {format_percent(max(r2, 0.0))} of the variance of such vectors."
        )


def _label_evidence(
    found: InferenceResult, labels: Sequence[str], vector: Any
) -> list[LabelEvidence]:
    """Compute the evidence of topic and rest for each label; [] without a topic model."""
    if found.topic is None:
        return []
    predicted = found.topic.predict([state.text()])[0]
    numbers = {label: i for i, label in enumerate(found.labels)}
    from leakscope.core.attacks.attributes.parts import explain_label

    return [explain_label(found.linear, vector, predicted, numbers[label]) for label in labels]


def _draw_verdict(
    label: str, probability: float, truth: str, attribute: str, reasons: Sequence[LabelEvidence]
) -> None:
    """Draw the likeliest label, whether it is right, and the share of topic in the evidence."""
    verdict = f"Likeliest {plain(attribute)}: **{plain(label)}**, {format_percent(probability)}."
    if truth:
        is_right = truth == label
        verdict += " That is right." if is_right else f" The true label is **{plain(truth)}**."
    share = reasons[0].topic_share if reasons else float("nan")
    if share == share:
        verdict += (
            f" Of the evidence for it, {format_percent(share)} is topic and "
            f"{format_percent(1 - share)} is the rest."
        )
    elif reasons:
        verdict += " Neither topic nor the rest supports it; other labels are even less likely."
    st.markdown(verdict)


def how_it_is_computed() -> None:
    """Draw an explanation of how accuracy is measured and evidence is divided."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "**Attribute inference** (Song & Raghunathan 2020, §4 and Alg. 3). The attacker has "
            "$N_s$ texts of each of $|S|$ labels with their vectors $\\Phi(x)$, trains a "
            "classifier on them, and applies it to other vectors. Labelled texts and targets are "
            "split by source, and a target that nearly repeats a labelled text is left out. "
            "Intervals are 95 % CIs from a bootstrap over documents or, without documents, over "
            "distinct texts. *Guessing* answers the same labels for every text. With *shuffled "
            "labels* there is nothing to learn, so the accuracy should not exceed guessing."
        )
        draw_entries(ATTRIBUTE_ATTACKS.values())
        st.markdown(
            "**Topic and rest.** Ridge regression predicts $\\hat x$, the topic, from the content "
            "words of the text; what remains of the vector is the rest. Labels are not used. The "
            "probe is linear, so the contribution of each part to the log-odds of a label, "
            "relative to the mean over all labels, is exact:"
        )
        st.latex(
            r"(w_s - \bar w)^\top (\hat x - \mu) + (w_s - \bar w)^\top (x - \hat x)"
            r" + (b_s - \bar b)"
        )


def caveats() -> None:
    """Draw the limitations of the attributes page."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- The probabilities are divided among the labels that the probe knows. If the true "
            "author is not one of them, the probe still names somebody.\n"
            "- Topic is what a linear map predicts from single content words: a lower bound. The "
            "rest contains style, and also the topic that this map misses.\n"
            "- Texts of one work share people and places. Accuracy with labelled texts from the "
            "same works says less about an author than accuracy with other works.\n"
            "- The encoder reads at most a few hundred word pieces; it ignores the remainder of a "
            "longer text.\n"
            "- A label that this probe misses is not proven safe: the probe learned from few "
            "texts.\n"
            "- Other attributes, such as gender or employer, may leak more or less."
        )
