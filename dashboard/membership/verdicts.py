"""Verdicts on single users or samples, and what a verdict is worth at a given prior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from leakscope.core.attacks.membership.rates import RATES, AtRate
from leakscope.core.attacks.membership.score_distribution import score_shares
from leakscope.core.attacks.membership.verdict import Verdict, membership_probability, verdict_of
from leakscope.core.errors import CoreError
from leakscope.core.figures.membership import score_figure
from leakscope.core.findings.membership import describe_plan
from leakscope.core.findings.prose import plain
from leakscope.core.formatting import format_percent
from leakscope.core.results import Score
from leakscope.core.spreadsheets import neutral_cell
from leakscope.dashboard.membership import state
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.state import keep_choice

if TYPE_CHECKING:
    from leakscope.core.attacks.membership.classifiers.evaluation import AttackOutcome
    from leakscope.core.attacks.membership.classifiers.own_file import AttackedOutputs
    from leakscope.core.studies.membership.shipped import Measured

_MOST_LISTED = 500
_MOST_TEXTS = 100


def accusation_worth(
    measured: Measured | None, own: AttackOutcome | None, *, is_simulated: bool = False
) -> None:
    """Draw controls of prior and false-positive rate, and the precision of "member" verdicts."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.select_slider(
            "Share of members: one in",
            state.odds_options(),
            key=state.PRIOR_KEY,
            persist_state="session",
            format_func=lambda n: f"{n:,}",
            help="The prior: how common members are among the people or texts that you ask about. "
            "With rarer members, a larger share of the positive verdicts is wrong.",
        )
        st.segmented_control(
            "False-positive rate",
            RATES,
            key=state.RATE_KEY,
            required=True,
            persist_state="session",
            format_func=lambda rate: f"{100 * rate:g} %",
            help="How cautious the attacker is: at most this share of non-members scores above the "
            "threshold",
        )
    lines, rate = [], float(st.session_state[state.RATE_KEY])
    if measured is not None and not measured.is_control:
        lines += [
            _describe_worth(measured.attack_title, at) for at in measured.at if at.fpr == rate
        ]
    if own is not None:
        mark = "**Simulated.** " if is_simulated else ""
        title = describe_plan(own.plan)
        rates = [at for at in own.calibrated or own.at if at.fpr == rate]
        if own.is_valid:
            lines += [mark + _describe_worth(title, at) for at in rates]
        else:
            lines.append(
                f"{mark}The attack **{plain(title)}** is not valid with these shadow models."
            )
    for line in lines:
        st.markdown(f"- {line}")


def _describe_worth(attack: str, at: AtRate) -> str:
    """Describe an attack's precision at a false-positive rate and the selected prior."""
    if not at.is_shown:
        return (
            f"With the attack **{plain(attack)}**, a false-positive rate of {100 * at.fpr:g} % "
            "cannot be measured (not resolvable): there are too few non-members."
        )
    found = membership_probability(at, state.prior())
    return (
        f"If one in {round(1 / state.prior()):,} is a member, **{_format_percent(found)}** of "
        f"those called members are members (attack: {plain(attack)}). "
        + "This is a rough estimate (coarse). " * bool(at.mark)
        + "A verdict is never proof about one person."
    )


def _format_percent(score: Score) -> str:
    """Format a share (0 to 1) in per cent with its interval."""
    value, interval = score.in_percent().parts(0)
    return f"{value} % (95 % CI {interval})"


def verdict_card(found: AttackedOutputs, one: AttackOutcome) -> None:
    """Draw the selector of a user or sample, and a card with its verdict, scores and texts."""
    is_user = one.plan.level == "user"
    names = found.user_names if is_user else tuple(_sample_names(found))
    number = _sample_picker(names, "User" if is_user else "Sample")
    rate = float(st.session_state[state.RATE_KEY])
    at = next((at for at in one.calibrated if at.fpr == rate and one.is_valid), None)
    try:
        verdict = None if at is None else verdict_of(one.ranking, number, at)
    except CoreError as error:
        show_error(error, title="No verdict is possible")
        return
    with st.container(border=True):
        st.markdown(f"**{plain(names[number])}**")
        if verdict is not None:
            st.markdown(_describe_verdict(verdict, is_user=is_user))
        else:
            st.markdown(_NO_SHADOWS if one.is_valid else _BAD_SHADOWS)
        if found.is_simulated:
            st.caption(":material/casino: Simulated: made-up scores, not those of a real person")
        st.caption(_describe_truth(one, number, verdict))
        st.plotly_chart(
            score_figure(score_shares(one.ranking), marked=float(one.ranking.scores[number])),
            key="membership-card-scores",
            config=chart_config("leakscope-membership-card"),
            alt="The selected score among the scores of members and of non-members",
        )
        _sample_table(found, found.samples_of(names[number]) if is_user else [number])


def _sample_names(found: AttackedOutputs) -> list[str]:
    """Return a name for each sample: its number, and the beginning of its text if known."""
    if not found.texts:
        return [f"sample {i + 1}" for i in range(len(found.labels))]
    return [f"{i + 1}: {text[:80] or '(no text)'}" for i, text in enumerate(found.texts)]


def _sample_picker(names: tuple[str, ...], label: str) -> int:
    """Draw the selector of a user or sample, by number if there are many; return its index."""
    key = f"{state.WHO_KEY}_{label}"
    if len(names) > _MOST_LISTED:
        if int(st.session_state.get(key, 1)) > len(names):
            st.session_state[key] = 1
        chosen = st.number_input(
            f"{label}, by number",
            1,
            len(names),
            key=key,
            help="Samples are in the order of the table, users in alphabetical order",
        )
        return int(chosen) - 1
    keep_choice(key, range(len(names)))
    return int(
        st.selectbox(
            label,
            range(len(names)),
            key=key,
            format_func=names.__getitem__,
            help="The user or sample that the verdict is about",
        )
    )


_NO_SHADOWS = (
    "**No verdict.** The threshold must come from shadow models that take the classifier's place. "
    "A threshold set on the samples under attack would already use the answer. The table has no "
    "shadow models, or too few for this attack. Add their rows, and write each model's number in "
    "the column `shadow`."
)


_BAD_SHADOWS = (
    "**No verdict.** The training samples of the shadow models predict those of the classifier, so "
    "this attack is not valid here."
)


def _describe_truth(one: AttackOutcome, number: int, verdict: Verdict | None) -> str:
    """Describe whether the model was trained on the sample, and whether the verdict is right."""
    is_member = bool(one.ranking.members[number])
    verb = "was trained on" if is_member else "was not trained on"
    who = "this user's texts" if one.plan.level == "user" else "this sample"
    truth = f"According to the table, the classifier {verb} {who}"
    if verdict is None or not verdict.at.is_shown:
        return f"{truth}."
    return f"{truth}: the verdict is {'right' if is_member == verdict.is_called else 'wrong'}."


def _describe_verdict(verdict: Verdict, *, is_user: bool) -> str:
    """Describe a verdict: member or not, the score's rank, and the probability of membership."""
    who = "user" if is_user else "sample"
    at, odds = verdict.at, round(1 / state.prior())
    if not at.is_shown:
        return (
            f"No verdict: with {at.n_outsiders:,} non-members of the shadow models, a "
            f"false-positive rate of {100 * at.fpr:g} % is not resolvable. Choose a higher rate "
            "above."
        )
    sign = "● Called a member." if verdict.is_called else "○ Not called a member."
    share = format_percent(verdict.share_below)
    beside = f"The score is higher than that of {share} of the other non-members."
    found = _format_percent(verdict.probability(state.prior()))
    asked = "called members" if verdict.is_called else "not called members"
    return (
        f"**{sign}** {beside} If one {who} in {odds:,} is a member, **{found}** of those {asked} "
        "are members. The threshold comes from shadow models. There, "
        f"{_format_percent(at.tpr)} of the members lie above it at a false-positive rate of "
        f"{100 * at.fpr:g} %{at.mark}. Of this classifier's other non-members, "
        f"{_format_percent(verdict.accused)} lie above it."
    )


def _sample_table(found: AttackedOutputs, numbers: list[int]) -> None:
    """Draw the table of the numbered samples with their confidences and best attack's scores."""
    of_samples = [o for o in found.outcomes if o.plan.level == "sample"]
    best = max(of_samples, key=lambda outcome: (outcome.is_valid, outcome.auc.ci95.low))
    scores = best.ranking.scores
    outside = scores[~best.ranking.members]
    names = _sample_names(found) if not found.texts else found.texts
    st.dataframe(
        [
            {
                "sample": neutral_cell(names[i]),
                "class": neutral_cell(found.labels[i]),
                "probability of its class": float(found.confidences[i]),
                "score": float(scores[i]),
                "non-members below": format_percent((outside < scores[i]).mean()),
            }
            for i in numbers[:_MOST_TEXTS]
        ],
        key="membership-card-texts",
        hide_index=True,
        column_config={
            "probability of its class": st.column_config.NumberColumn(format="%.3f"),
            "score": st.column_config.NumberColumn(
                format="%.3g",
                help=f"By the strongest attack on samples: {describe_plan(best.plan)}",
            ),
        },
    )
    if len(numbers) > _MOST_TEXTS:
        st.caption(f"The first {_MOST_TEXTS} of {len(numbers):,} samples are shown.")
