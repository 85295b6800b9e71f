"""Paired comparisons of attacks on a classifier, on the same samples and users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leakscope.core.attacks.membership.classifiers.evaluation import (
    AttackOutcome,
    evaluate,
    n_resamples_for,
    ranked,
)
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.plans import Plan, plans
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.classifiers.users import users_of
from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.roc import auc, auc_difference, level_gain
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.studies.membership.classifier_rows import describe_class

GAIN = "auc_gain"
"""The measure of an attack's AUC minus that of another, which is named after a colon."""

LEVEL = "level_gain"
"""The measure of a user attack's AUC minus that of the strongest sample attack, which the fact
`over` names."""

_SAMPLES = Plan("threshold", {"feature": "loss"})
_USERS = Plan("user_statistic", {"feature": "loss", "statistic": "mean"})

AGAINST: Mapping[str, tuple[Plan, ...]] = {
    "lira_online": (_SAMPLES,),
    "lira_offline": (_SAMPLES,),
    "rmia_online": (_SAMPLES,),
    "rmia_offline": (_SAMPLES,),
    "bavaria": (_SAMPLES, Plan("lira_online"), Plan("rmia_online")),
    "user_learned": (_USERS,),
    "user_votes": (_USERS,),
    "user_likelihood": (_USERS,),
    "user_inference": (_USERS,),
}
"""The attacks that each one is compared with: Algorithms 1 and 2 of Shejwalkar et al. (2021), both
with the loss. Attacks for few shadow models are also compared with attacks that need more."""


def gains_over(
    target: Outputs, shadows: Any, outcomes: Sequence[AttackOutcome], seed: int
) -> list[dict[str, Score]]:
    """Run the reference attacks; return per attack its paired AUC gain over each, by measure.

    Parameters
    ----------
    outcomes : sequence of AttackOutcome
        On the same target and shadow models.

    Returns
    -------
    list of dict
        Of each outcome, measure to the difference with its paired bootstrap interval; empty for
        attacks that are compared with none.
    """
    plans = {p.attack: p for o in outcomes for p in AGAINST.get(o.plan.attack, ())}
    chosen = list(plans.values())
    others = {o.plan.attack: o for o in evaluate(target, shadows, chosen=chosen, seed=seed)}
    found = []
    for outcome in outcomes:
        ranking = outcome.ranking
        n_resamples = n_resamples_for(len(ranking.scores))
        found.append(
            {
                f"{GAIN}: {plan.attack}": auc_difference(
                    ranking, others[plan.attack].ranking, seed=seed, n_resamples=n_resamples
                )
                for plan in AGAINST.get(outcome.plan.attack, ())
            }
        )
    return found


def strongest_on_samples(
    target: Outputs, shadow: Outputs, aligned: Shadows | None
) -> tuple[Plan, Ranking]:
    """Run all attacks on samples; return the one with the highest AUC, and its ranking.

    All applicable attacks take part, each with the shadow models that the study gives it. The
    choice is made on the scored samples, which flatters sample attacks: the gain on users is
    understated.
    """
    found = []
    for plan in plans(aligned or [shadow], has_users=False):
        is_aligned = CLASSIFIER_ATTACKS[plan.attack].needs == "the same samples"
        found.append((plan, ranked(plan, target, aligned if is_aligned else [shadow])))
    return max(found, key=lambda each: auc(each[1], n_resamples=1).value)


def gains_over_samples(
    target: Outputs, outcomes: Sequence[AttackOutcome], samples: Ranking, seed: int
) -> list[Score]:
    """Return each user attack's AUC gain over a sample attack, on the same users' samples."""
    names = users_of(target).names
    return [
        level_gain(
            Ranking(outcome.ranking.scores, outcome.ranking.members, names),
            samples,
            seed=seed,
            n_resamples=n_resamples_for(len(samples.scores)),
        )
        for outcome in outcomes
    ]


def comparison_table(rows: Sequence[Row]) -> list[str]:
    """Return the Markdown table of gains over other attacks; empty if no row has any.

    Attacks with a feature are shown with the loss, user statistics with the mean.
    """
    return markdown_table(_HEAD, lines) if (lines := list(_comparison_rows(rows))) else []


_HEAD = (
    "corpus",
    "class",
    "classifier",
    "members by",
    "attack",
    "compared with",
    "AUC difference",
    "verdict",
)


def _comparison_rows(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield the table cells of each AUC gain: target, attack, reference, difference, verdict."""
    usual = ResultTable(rows).where(
        lambda row: all(row.get(name, value) == value for name, value in _USUAL.items())
    )
    for place, own in usual.group_by("corpus", "label", "classifier", "split", "attack").items():
        corpus, label, classifier, split, attack = place
        for measure in dict.fromkeys(measure for row in own for measure in row.scores):
            if measure.partition(": ")[0] in (GAIN, LEVEL):
                mean = own.mean(measure, is_same_sample=True)
                names = CLASSIFIER_ATTACKS[attack].title, _describe_reference(measure, own)
                said = mean.format(3), mean.direction()
                yield (corpus, describe_class(label), classifier, split, *names, *said)


_USUAL = {"feature": "loss", "of": "bavaria", "statistic": "mean"}


def _describe_reference(measure: str, rows: ResultTable) -> str:
    """Format the title of the attack that a gain is over; the strongest may vary by draw."""
    if measure != LEVEL:
        return CLASSIFIER_ATTACKS[measure.partition(": ")[2]].title
    named = rows.having(LEVEL).distinct("over")
    told = []
    for attack, _, settings in (name.partition(" ") for name in named):
        of = f" ({settings})" if settings else ""
        told.append(f"{CLASSIFIER_ATTACKS[attack].title}{of}")
    return f"strongest on samples: {'; '.join(told)}"
