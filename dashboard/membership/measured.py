"""Results on models trained by the project: choice, captions, scores and word frequency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import streamlit as st

from leakscope.core.attacks.membership.rates import FEWEST_EXPECTED
from leakscope.core.attacks.membership.score_distribution import (
    RankShares,
    ScoreShares,
    percentile_half_above,
)
from leakscope.core.figures.membership import decile_figure, rank_figure, score_figure
from leakscope.core.findings.membership import (
    FEW_EXPECTED,
    QUESTION,
    describe_rates,
    rare_words_leak_more,
)
from leakscope.core.registry import marker_styles
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.membership.shipped import FILES, Measured, strongest
from leakscope.dashboard.membership import state
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.finding import limits_expander
from leakscope.dashboard.ui.state import keep_choice
from leakscope.dashboard.ui.terms import new_term_help

_HALF = 0.5


def nothing_measured(slot: Any) -> None:
    """Draw a note that no results ship, with the commands that would measure them."""
    slot.title(QUESTION, anchor=False)
    slot.info(
        "Nothing was measured for this page yet. The commands below measure it in a checkout of "
        "Leakscope. `DATA` is a folder with the collections; `docs/data.md` says where to get "
        "each.",
        icon=":material/science:",
    )
    for study in FILES:
        command = (
            f"leakscope study {study} --spec docs/presets/{study}.spec.json --files DATA "
            f"--out results/{FILES[study]}"
        )
        slot.code(command, language="sh", wrap_lines=True)
    slot.markdown(
        "You can still attack your own classifier, or a made-up one, under *Your own classifier*."
    )


def result_picker(found: Sequence[Measured]) -> Measured:
    """Draw selectors of model, data and attack; return the selected result."""
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
    """Draw how to read the ROC curve, and an expander with the attack's rates and controls."""
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
    """Draw each attack's advantage by decile of word frequency, or a note if not studied."""
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


def save_curve(one: Measured) -> None:
    """Draw the button that downloads an attack's ROC curve as CSV."""
    save_csv(
        lambda: table_csv(
            [
                {
                    "model": one.model,
                    "data": one.data,
                    "attack": one.attack,
                    "falsely_accused": rate,
                    "found": score.value,
                    "found_low": score.ci95.low,
                    "found_high": score.ci95.high,
                }
                for rate, score in one.curve
            ]
        ),
        "membership-rates",
        about="The figure's numbers, one row per false-positive rate",
    )


def score_distributions(one: Measured) -> None:
    """Draw the scores of members and non-members with a table, or why they are not stored."""
    st.header("Scores of members and non-members", anchor=False)
    shares: ScoreShares | RankShares | None = one.shares or one.ranks
    if shares is None:
        why = (
            "Many scores of this attack are equal, and these results do not store their "
            "distribution."
            if any(row.facts.get("curve") for row in one.rows)
            else "These results store the rates above, but not the distribution of the scores."
        )
        st.info(f"{why} `leakscope study {one.study}` stores it.", icon=":material/info:")
        return
    st.markdown(_describe_overlap(one))
    st.plotly_chart(
        rank_figure(shares) if isinstance(shares, RankShares) else score_figure(shares),
        key="membership-scores",
        config=chart_config("leakscope-membership-measured-scores"),
        alt="Percentages of members and non-members by score range: the less they overlap, the "
        "more leaks; the table below has the same numbers",
    )
    lines = list(_bin_rows(shares))
    with st.expander("The scores as a table", icon=":material/table:"):
        # Screen readers can navigate a Markdown table.
        rows = [list(lines[0]), ["---:"] * len(lines[0]), *(line.values() for line in lines)]
        st.markdown("\n".join(f"| {' | '.join(map(str, row))} |" for row in rows))
    if isinstance(shares, RankShares):
        st.caption(
            "The ranges are percentiles of the non-members' scores: a score in *a*–*b* % is above "
            f"*a* but not above *b* per cent of them. Means over {one.n_draws} "
            f"draw{'s' if one.n_draws != 1 else ''} of members."
        )
    else:
        times = "once" if one.n_draws == 1 else f"{one.n_draws} times"
        st.caption(
            "These are the attack's own scores; the outermost ranges include all scores beyond "
            f"them. The members were drawn at random {times}. Only the first draw is shown, "
            "because scores of different models cannot be compared."
        )
    save_csv(
        lambda: table_csv([{"attack": one.attack, **line} for line in lines]),
        "membership-scores",
        about="The score distributions, one row per range of scores",
    )


def _describe_overlap(one: Measured) -> str:
    """Describe what share of non-members scores below at least half of the members."""
    if one.ranks is not None:
        share = 100 * (1 - next(rate for rate, score in one.curve if score.value >= _HALF))
    else:
        share = 0.0 if one.shares is None else percentile_half_above(one.shares)
    return (
        f"At least half of the members score above **{share:.0f} %** of the non-members. With "
        "guessing, half of the members would score above only half of the non-members."
    )


def _bin_rows(shares: ScoreShares | RankShares) -> Iterator[dict[str, object]]:
    """Yield a table row per range of scores: its bounds, and shares of members and non-members."""
    if isinstance(shares, RankShares):
        bounds, of, form = shares.bounds, "percentile of non-members", ".0f"
    else:
        bounds, of, form = shares.edges, "score", ".4g"
    sides = zip(pairwise(bounds.tolist()), shares.members, shares.outsiders, strict=True)
    for (low, high), inside, outside in sides:
        yield {
            f"{of}: from": float(f"{low:{form}}"),
            f"{of}: to": float(f"{high:{form}}"),
            "members, %": round(float(inside), 1),
            "non-members, %": round(float(outside), 1),
        }
