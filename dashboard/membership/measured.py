"""What was measured of models that were trained here: finding, curve, what is found by rarity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.attacks.membership.rates import COARSE, FEWEST_EXPECTED, AtRate
from core.figures.membership import decile_figure, roc_figure
from core.registry import looks_of
from core.results import Score
from core.said import auc_said
from core.spreadsheets import table_csv
from core.studies.membership_shipped import FILES, Measured, strongest, verdict
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.membership import state
from dashboard.origin import show_origin
from dashboard.state import keep_choice
from dashboard.story.pinning import note_figure

__all__ = [
    "QUESTION",
    "at_said",
    "choice",
    "commands",
    "deciles",
    "finding",
    "note",
    "nothing_measured",
    "picture",
    "save",
]

QUESTION = "Was it trained on this text?"

_TENTHS = 10


def nothing_measured(slot: Any) -> None:
    """Draw the question, and which commands would answer it."""
    slot.title(QUESTION, anchor=False)
    slot.info(
        "Nothing was measured for this page yet, so that it shows no figure of its own. These "
        "commands measure, in a checkout of Leakscope; `DATA` is a folder with the collections: "
        "`docs/data.md` says where each comes from.",
        icon=":material/science:",
    )
    for study in FILES:
        slot.code(_command(study), language="sh", wrap_lines=True)
    slot.markdown(
        "A classifier of your own can be attacked all the same, below; so can a made-up one."
    )


def _command(study: str) -> str:
    return (
        f"python -m core study {study} --spec docs/presets/{study}.spec.json --files DATA "
        f"--out assets/membership/{FILES[study]}"
    )


def choice(found: Sequence[Measured]) -> Measured:
    """Draw the choice of model, data and attack, and return what was measured of it."""
    ranked = sorted(found, key=lambda one: -one.auc.ci95.low)
    best = strongest(found)
    ranked = [best, *(one for one in ranked if one is not best)]
    models = {one.model: one.model_title for one in ranked}
    # An address may name the data alone.
    named = [one.model for one in ranked if one.data == st.session_state.get(state.DATA_KEY)]
    keep_choice(state.MODEL_KEY, [*named, *models])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        model = st.pills(
            "Model",
            list(models),
            key=state.MODEL_KEY,
            required=True,
            wrap=True,
            persist_state="session",
            format_func=models.__getitem__,
            help="What was trained here on half of some texts, and then attacked",
        )
        here = [one for one in ranked if one.model == model]
        data = {one.data: one.data_title for one in here}
        keep_choice(state.DATA_KEY, list(data))
        chosen = st.selectbox(
            "Data",
            list(data),
            key=state.DATA_KEY,
            persist_state="session",
            format_func=lambda name: data.get(name, name),
            help="What it was trained on, and how it was drawn who is a member",
            width=380,
        )
        here = [one for one in here if one.data == chosen]
        attacks = {one.attack: f"{one.attack_title} ({one.unit})" for one in here}
        keep_choice(state.ATTACK_KEY, list(attacks))
        attack = st.selectbox(
            "Attack",
            list(attacks),
            key=state.ATTACK_KEY,
            persist_state="session",
            format_func=lambda name: attacks.get(name, name),
            help="How the attacker decides; in brackets what is called a member. The strongest "
            "stands first",
            width=380,
        )
    return next(one for one in here if one.attack == attack)


def finding(slot: Any, one: Measured, n_tried: int, *, is_title: bool = True) -> None:
    """Draw the answer to the page's question: how often a member is told from another.

    Parameters
    ----------
    is_title : bool
        No where the page is about a file of the visitor's own.
    """
    auc = one.auc
    (slot.title if is_title else slot.subheader)(verdict(one), anchor=False)
    seen = [
        f"{at_said(at)} of members where {100 * at.fpr:g} % of the others are falsely accused"
        for at in one.at
        if at.is_shown
    ]
    unseen = [f"{100 * at.fpr:g} %" for at in one.at if not at.is_shown]
    told = f" It finds {'; '.join(seen)}." if seen else ""
    if unseen:
        told += f" At {' and '.join(unseen)} it is not resolvable: too few non-members."
    if any(at.resolution == "coarse" for at in one.at):
        told += f" {COARSE}"
    control = "" if one.control is None else (
        f" Where chance alone says who counts as a member, it is {100 * one.control.value:.0f}."
    )  # fmt: skip
    if one.null is not None:
        control += _null_said(one.null)
    if one.blind:
        control += f" {one.blind}"
    years = (
        " The classes are years, and a year says who was there: part of what is found is when "
        "people wrote, not how, so this stands in no headline."
    ) if one.is_by_year else ""  # fmt: skip
    slot.markdown(
        f"{plain(one.attack_title)} against the {plain(one.model_title)} on "
        f"{plain(one.data_title)}: an AUC of **{auc_said(auc)}** of 100, 95 % interval in "
        f"brackets, where guessing reaches {100 * auc.chance:.0f}.{control}"
        f"{told} Of {auc.n:,} {one.unit}; means over {one.n_draws} "
        f"draw{'s' if one.n_draws != 1 else ''} of who is a member. It is one of {n_tried} attacks "
        "that were tried on the same; the interval is not corrected for choosing among them."
        f"{_of_the_rarest(one)}{years}"
    )


def _null_said(null: Score) -> str:
    """Return what is found of a model that was trained on neither, and what that says."""
    is_even = null.ci95.low <= null.chance <= null.ci95.high
    more = "" if is_even else ": members and others differ in more than membership"
    return f" Of a model that was trained on neither it is {auc_said(null)}{more}."


def _of_the_rarest(one: Measured) -> str:
    """Return what is found where words are rarest: a mean over all hides it."""
    if not _rises(one):
        return ""
    tenth, auc = one.deciles("auc")[-1]
    of = "the rarest tenth of words" if tenth == _TENTHS else "the rarest words measured"
    return f" Of {of} it is **{auc_said(auc)}**."


def at_said(at: AtRate) -> str:
    """Return a true-positive rate in per cent with its interval, or that it is not resolvable."""
    return (
        f"{at.tpr.in_percent().said()} %{at.mark}"
        if at.is_shown
        else "not resolvable, too few non-members"
    )


def picture(one: Measured) -> None:
    """Draw the curve, or the rates where none is stored."""
    has_curve = any(row.facts.get("curve") for row in one.rows)
    if not one.curve:
        st.info("Too few non-members to tell any of these rates.", icon=":material/info:")
        return
    st.plotly_chart(
        roc_figure(one.curve, has_curve=has_curve),
        key="membership-roc",
        config=chart_config("leakscope-membership"),
        alt="Share of members found against share of non-members falsely accused, both on "
        "logarithmic axes, with its 95 % interval and the line of chance; the sentence above "
        "tells the rates",
    )
    drawn = (
        "The curve begins where one false accusation can be seen, and is coarse left of "
        f"{100 * FEWEST_EXPECTED / one.n_outsiders:.2g} %. Its band allows for the threshold, and "
        "counts texts of one user as one: it is wide rather than narrow."
        if has_curve
        else "Of this study the rates alone are stored, each with its interval."
    )
    st.caption(
        "Up is leaking; on the dotted line an attack guesses. Both axes are logarithmic: what "
        f"matters is who is found while hardly anybody is falsely accused. {drawn}"
    )
    show_origin(one.provenances)


def deciles(found: Sequence[Measured], one: Measured) -> None:
    """Draw what is found of frequent and of rare words, a line for each attack."""
    same = [each for each in found if (each.model, each.data) == (one.model, one.data)]
    same = [each for each in same if each.by_decile and each.unit == one.unit]
    if not same:
        return
    heading = "Rare words give more away" if _rises(one) else "By how frequent the words are"
    st.header(heading, anchor=False)
    looks = looks_of({each.attack: each.entry for each in same})
    st.plotly_chart(
        decile_figure([(each.attack_title, looks[each.attack], each.deciles()) for each in same]),
        key="membership-deciles",
        config=chart_config("leakscope-membership-deciles"),
        alt="Advantage of each attack in each tenth of the words, the most frequent first; the "
        "table below holds the same numbers",
    )
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(
            [
                {"attack": each.attack_title, "tenth": tenth, "advantage": score.said(3)}
                for each in same
                for tenth, score in each.deciles()
            ],
            key="membership-deciles-table",
            hide_index=True,
        )
    st.caption(
        "Advantage: members called so less others called so, as shares; 0 is guessing. In "
        "brackets the 95 % interval."
    )


def _rises(one: Measured) -> bool:
    """Return whether the rarest tenth surely gives more away than the most frequent."""
    points = one.deciles("auc")
    return len(points) > 1 and points[-1][1].ci95.low > points[0][1].ci95.high


def commands(found: Sequence[Measured]) -> list[str]:
    """Return the tables that are shown, whose specifications measure them again."""
    return list(dict.fromkeys(each.study for each in found))


def note(slot: Any, one: Measured) -> None:
    """Note the curve for a story."""
    if one.curve:
        has_curve = any(row.facts.get("curve") for row in one.rows)
        alt = "Share of members found against share of non-members falsely accused"
        note_figure(slot, lambda: roc_figure(one.curve, has_curve=has_curve), alt)


def save(one: Measured) -> None:
    """Draw what saves the figure's numbers."""
    save_csv(
        lambda: table_csv([_line(one, rate, score) for rate, score in one.curve]),
        "membership-rates",
        about="The figure's numbers: one row a rate of false accusations",
    )


def _line(one: Measured, rate: float, score: Score) -> dict[str, Any]:
    return {
        "model": one.model,
        "data": one.data,
        "attack": one.attack,
        "falsely_accused": rate,
        "found": score.value,
        "found_low": score.ci95.low,
        "found_high": score.ci95.high,
    }
