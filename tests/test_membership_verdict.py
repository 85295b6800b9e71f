"""Verdicts on a membership audit: their thresholds come of shadow models, never of the attacked."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from test_cli_membership import answers
from test_page_membership import Open, opened, told, upload  # noqa: F401

from leakscope.core.attacks.membership.classifiers import evaluation
from leakscope.core.attacks.membership.classifiers.evaluation import (
    Plan,
    evaluate,
    plans,
    shadow_ranking,
)
from leakscope.core.attacks.membership.classifiers.outputs import Shadows
from leakscope.core.attacks.membership.classifiers.own_file import attack_upload, simulated_outputs
from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.rates import AtRate
from leakscope.core.attacks.membership.verdict import verdict_of
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Interval, Score

OWN = simulated_outputs(240, 5, 4, seed=1)
SHADOWS = OWN.shadows
assert isinstance(SHADOWS, Shadows)
MODELS = SHADOWS.models()


def at(threshold: float) -> AtRate:
    return AtRate(0.1, threshold, Score(0.9, Interval(0.8, 1.0), 30, 0.1), 30)


@pytest.mark.slow
@pytest.mark.parametrize("plan", plans(SHADOWS, has_users=True), ids=lambda plan: plan.name)
def test_thresholds_are_the_same_whoever_the_targets_members_are_and_whatever_it_answers(
    plan: Plan,
) -> None:
    rng = np.random.default_rng(0)
    other = replace(
        OWN.target,
        members=~OWN.target.members,
        probabilities=rng.dirichlet(np.ones(3), len(OWN.target)),
    )
    (one,) = evaluate(OWN.target, SHADOWS, chosen=[plan], is_calibrated=True)
    (two,) = evaluate(other, SHADOWS, chosen=[plan], is_calibrated=True)
    assert [each.fpr for each in one.calibrated] == [0.1, 0.01, 0.001]
    assert one.calibrated == two.calibrated
    assert one.auc != two.auc, "of the attacked themselves they differ, or it proves nothing"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lira_online", "bavaria", "threshold", "feature"])
def test_a_threshold_of_shadow_models_accuses_about_as_many_of_the_targets_others(
    name: str,
) -> None:
    own = simulated_outputs(800, 5, 8, seed=2)
    settings = {"feature": "loss"} if name in ("threshold", "feature") else {}
    (found,) = evaluate(own.target, own.shadows, chosen=[Plan(name, settings)], is_calibrated=True)
    tenth = found.calibrated[0]
    outside = found.ranking.scores[~found.ranking.members]
    assert 0.07 < (outside > tenth.threshold).mean() < 0.13
    inside = found.ranking.scores[found.ranking.members]
    assert (inside > tenth.threshold).mean() > 0.15 and tenth.tpr.value > 0.15


def test_each_model_is_scored_by_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = evaluation.make_attack, []

    def watched(name: str, **settings: Any) -> Any:
        attack = real(name, **settings)
        fit = attack.fit

        def noted(shadows: Any) -> Any:
            seen.append(shadows)
            return fit(shadows)

        attack.fit = noted
        return attack

    monkeypatch.setattr(evaluation, "make_attack", watched)
    assert shadow_ranking(Plan("lira_online"), SHADOWS) is not None
    assert len(seen) == 4
    for number, others in enumerate(seen):
        assert others.n_models == 3
        assert not any(np.array_equal(SHADOWS.members[number], m) for m in others.members)
    seen.clear()
    assert shadow_ranking(Plan("threshold", {"feature": "loss"}), MODELS[:3]) is not None
    assert [len(others) for others in seen] == [2, 2, 2]
    assert all(MODELS[i] not in others for i, others in enumerate(seen))


def test_one_model_that_is_alone_plays_where_no_models_are_compared() -> None:
    ranking = shadow_ranking(Plan("threshold", {"feature": "loss"}), MODELS[:1])
    assert ranking is not None and np.array_equal(ranking.members, MODELS[0].members)
    assert shadow_ranking(Plan("lira_online"), Shadows.of(MODELS[:1])) is None


def test_samples_of_aligned_models_are_one_unit_and_of_others_are_not() -> None:
    plan = Plan("feature", {"feature": "loss"})
    anonymous = [replace(model, users=None) for model in MODELS]
    n = len(MODELS[0])
    aligned, apart = shadow_ranking(plan, Shadows.of(anonymous)), shadow_ranking(plan, anonymous)
    assert aligned is not None and apart is not None
    assert len(set(aligned.units or ())) == n and len(set(apart.units or ())) == 4 * n
    users = shadow_ranking(
        Plan("user_statistic", {"feature": "loss", "statistic": "mean"}), SHADOWS
    )
    assert users is not None and len(users.scores) == 4 * 240 and len(set(users.units or ())) == 240


def test_a_verdict_is_the_score_against_the_threshold_and_tells_of_the_others() -> None:
    scores = np.array([*range(20), 99.0, 98.0, 50.0, 60.0])
    members = np.array([False] * 22 + [True] * 2)
    units = [*map(str, range(20)), "own", "own", "a", "b"]
    found = verdict_of(Ranking(scores, members, units), 20, at(17.5))
    assert found.is_called and found.share_below == 1.0
    assert found.accused.value == 2 / 20, "the other sample of the same user is left out"
    assert verdict_of(Ranking(scores, members), 20, at(17.5)).accused.value == 3 / 21
    assert not verdict_of(Ranking(scores, members), 20, at(99.0)).is_called
    with pytest.raises(InvalidInputError, match="no other non-member"):
        verdict_of(Ranking(np.array([1.0, 2.0]), np.array([True, False])), 1, at(0.0))


def test_turning_who_is_a_member_turns_no_verdict() -> None:
    plan = Plan("user_inference")
    turned = replace(OWN.target, members=~OWN.target.members)
    (one,) = evaluate(OWN.target, SHADOWS, chosen=[plan], is_calibrated=True)
    (two,) = evaluate(turned, SHADOWS, chosen=[plan], is_calibrated=True)

    def called(found: Any) -> list[bool]:
        numbers = range(len(found.ranking.scores))
        return [verdict_of(found.ranking, i, found.calibrated[0]).is_called for i in numbers]

    assert called(one) == called(two) and 10 < sum(called(one)) < 230


@pytest.mark.slow
def test_what_a_threshold_reaches_is_told_and_is_of_the_target() -> None:
    frame = answers(n=600)
    content = frame.to_csv(index=False).encode()
    found = attack_upload(MemoryFile("answers.csv", content))
    record = json.loads(json.dumps(found.record))["sample"]["lira_online"]
    by_name = {each.plan.name: each for each in found.outcomes}
    outcome = by_name["lira_online"]
    assert set(record["by_shadow_threshold"]) == {"0.1"}, "users are too few for more"
    tenth = record["by_shadow_threshold"]["0.1"]
    called = outcome.ranking.scores > outcome.calibrated[0].threshold
    assert tenth["threshold"] == outcome.calibrated[0].threshold
    assert tenth["fpr"] == called[~outcome.ranking.members].mean()
    assert tenth["tpr"] == called[outcome.ranking.members].mean()
    alone = frame[frame["shadow"] == ""].to_csv(index=False).encode()
    without = attack_upload(MemoryFile("answers.csv", alone)).record
    assert all("by_shadow_threshold" not in each for each in without["sample"].values())


@pytest.mark.slow
def test_without_shadow_models_the_card_gives_no_verdict(opened: Open) -> None:  # noqa: F811
    frame = answers()
    page: AppTest = upload(opened(), frame[frame["shadow"] == ""].to_csv(index=False).encode())
    assert not page.error
    assert "No verdict" in told(page)
    assert "shadow models that take the classifier's place" in told(page)
    assert "the verdict is" not in told(page) and "According to the table" in told(page)
