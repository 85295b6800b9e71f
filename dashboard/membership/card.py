"""What a verdict is worth at a prior that the reader sets, for one user or sample after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from core.attacks.membership.drawn import score_shares
from core.attacks.membership.rates import RATES, AtRate
from core.attacks.membership.verdict import Verdict, verdict_of, worth_at
from core.errors import CoreError
from core.figures.membership import score_figure
from core.results import Score
from core.said import percent_said
from core.spreadsheets import neutral_cell
from dashboard.calm import plain, show_error
from dashboard.charts import chart_config
from dashboard.membership import state
from dashboard.membership.own import plan_said
from dashboard.state import keep_choice

if TYPE_CHECKING:
    from core.attacks.membership.classifiers.evaluation import AttackOutcome
    from core.attacks.membership.classifiers.own_file import OwnAttacked
    from core.studies.membership_shipped import Measured

__all__ = ["card", "worth"]

_MOST_LISTED = 500
_MOST_TEXTS = 100


def worth(
    measured: Measured | None, own: AttackOutcome | None, *, is_simulated: bool = False
) -> None:
    """Draw the prior, and how many of those accused would be members."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.select_slider(
            "Members among those asked about: one in",
            state.odds_options(),
            key=state.PRIOR_KEY,
            persist_state="session",
            format_func=lambda n: f"{n:,}",
            help="The prior: of how many people or texts that one asks about one was trained on. "
            "The rarer members are, the more of the accusations are false",
        )
        st.segmented_control(
            "Falsely accused, of non-members",
            RATES,
            key=state.RATE_KEY,
            required=True,
            persist_state="session",
            format_func=lambda rate: f"{100 * rate:g} %",
            help="How cautious the attacker is: the threshold is set so that at most this share "
            "of non-members lies above it",
        )
    lines = []
    if measured is not None and not measured.is_control:
        lines += [_worth_said(measured.attack_title, at) for at in measured.at if _is_chosen(at)]
    if own is not None:
        mark = "Simulated: " if is_simulated else ""
        told = f"{mark}{plan_said(own.plan)}"
        rates = [at for at in own.calibrated or own.at if _is_chosen(at)]
        if own.is_valid:
            lines += [_worth_said(told, at) for at in rates]
        else:
            lines.append(f"**{plain(told)}**: not valid with these shadow models.")
    for line in lines:
        st.markdown(f"- {line}")


def _is_chosen(at: AtRate) -> bool:
    return at.fpr == _rate()


def _rate() -> float:
    return float(st.session_state[state.RATE_KEY])


def _worth_said(attack: str, at: AtRate) -> str:
    if not at.is_shown:
        return f"**{plain(attack)}**: {100 * at.fpr:g} % is not resolvable, too few non-members."
    found = worth_at(at, state.prior())
    return (
        f"**{plain(attack)}**: of those whom it calls members, **{_per_cent(found)}** are, where "
        f"one in {round(1 / state.prior()):,} is{at.mark}."
    )


def _per_cent(score: Score) -> str:
    value, interval = score.in_percent().parts(0)
    return f"{value} % (95 % interval {interval})"


def card(found: OwnAttacked, one: AttackOutcome) -> None:
    """Draw one user, or one sample: texts, scores, the verdict and what it means."""
    is_user = one.plan.level == "user"
    names = found.user_names if is_user else tuple(_sample_names(found))
    number = _pick(names, "User" if is_user else "Sample")
    at = next((at for at in one.calibrated if _is_chosen(at) and one.is_valid), None)
    try:
        verdict = None if at is None else verdict_of(one.ranking, number, at)
    except CoreError as error:
        show_error(error, title="This one cannot be judged")
        return
    with st.container(border=True):
        st.markdown(f"**{plain(names[number])}**")
        if verdict is not None:
            st.markdown(_verdict_said(verdict, is_user=is_user))
        else:
            st.markdown(_NO_SHADOWS if one.is_valid else _BAD_SHADOWS)
        if found.is_simulated:
            st.caption(":material/casino: Simulated: made-up scores of somebody who does not exist")
        st.caption(_truth_said(one, number, verdict))
        st.plotly_chart(
            score_figure(score_shares(one.ranking), marked=float(one.ranking.scores[number])),
            key="membership-card-scores",
            config=chart_config("leakscope-membership-card"),
            alt="Where the score of this one lies among those of members and of non-members",
        )
        _texts(found, found.samples_of(names[number]) if is_user else [number])


def _sample_names(found: OwnAttacked) -> list[str]:
    if not found.texts:
        return [f"sample {i + 1}" for i in range(len(found.labels))]
    return [f"{i + 1}: {text[:80] or '(no text)'}" for i, text in enumerate(found.texts)]


def _pick(names: tuple[str, ...], label: str) -> int:
    """Draw the choice of one of them; of very many by number."""
    key = f"{state.WHO_KEY}_{label}"
    if len(names) > _MOST_LISTED:
        if int(st.session_state.get(key, 1)) > len(names):
            st.session_state[key] = 1
        chosen = st.number_input(
            f"{label}, by number",
            1,
            len(names),
            key=key,
            help="Samples in the order of the table, users in that of the alphabet",
        )
        return int(chosen) - 1
    keep_choice(key, range(len(names)))
    return int(
        st.selectbox(
            label,
            range(len(names)),
            key=key,
            format_func=names.__getitem__,
            help="Who is judged, by all others of the table",
        )
    )


_NO_SHADOWS = (
    "**No verdict.** Its threshold has to come from shadow models that play the classifier: one "
    "that is set on the very samples under attack knows what it is asked. The table holds none, "
    "or too few for this attack: give rows of shadow models, their number in `shadow`."
)


_BAD_SHADOWS = (
    "**No verdict.** Which shadow models hold a sample predicts whether the classifier does, so "
    "that this attack is not valid here."
)


def _truth_said(one: AttackOutcome, number: int, verdict: Verdict | None) -> str:
    is_member = bool(one.ranking.members[number])
    told = "was trained on" if is_member else "was not trained on"
    who = "texts of this user" if one.plan.level == "user" else "this sample"
    truth = f"In truth, as the table says, the classifier {told} {who}"
    if verdict is None or not verdict.at.is_shown:
        return f"{truth}."
    return f"{truth}: the verdict is {'right' if is_member == verdict.is_called else 'wrong'}."


def _verdict_said(verdict: Verdict, *, is_user: bool) -> str:
    who = "user" if is_user else "sample"
    at, odds = verdict.at, round(1 / state.prior())
    if not at.is_shown:
        return (
            f"No verdict: with {at.n_outsiders:,} non-members of the shadow models, "
            f"{100 * at.fpr:g} % falsely accused cannot be seen. Choose a greater share above."
        )
    sign = "● Called a member." if verdict.is_called else "○ Not called a member."
    beside = (
        f"Its score is above that of {percent_said(verdict.share_below)} of the other non-members."
    )
    found = _per_cent(verdict.worth(state.prior()))
    asked = "called so" if verdict.is_called else "not called so"
    return (
        f"**{sign}** {beside} Where one {who} in {odds:,} is a member, **{found}** of those "
        f"{asked} are members. The threshold is that of shadow models, of which "
        f"it finds {_per_cent(at.tpr)} of the members at {100 * at.fpr:g} % falsely "
        f"accused{at.mark}; of this classifier's other non-members it accuses "
        f"{_per_cent(verdict.accused)}."
    )


def _texts(found: OwnAttacked, numbers: list[int]) -> None:
    """Draw the samples, with what the classifier and the strongest attack say of each."""
    of_samples = [o for o in found.outcomes if o.plan.level == "sample"]
    best = max(of_samples, key=lambda outcome: (outcome.is_valid, outcome.auc.ci95.low))
    scores = best.ranking.scores
    names = _sample_names(found) if not found.texts else found.texts
    st.dataframe(
        [
            {
                "sample": neutral_cell(names[i]),
                "class": neutral_cell(found.labels[i]),
                "probability of its class": float(found.confidences[i]),
                "score": float(scores[i]),
                "above, of non-members": percent_said(_share_below(scores[i], best)),
            }
            for i in numbers[:_MOST_TEXTS]
        ],
        key="membership-card-texts",
        hide_index=True,
        column_config={
            "probability of its class": st.column_config.NumberColumn(format="%.3f"),
            "score": st.column_config.NumberColumn(
                format="%.3g", help=f"Of the strongest attack on samples: {plan_said(best.plan)}"
            ),
        },
    )
    if len(numbers) > _MOST_TEXTS:
        st.caption(f"The first {_MOST_TEXTS} of {len(numbers):,} samples are shown.")


def _share_below(score: float, one: AttackOutcome) -> float:
    outside = one.ranking.scores[~one.ranking.members]
    return float((outside < score).mean())
