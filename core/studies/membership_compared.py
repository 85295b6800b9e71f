"""Attacks on a classifier held against others on the same samples, users drawn for both at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.attacks.membership.classifiers.evaluation import (
    AttackOutcome,
    Plan,
    evaluate,
    plans,
    ranked,
    resamples_of,
)
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.attacks.membership.classifiers.users import users_of
from core.attacks.membership.roc import Ranking, auc, auc_difference, level_gain
from core.results import Score
from core.studies.membership_classifier_rows import class_said
from core.studies.rows import Row, mean_row_score
from core.studies.tables import markdown_table

__all__ = [
    "AGAINST",
    "GAIN",
    "LEVEL",
    "comparisons",
    "gains_over",
    "gains_over_samples",
    "strongest_on_samples",
]

GAIN = "auc_gain"
"""What a row calls the AUC of its attack less that of another, which stands behind a colon."""

LEVEL = "level_gain"
"""What a row calls the AUC of its attack on users less that of the strongest on samples, which its
fact `over` names."""

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
"""By attack, whom it is held against: Algorithms 1 and 2 of Shejwalkar et al. (2021), both with the
loss, and of the attacks that need the fewest shadow models those that need more."""


def gains_over(
    target: Outputs, shadows: Any, outcomes: Sequence[AttackOutcome], seed: int
) -> list[dict[str, Score]]:
    """Return by how much the AUC of each attack exceeds that of those that it is held against.

    Parameters
    ----------
    outcomes : sequence of AttackOutcome
        On the same target and shadow models.

    Returns
    -------
    list of dict
        Of each outcome, measure to the difference with its paired bootstrap interval; empty for
        attacks that are held against none.
    """
    plans = {p.attack: p for o in outcomes for p in AGAINST.get(o.plan.attack, ())}
    chosen = list(plans.values())
    others = {o.plan.attack: o for o in evaluate(target, shadows, chosen=chosen, seed=seed)}
    found = []
    for outcome in outcomes:
        ranking = outcome.ranking
        n_resamples = resamples_of(len(ranking.scores))
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
    """Return the attack on samples with the greatest AUC, and how it ranks them.

    All that can be run take part, each with the shadow models that the study gives it. It is chosen
    on what is scored, which flatters attacks on samples: what users are easier by is rather more.
    """
    found = []
    for plan in plans(aligned or [shadow], has_users=False):
        is_aligned = CLASSIFIER_ATTACKS[plan.attack].needs == "the same samples"
        found.append((plan, ranked(plan, target, aligned if is_aligned else [shadow])))
    return max(found, key=lambda each: auc(each[1], n_resamples=1).value)


def gains_over_samples(
    target: Outputs, outcomes: Sequence[AttackOutcome], samples: Ranking, seed: int
) -> list[Score]:
    """Return by how much the AUC of each attack on users exceeds that of one on their samples."""
    names = users_of(target).names
    return [
        level_gain(
            Ranking(outcome.ranking.scores, outcome.ranking.members, names),
            samples,
            seed=seed,
            n_resamples=resamples_of(len(samples.scores)),
        )
        for outcome in outcomes
    ]


def comparisons(rows: Sequence[Row]) -> list[str]:
    """Return the table of attacks held against others; nothing where rows tell of none.

    Of attacks with a feature, that with the loss; of the statistics of a user, the mean.
    """
    return markdown_table(_HEAD, lines) if (lines := list(_lines(rows))) else []


_HEAD = ("corpus", "class", "classifier", "members by", "attack", "against", "AUC more", "so")


def _lines(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if any(row.get(name, usual) != usual for name, usual in _USUAL.items()):
            continue
        for measure in row.scores:
            if measure.partition(": ")[0] in (GAIN, LEVEL):
                place = tuple(str(row[name]) for name in ("corpus", "label", "classifier", "split"))
                groups.setdefault((*place, row["attack"], measure), []).append(row)
    for key, those in groups.items():
        attack, measure = key[4:]
        mean = mean_row_score(those, measure, is_same_sample=True)
        names = CLASSIFIER_ATTACKS[attack].title, _other_said(measure, those)
        corpus, label, classifier, split = key[:4]
        said = mean.said(3), mean.stands()
        yield (corpus, class_said(label), classifier, split, *names, *said)


_USUAL = {"feature": "loss", "of": "bavaria", "statistic": "mean"}


def _other_said(measure: str, rows: Sequence[Row]) -> str:
    """Return what an attack is held against; on samples the strongest may differ by draw."""
    if measure != LEVEL:
        return CLASSIFIER_ATTACKS[measure.partition(": ")[2]].title
    named = dict.fromkeys(str(row["over"]) for row in rows)
    told = []
    for attack, _, settings in (name.partition(" ") for name in named):
        of = f" ({settings})" if settings else ""
        told.append(f"{CLASSIFIER_ATTACKS[attack].title}{of}")
    return f"strongest on samples: {'; '.join(told)}"
