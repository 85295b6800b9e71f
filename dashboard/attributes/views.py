"""What the page of attributes shows: the finding, accuracy, a text's likeliest labels, mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from core.errors import CoreError
from core.figures.attributes import (
    accuracy_figure,
    confusion_figure,
    guesses_figure,
    reasons_figure,
)
from core.results import Score
from core.spreadsheets import neutral_cell, table_csv
from core.studies.attribute_curves import (
    SOURCES,
    View,
    curves,
    mean_at,
    strongest,
    table,
    with_mixed,
)
from core.studies.attribute_request import Inferred
from core.studies.rows import Row
from core.text import check_text
from dashboard import cache
from dashboard.attributes import controls, state
from dashboard.calm import plain, show_error
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.inversion.answers import ENCODER
from dashboard.story.pinning import note_figure

if TYPE_CHECKING:
    from core.attacks.attributes.parts import Why

__all__ = ["QUESTION", "STUDY", "accuracy", "confusion", "finding", "mistakes_at", "note",
           "typed"]  # fmt: skip

QUESTION = "Who wrote it, as far as the vector tells?"
STUDY = (
    "python -m core study attributes --spec docs/results/attributes-novels.spec.json --files DATA"
)
_FIVE = 5
_NAMED = {
    name: f"the {entry.title.lower()}"
    for name, entry in ATTRIBUTE_ATTACKS.items()
    if not entry.is_baseline
}
"""The attacks on vectors."""

_BASELINES = {"textcnn": "a network on the raw text", "words": "a classifier on the raw words"}


def finding(slot: Any, rows: Sequence[Row], view: View, *, is_title: bool) -> None:
    """Draw the answer to the page's question, and what to hold it against."""
    attack = strongest(rows, view, ENCODER.name)
    one, five = (mean_at(rows, view, attack, f"top{k}", ENCODER.name) for k in (1, 5))
    balanced = mean_at(rows, view, attack, "balanced", ENCODER.name)
    if one is None:
        if is_title:
            slot.title(QUESTION, anchor=False)
        slot.markdown("No attack on this encoder's vectors was measured at this size.")
        return
    attribute = plain(str(rows[0].get("label", "label")))
    said = f"The vector alone gives away the {attribute} of {_percent(one.value)} of the texts"
    if balanced is not None:
        said += f", {_percent(balanced.value)} if each label counts alike"
    if is_title:
        slot.title(said, anchor=False)
    else:
        slot.subheader(said, anchor=False)
    among = (
        f" It is among the five likeliest for **{_said(five)}**; guessing reaches "
        f"{_percent(five.chance)}."
        if five is not None and _k(view) == _FIVE
        else ""
    )
    even = (
        f" The labels are unequal. Its balanced accuracy, the mean over labels, is "
        f"**{_share(balanced)}**; guessing reaches {_percent(balanced.chance)}."
        if balanced is not None
        else ""
    )
    slot.markdown(
        f"Of {view.n_labels} labels, {_NAMED[attack]}, which learned from {view.n_per_label} "
        f"labelled texts of each ({SOURCES[view.source]}), has the right one at once for "
        f"**{_said(one)}**; guessing reaches {_percent(one.chance)}.{even}{among} "
        f"{_beside(rows, view)}"
    )
    if told := _topic(rows, view, attack):
        slot.markdown(told)


def _k(view: View) -> int:
    """Return the k to tell: among five of five labels everything is right."""
    return _FIVE if view.n_labels > _FIVE else 1


def _placed(view: View) -> str:
    return "among five" if _k(view) == _FIVE else "at once"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def _said(score: Score) -> str:
    return _share(score, f" of {score.n:,} texts")


def _share(score: Score, of: str = "") -> str:
    value, interval = score.in_percent().parts(0)
    told = f" (95 % interval {interval})" if score.ci95.is_known else ""
    return f"{value}\N{NO-BREAK SPACE}%{of}{told}"


def _beside(rows: Sequence[Row], view: View) -> str:
    """Return what the baselines reach."""
    found = {name: mean_at(rows, view, name, f"top{_k(view)}") for name in _BASELINES}
    told = [
        f"{_BASELINES[n]} {_percent(score.value)}"
        for n, score in found.items()
        if score is not None
    ]
    if not told:
        return ""
    return f"Without any vector: {' and '.join(told)}, {_placed(view)}."


def _topic(rows: Sequence[Row], view: View, attack: str) -> str:
    """Return how much of the score is topic, by the vector's parts and by other works."""
    told, k = [], _k(view)
    topic, rest = (
        mean_at(rows, view, attack, f"top{k}_{part}", ENCODER.name) for part in ("topic", "rest")
    )
    if topic is not None and rest is not None:
        told.append(
            "**Topic or style?** From the part of the vector that content words tell (its topic) "
            f"alone, it has {_percent(topic.value)} right {_placed(view)}; from the rest "
            f"alone {_percent(rest.value)}; guessing {_percent(topic.chance)}."
        )
    share = mean_at(rows, view, attack, f"topic_share_top{k}", ENCODER.name)
    if share is not None:
        told.append(
            f"{_percent(share.value)} of what it gains over guessing is gone where labelled "
            "texts are of other works than those attacked: so much was what texts of a work have "
            "in common."
        )
    return " ".join(told)


def accuracy(rows: Sequence[Row], view: View, along: str, name: str) -> None:
    """Draw accuracy against labelled texts or labels, and its numbers."""
    st.plotly_chart(
        accuracy_figure(curves(rows, view, along), along, view.k),
        key=f"{name}-accuracy",
        config=chart_config(f"leakscope-{name}"),
        alt="Share of texts whose label is found, a line an attack, beside guessing; the table "
        "below holds the same numbers",
    )
    with st.expander("The numbers as a table", icon=":material/table:"):
        told = table(rows)
        st.dataframe(
            [{k: neutral_cell(v) for k, v in row.items()} for row in told],
            key=f"{name}-table",
            hide_index=True,
        )
        save_csv(lambda: table_csv(told), name, about="One row an attack, a size and a seed.")


def note(slot: Any, rows: Sequence[Row], view: View, along: str) -> None:
    """Note the accuracy for a story."""
    alt = "Share of texts whose label is found, a line an attack, beside guessing"
    note_figure(slot, lambda: accuracy_figure(curves(rows, view, along), along, view.k), alt)


def mistakes_at(rows: Sequence[Row], view: View, name: str) -> None:
    """Draw which labels the probe mixes up at its largest size, where the rows tell it."""
    row = with_mixed(rows, view.source, ENCODER.name)
    if row is not None:
        confusion(row["mixed_labels"], row["mixed_shares"], row["mixed_pairs"], name)


def confusion(
    labels: Sequence[str],
    shares: Sequence[Sequence[float]],
    pairs: Sequence[Sequence[Any]],
    name: str,
) -> None:
    """Draw the labels that are most mixed up, and say which for which."""
    if not pairs:
        st.markdown("No label is mixed up with another.")
        return
    true, said, share = pairs[0]
    st.markdown(
        f"Most often **{plain(true)}** is taken for **{plain(said)}**: {_percent(share)} of the "
        f"texts. The {len(labels)} labels most often in a mistake, % of the texts; rows: the true "
        "label; columns: the one answered; framed: right."
    )
    st.plotly_chart(
        confusion_figure(labels, shares, is_dark=st.context.theme.type == "dark"),
        key=f"{name}-confusion",
        config=chart_config(f"leakscope-{name}-mistakes"),
        alt="How often each label is answered for each, a row a true label; the most frequent "
        "mistakes are listed below",
    )
    with st.expander("The most frequent mistakes", icon=":material/table:"):
        st.dataframe(
            [
                {"true": neutral_cell(t), "taken for": neutral_cell(s), "of its texts": _percent(p)}
                for t, s, p in pairs
            ],
            key=f"{name}-mistakes",
            hide_index=True,
        )


def typed(found: Inferred, attribute: str) -> None:
    """Draw what one types, the five likeliest labels of it, and what speaks for each."""
    controls.text_input()
    st.button(
        "A text that it has not seen",
        key="attributes-draw",
        icon=":material/shuffle:",
        help="Draws a text that it did not learn from, and tells its label beside the answer",
        on_click=state.draw_unseen,
        args=(found.unseen,),
    )
    if not state.text().strip():
        st.info("Type or paste a text, or draw one.", icon=":material/edit:")
        return
    try:
        vector = cache.encoder(ENCODER).encode([check_text(state.text())])[0]
    except CoreError as error:
        show_error(error, title="This text cannot be read")
        return
    from core.attacks.attributes.experiment import likeliest  # takes seconds to import

    guesses = likeliest(found.linear, found.labels, vector)
    reasons = _reasons(found, [guess.label for guess in guesses], vector)
    truth = state.truth() if state.truth() in found.labels else ""
    _verdict(guesses[0].label, guesses[0].probability, truth, attribute, reasons)
    left, right = st.columns(2)
    left.markdown(f"**The likeliest of {len(found.labels)}**{' (● is right)' if truth else ''}")
    left.plotly_chart(
        guesses_figure(guesses, truth),
        key="attributes-guesses",
        config=chart_config("leakscope-likeliest"),
        alt="; ".join(f"{guess.label}: {_percent(guess.probability)}" for guess in guesses),
    )
    if reasons:
        right.markdown("**What of the vector did it**")
        right.plotly_chart(
            reasons_figure([guess.label for guess in guesses], reasons),
            key="attributes-reasons",
            config=chart_config("leakscope-topic-or-style"),
            alt="; ".join(f"{g.label}: topic {w.topic:+.1f}, rest {w.rest:+.1f} nats"
                          for g, w in zip(guesses, reasons, strict=True)),
        )  # fmt: skip
        r2 = found.topic.r2_ if found.topic is not None else 0.0
        st.caption(
            "Topic: the part of the vector that the content words of the text tell. The rest: "
            "function words, punctuation, order, and what single words do not tell. Content words "
            f"tell {_percent(max(r2, 0.0))} of what vectors of such texts differ in."
        )


def _reasons(found: Inferred, labels: Sequence[str], vector: Any) -> list[Why]:
    """Return what topic and rest add to each label; none where topics could not be learned."""
    if found.topic is None:
        return []
    predicted = found.topic.predict([state.text()])[0]
    numbers = {label: i for i, label in enumerate(found.labels)}
    from core.attacks.attributes.parts import why

    return [why(found.linear, vector, predicted, numbers[label]) for label in labels]


def _verdict(
    label: str, probability: float, truth: str, attribute: str, reasons: Sequence[Why]
) -> None:
    told = f"Likeliest {plain(attribute)}: **{plain(label)}**, {_percent(probability)}."
    if truth:
        told += f" {'That is right.' if truth == label else f'In truth: **{plain(truth)}**.'}"
    share = reasons[0].topic_share if reasons else float("nan")
    if share == share:
        told += (
            f" Of what speaks for it, {_percent(share)} is topic, {_percent(1 - share)} the rest."
        )
    elif reasons:
        told += " Neither its topic nor the rest speaks for it: others are less likely still."
    st.markdown(told)
