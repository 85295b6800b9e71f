"""Attacks on members held against others on the same samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leakscope.core.attacks.membership.classifiers.evaluation import Plan, evaluate
from leakscope.core.attacks.membership.classifiers.own_file import simulated_outputs
from leakscope.core.attacks.membership.roc import Ranking, auc, level_gain
from leakscope.core.errors import InvalidInputError
from leakscope.core.studies.membership.compared import (
    AGAINST,
    GAIN,
    gains_over,
    gains_over_samples,
    strongest_on_samples,
)

OWN = simulated_outputs(120, 5, 4, seed=3)


@pytest.mark.slow
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


def two_levels(n_users: int = 60, noise: float = 2.0) -> tuple[Ranking, Ranking]:
    """Users who differ in how easy they are, three texts each, and the mean of these."""
    rng = np.random.default_rng(5)
    names = np.array([f"u{i}" for i in range(n_users)])
    members = np.arange(n_users) % 2 == 0
    texts = np.repeat(rng.normal(1.0 * members, 0.7), 3) + rng.normal(0, noise, 3 * n_users)
    samples = Ranking(texts, np.repeat(members, 3), np.repeat(names, 3).tolist())
    return Ranking(texts.reshape(-1, 3).mean(1), members, names.tolist()), samples


def share_right(scores: list[float], others: list[float]) -> float:
    return float(np.mean([(a > b) + (a == b) / 2 for a in scores for b in others]))


@pytest.mark.slow
def test_a_gain_over_samples_draws_users_with_all_their_samples() -> None:
    """Beside one by hand: users drawn anew one by one, their texts with them, pairs counted."""
    users, samples = two_levels(24)
    gain = level_gain(users, samples)
    texts = samples.scores.reshape(-1, 3)
    sides = [np.flatnonzero(users.members), np.flatnonzero(~users.members)]
    rng = np.random.default_rng(11)

    def less(inside: Any, outside: Any) -> float:
        of_users = share_right([*users.scores[inside]], [*users.scores[outside]])
        return of_users - share_right([*texts[inside].ravel()], [*texts[outside].ravel()])

    assert gain.value == pytest.approx(less(*sides)) and (gain.n, gain.chance) == (24, 0.0)
    drawn = [less(*(rng.choice(side, len(side)) for side in sides)) for _ in range(600)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    widening = 2.2010 / 1.9600  # Student's t of eleven degrees, twelve users of either kind
    assert gain.ci95.low == pytest.approx(gain.value + (low - gain.value) * widening, abs=0.02)
    assert gain.ci95.high == pytest.approx(gain.value + (high - gain.value) * widening, abs=0.02)


def test_both_levels_in_one_resample_are_nearer_than_two_apart() -> None:
    users, samples = two_levels(200, noise=1.0)
    paired = level_gain(users, samples).ci95
    apart = [auc(each).ci95 for each in (users, samples)]
    assert paired.low > 0, "users are easier here"
    assert paired.high - paired.low < 0.8 * float(np.hypot(*[e.high - e.low for e in apart]))
    alone = Ranking(users.scores, users.members, users.units)
    same = level_gain(users, alone)
    assert same.value == 0 and (same.ci95.low, same.ci95.high) == (0.0, 0.0)


def test_levels_of_other_users_are_refused() -> None:
    users, samples = two_levels()
    units = list(samples.units or ())
    for other in (
        Ranking(samples.scores, samples.members),
        Ranking(samples.scores, ~samples.members, units),
        Ranking(samples.scores, samples.members, ["stranger", *units[1:]]),
        Ranking(samples.scores[3:], samples.members[3:], units[3:]),
    ):
        with pytest.raises(InvalidInputError, match=r"same users|no user"):
            level_gain(users, other)


@pytest.mark.slow
def test_users_are_held_against_the_strongest_attack_on_their_samples() -> None:
    shadow = OWN.shadows.model(0)
    for aligned in (OWN.shadows, None):
        plan, samples = strongest_on_samples(OWN.target, shadow, aligned)
        every = [
            outcome
            for given in (aligned, [shadow])
            if given is not None
            for outcome in evaluate(OWN.target, given)
            if outcome.plan.level == "sample"
        ]
        assert plan.level == "sample" and (plan.attack == "bavaria") is (aligned is not None)
        if aligned is None:
            assert auc(samples).value == max(each.auc.value for each in every)
        chosen = [Plan("user_inference"), Plan("user_likelihood", {"of": "bavaria"})]
        outcomes = evaluate(OWN.target, OWN.shadows, chosen=chosen)
        gains = gains_over_samples(OWN.target, outcomes, samples, 0)
        for outcome, gain in zip(outcomes, gains, strict=True):
            assert gain.value == pytest.approx(outcome.auc.value - auc(samples).value)
            assert gain.n == 120 and gain.ci95.low <= gain.value <= gain.ci95.high
