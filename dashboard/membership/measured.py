"""Results on models trained by the project: choice, captions and word frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from leakscope.core.attacks.membership.rates import FEWEST_EXPECTED
from leakscope.core.figures.membership import decile_figure
from leakscope.core.findings.membership import (
    FEW_EXPECTED,
    QUESTION,
    describe_rates,
    rare_words_leak_more,
)
from leakscope.core.registry import marker_styles
from leakscope.core.results import Score
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.membership.shipped import FILES, Measured, strongest
from leakscope.dashboard.membership import state
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.finding import limits_expander
from leakscope.dashboard.ui.state import keep_choice
from leakscope.dashboard.ui.terms import new_term_help


def nothing_measured(slot: Any) -> None:
    """Draw a note that no results ship, and the commands that measure them."""
    slot.title(QUESTION, anchor=False)
    slot.info(
        "Nothing was measured for this page yet. The commands below measure it in a checkout of "
        "Leakscope. `DATA` is a folder with the collections; `docs/data.md` says where to get "
        "each.",
        icon=":material/science:",
    )
    for study in FILES:
        slot.code(_command(study), language="sh", wrap_lines=True)
    slot.markdown(
        "You can still attack your own classifier, or a made-up one, under *Your own classifier*."
    )


def _command(study: str) -> str:
    """Return the command that measures a study."""
    return (
        f"leakscope study {study} --spec docs/presets/{study}.spec.json --files DATA "
        f"--out results/{FILES[study]}"
    )


def result_picker(found: Sequence[Measured]) -> Measured:
    """Draw the choice of model, data and attack, and return its result."""
    ranked = sorted(found, key=lambda one: -one.auc.ci95.low)
    best = strongest(found)
    ranked = [best, *(one for one in ranked if one is not best)]
    models = {one.model: one.model_title for one in ranked}
    # A URL may name the data without the model.
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
            help="The model under attack",
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
            help="What the model was trained on, and how the members were drawn",
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
            help="How the attacker decides. In brackets: what is called a member. The strongest "
            "is listed first.",
            width=380,
        )
    return next(one for one in here if one.attack == attack)


def curve_captions(slot: Any, one: Measured) -> None:
    """Draw how to read the ROC curve, and the attack's rates and controls."""
    if one.curve:
        drawn = (
            "The curve starts at the rate that gives about one false positive. Below a "
            f"false-positive rate of {100 * FEWEST_EXPECTED / one.n_outsiders:.2g} %, it is only a "
            f"rough estimate (coarse): {FEW_EXPECTED}. The band is cautious: it covers the error "
            "of the attack's threshold and counts all texts of a user as one. The intervals in "
            "the text may leave out this error and are then narrower: to be safe, cite the band."
            if any(row.facts.get("curve") for row in one.rows)
            else "This study stores only these rates, each with its 95 % CI."
        )
        slot.caption(
            "The higher the curve, the more leaks; the dotted line is guessing. The axes are "
            "logarithmic, to give room to low false-positive rates (left): there, few are wrongly "
            "called members, so a verdict is worth most."
        )
    else:
        slot.info(
            "There are too few non-members to resolve any of these rates.", icon=":material/info:"
        )
    text = describe_rates(one)
    with limits_expander(slot):
        st.markdown(text, help=new_term_help(text))
        if one.curve:
            st.markdown(drawn)


def frequency_deciles(found: Sequence[Measured], one: Measured) -> None:
    """Draw each attack's advantage by the frequency decile of the words."""
    same = [each for each in found if (each.model, each.data) == (one.model, one.data)]
    same = [each for each in same if each.by_decile and each.unit == one.unit]
    if not same:
        st.info(
            "Word frequency was studied only for word vectors and dual encoders. Choose one above.",
            icon=":material/bar_chart:",
        )
        return
    heading = "Rare words leak more" if rare_words_leak_more(one) else "Leakage by word frequency"
    st.header(heading, anchor=False)
    styles = marker_styles({each.attack: each.entry for each in same})
    st.plotly_chart(
        decile_figure([(each.attack_title, styles[each.attack], each.deciles()) for each in same]),
        key="membership-deciles",
        config=chart_config("leakscope-membership-deciles"),
        alt="Advantage of each attack by decile of word frequency, the most frequent first; the "
        "table below has the same numbers",
    )
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(
            [
                {"attack": each.attack_title, "decile": decile, "advantage": score.format(3)}
                for each in same
                for decile, score in each.deciles()
            ],
            key="membership-deciles-table",
            hide_index=True,
        )
    st.caption(
        "Advantage: true-positive rate minus false-positive rate; 0 is guessing. 95 % CI in "
        "brackets. Decile 1 has the most frequent words."
    )


def shown_tables(found: Sequence[Measured]) -> list[str]:
    """Return the names of the shown tables, which commands reproduce."""
    return list(dict.fromkeys(each.study for each in found))


def save_curve(one: Measured) -> None:
    """Draw the button that downloads the curve as CSV."""
    save_csv(
        lambda: table_csv([_csv_row(one, rate, score) for rate, score in one.curve]),
        "membership-rates",
        about="The figure's numbers, one row per false-positive rate",
    )


def _csv_row(one: Measured, rate: float, score: Score) -> dict[str, Any]:
    """Return a point of the curve as a CSV row."""
    return {
        "model": one.model,
        "data": one.data,
        "attack": one.attack,
        "falsely_accused": rate,
        "found": score.value,
        "found_low": score.ci95.low,
        "found_high": score.ci95.high,
    }
