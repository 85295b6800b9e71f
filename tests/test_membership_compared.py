"""Attacks on members held against others on the same samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.attacks.membership.classifiers.evaluation import Plan, evaluate
from core.attacks.membership.classifiers.example import simulated_outputs
from core.results import Interval, Score
from core.studies.membership_compared import AGAINST, GAIN, comparisons, gains_over
from core.studies.rows import Row

OWN = simulated_outputs(120, 5, 4, seed=3)


@pytest.mark.parametrize("name", list(AGAINST))
def test_a_gain_is_the_difference_of_two_aucs(name: str) -> None:
    settings = {"feature": "loss"} if name in ("user_learned", "user_votes") else {}
    plan = Plan(name, {"of": "bavaria"} if name == "user_likelihood" else settings)
    outcomes = evaluate(OWN.target, OWN.shadows, chosen=[plan])
    (gains,) = gains_over(OWN.target, OWN.shadows, outcomes, 0)
    assert list(gains) == [f"{GAIN}: {other.attack}" for other in AGAINST[name]]
    for other in AGAINST[name]:
        (second,) = evaluate(OWN.target, OWN.shadows, chosen=[other])
        gain = gains[f"{GAIN}: {other.attack}"]
        assert gain.value == pytest.approx(outcomes[0].auc.value - second.auc.value, abs=1e-9)
        assert gain.ci95.low <= gain.value <= gain.ci95.high


def test_a_paired_interval_is_narrower_than_those_of_two_attacks_apart() -> None:
    outcomes = evaluate(OWN.target, OWN.shadows, chosen=[Plan("bavaria")])
    (gains,) = gains_over(OWN.target, OWN.shadows, outcomes, 0)
    (lira,) = evaluate(OWN.target, OWN.shadows, chosen=[Plan("lira_online")])
    widths = [s.ci95.high - s.ci95.low for s in (outcomes[0].auc, lira.auc)]
    paired = gains[f"{GAIN}: lira_online"].ci95
    assert paired.high - paired.low < float(np.hypot(*widths)) / 2


def test_an_attack_that_nothing_is_held_against_has_no_gain() -> None:
    outcomes = evaluate(OWN.target, OWN.shadows, chosen=[Plan("feature", {"feature": "loss"})])
    assert gains_over(OWN.target, OWN.shadows, outcomes, 0) == [{}]


def test_the_table_says_what_is_told_apart() -> None:
    def row(seed: int, value: float) -> Row:
        score = Score(value, Interval(value - 0.01, value + 0.01), 99, 0.0)
        cell = {"corpus": "posts", "label": "topic", "classifier": "linear", "split": "user"}
        facts = {"attack": "bavaria", "seed": seed}
        return Row(cell | facts, {f"{GAIN}: lira_online": score, "auc": score})

    (told,) = [line for line in comparisons([row(0, 0.05), row(1, 0.052)]) if "posts" in line]
    assert told.endswith("| more |") and "LiRA, online" in told
    dated = [
        replace(each, cell=each.cell | {"label": "date"}) for each in (row(0, 0.05), row(1, 0.052))
    ]
    (told,) = [line for line in comparisons(dated) if "posts" in line]
    assert told.startswith("| posts | year | linear |"), "of dates the class is the year"
    assert Score(-0.1, Interval(-0.2, -0.05), 9, 0.0).stands == "less"
    assert comparisons([Row({}, {"auc": Score(0.5, Interval(0.4, 0.6), 9, 0.5)})]) == []
