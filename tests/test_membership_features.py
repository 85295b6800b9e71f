"""Features, thresholds and users: each against values worked by hand (Shejwalkar et al. 2021)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from leakscope.core.attacks.membership.classifiers.features import (
    FEATURES,
    FLOOR,
    feature_of,
    member_score,
    modified_entropy,
    rank,
    rest,
    scaled_logit,
)
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.thresholds import (
    ClassThreshold,
    accuracy_threshold,
    class_thresholds,
)
from leakscope.core.attacks.membership.classifiers.users import (
    LearnedStatistics,
    UserStatistic,
    Votes,
    statistics_of,
    users_of,
)
from leakscope.core.errors import InvalidInputError, NotFittedError

HALF = np.array([[0.5, 0.25, 0.25]])


def outputs(
    confidences: Any, members: Any, labels: Any = None, users: Any = None, n_classes: int = 2
) -> Outputs:
    """Return answers with these probabilities of the true class, the rest on the next class."""
    values = np.asarray(confidences, dtype=np.float64)
    labels = np.zeros(len(values), dtype=int) if labels is None else np.asarray(labels)
    array = np.zeros((len(values), n_classes))
    array[np.arange(len(values)), labels] = values
    array[np.arange(len(values)), (labels + 1) % n_classes] += 1 - values
    return Outputs(array, labels, np.asarray(members, dtype=bool), users)


# Features


@pytest.mark.parametrize(
    ("feature", "label", "expected"),
    [
        ("loss", 0, math.log(2)),
        ("loss", 2, math.log(4)),
        ("modified_entropy", 0, 0.5 * math.log(2) + 2 * 0.25 * math.log(4 / 3)),
        ("modified_entropy", 1, 0.75 * math.log(4) + 0.5 * math.log(2) + 0.25 * math.log(4 / 3)),
        ("rank", 0, 1),
        ("rank", 1, 2.5),
        ("confidence", 0, 0.5),
        ("confidence", 2, 0.25),
        ("correctness", 0, 1),
        ("correctness", 2, 0),
    ],
)
def test_features_are_as_worked_by_hand(feature: str, label: int, expected: float) -> None:
    given = Outputs(HALF, np.array([label]), np.array([True]))
    values, sign = feature_of(feature, given)
    assert values[0] == pytest.approx(expected, abs=1e-12)
    is_lower = feature in ("loss", "modified_entropy", "rank")
    assert sign == (-1 if is_lower else 1)
    assert member_score(feature, given)[0] == pytest.approx(sign * expected)


def test_the_modified_entropy_is_that_which_is_cited_not_that_which_is_printed() -> None:
    printed = 0.5 * math.log(2) + 2 * 0.25 * math.log(4)
    assert abs(modified_entropy(HALF, np.array([0]))[0] - printed) > 0.5
    sure = np.array([[1.0, 0.0]])
    right, wrong = (modified_entropy(sure, np.array([y]))[0] for y in (0, 1))
    assert right == 0 and wrong > 60, "a wrong answer that is sure of itself is no member's"


@pytest.mark.parametrize("feature", FEATURES)
def test_a_surer_right_answer_never_scores_less(feature: str) -> None:
    sure = np.array([0.01, 0.4, 0.5, 0.7, 0.99, 1.0])
    scores = member_score(feature, outputs(sure, np.ones(6)))
    assert np.all(np.diff(scores) >= 0) and scores[-1] > scores[0]


@pytest.mark.parametrize("feature", FEATURES)
def test_certainty_stays_finite(feature: str) -> None:
    for p in (0.0, 1.0):
        assert np.isfinite(member_score(feature, outputs([p], [True]))).all()


def test_what_rounds_to_one_is_still_told_apart() -> None:
    answers = np.array([[1.0, 1e-12, 0.0], [1.0, 1e-20, 0.0], [1.0, 0.0, 0.0]])
    labels = np.zeros(3, dtype=int)
    assert rest(answers, labels).tolist() == [1e-12, 1e-20, 0]
    phi = scaled_logit(answers, labels)
    assert phi == pytest.approx([12 * math.log(10), 20 * math.log(10), -math.log(FLOOR)])
    assert np.all(np.diff(-modified_entropy(answers, labels)) >= 0)
    as_float32 = Outputs(answers.astype(np.float32), labels, np.array([True, False, True]))
    assert as_float32.probabilities.dtype == np.float64
    assert scaled_logit(as_float32.probabilities, labels) == pytest.approx(phi, rel=1e-6)


def test_ranks_of_equals_are_shared() -> None:
    even = np.full((3, 4), 0.25)
    assert rank(even, np.array([0, 1, 3])).tolist() == [2.5] * 3


# Answers that cannot be used


@pytest.mark.parametrize(
    ("array", "said"),
    [
        ([[0.5, 0.4]], "sample 0 do not sum to 1"),
        ([[0.5, 0.5], [np.nan, 1.0]], "sample 1 hold NaN"),
        ([[1.5, -0.5]], "negative"),
        ([[1.0]], "only one class"),
        ([0.5, 0.5], "a row for each sample"),
        ([["a", "b"]], "array of numbers"),
    ],
)
def test_probabilities_that_are_none_are_refused(array: Any, said: str) -> None:
    n = len(array)
    with pytest.raises(InvalidInputError, match=said):
        Outputs(array, np.zeros(n, dtype=int), np.ones(n, dtype=bool))


def test_shadows_are_stacked_over_the_same_samples() -> None:
    one, other = outputs([0.9, 0.2], [True, False]), outputs([0.5, 0.6], [False, True])
    both = Shadows.of([one, other])
    assert both.n_models == 2 and both.model(1).members.tolist() == [False, True]
    assert both.without(0).probabilities[0, 1, 0] == 0.6
    with pytest.raises(InvalidInputError, match="other samples or classes"):
        Shadows.of([one, outputs([0.5], [True])])
    with pytest.raises(InvalidInputError, match="at least one"):
        both.without(0).without(0)


# Algorithm 1


@pytest.mark.parametrize(
    ("scores", "members", "expected"),
    [
        ([1, 2, 3, 4], [0, 0, 1, 1], 2.5),
        ([1, 2, 3, 5], [0, 1, 0, 1], 4.0),  # 1.5 is as good, and accuses more
        ([1, 2], [1, 1], 1.0),  # all are called members
        ([0, 0, 1, 1], [0, 1, 1, 1], 0.5),
        ([7, 7], [1, 0], np.nextafter(7, 8)),  # no better than none
    ],
)
def test_a_threshold_is_right_most_often(scores: Any, members: Any, expected: float) -> None:
    found = accuracy_threshold(np.array(scores, float), np.array(members, bool))
    assert found == pytest.approx(expected, abs=1e-12) and math.isfinite(found)


def test_a_threshold_between_neighbours_parts_them() -> None:
    low = 0.1
    high = np.nextafter(low, 1)
    found = accuracy_threshold(np.array([low, high]), np.array([False, True]))
    assert low < found <= high


def test_each_class_has_its_threshold_and_one_without_both_kinds_takes_that_of_all() -> None:
    scores = np.array([1, 2, 3, 4, 10, 20, 5], float)
    labels = np.array([0, 0, 0, 0, 1, 1, 3])
    members = np.array([0, 0, 1, 1, 0, 1, 1], bool)
    found = class_thresholds(scores, labels, members, 4)
    assert found.tolist() == [2.5, 15.0, 2.5, 2.5]
    with pytest.raises(InvalidInputError, match="all members"):
        class_thresholds(scores, labels, np.ones(7, bool), 4)


def test_algorithm_1_decides_by_shadows_alone() -> None:
    shadow = outputs([0.6, 0.9, 0.1, 0.4], [0, 1, 0, 1], labels=[0, 0, 1, 1])
    attack = ClassThreshold("confidence").fit([shadow])
    assert attack.thresholds_ == pytest.approx([0.75, 0.25])
    target = outputs([0.7, 0.3, 0.8], [1, 1, 0], labels=[0, 1, 0])
    assert attack.scores(target) == pytest.approx([-0.05, 0.05, 0.05])
    flipped = outputs([0.7, 0.3, 0.8], [0, 0, 1], labels=[0, 1, 0])
    assert attack.decide(target).tolist() == attack.decide(flipped).tolist() == [False, True, True]
    with pytest.raises(NotFittedError):
        ClassThreshold().scores(target)
    with pytest.raises(InvalidInputError, match="one of loss"):
        ClassThreshold("nope").fit([shadow])


# Users: algorithms 2, 3 and 4


def test_the_statistics_of_a_user() -> None:
    users = users_of(outputs([0.2, 0.6, 0.5], [1, 1, 0], users=("ż", "ż", "a")))
    assert users.names == ("a", "ż") and users.members.tolist() == [False, True]
    found = statistics_of(np.array([0.2, 0.6, 0.5]), users)
    assert found == pytest.approx(np.array([[0.5, 0.5, 0.5, 0.0], [0.4, 0.2, 0.6, 0.04]]))


def of_users(kind: str = "loss") -> tuple[Outputs, Outputs]:
    """Return a shadow and a target: users a, b are members of either, c and d are not."""
    shadow = outputs(
        [0.9, 0.9, 0.8, 0.6, 0.3, 0.7, 0.2, 0.4], [1, 1, 1, 1, 0, 0, 0, 0], users=tuple("aabbccdd")
    )
    target = outputs(
        [0.9, 0.7, 0.5, 0.95, 0.3, 0.7, 0.1, 0.2], [1, 1, 1, 1, 0, 0, 0, 0], users=tuple("aabbccdd")
    )
    return shadow, target


@pytest.mark.parametrize(
    ("statistic", "scores", "threshold"),
    [
        ("mean", [0.8, 0.725, 0.5, 0.15], 0.6),  # of shadows: .9, .7 against .5, .3
        ("min", [0.7, 0.5, 0.3, 0.1], 0.45),  # .9, .6 against .3, .2
        ("max", [0.9, 0.95, 0.7, 0.2], 0.75),  # .9, .8 against .7, .4
        ("variance", [0.01, 0.050625, 0.04, 0.0025], None),
    ],
)
def test_algorithm_2_by_hand(statistic: str, scores: list[float], threshold: float | None) -> None:
    shadow, target = of_users()
    attack = UserStatistic("confidence", statistic).fit([shadow])
    assert attack.scores(target) == pytest.approx(scores)
    if threshold is not None:
        assert attack.threshold_ == pytest.approx(threshold)
        assert attack.decide(target).tolist() == [s >= threshold for s in scores]


def test_the_statistic_is_of_the_loss_itself_and_turned_after() -> None:
    _, target = of_users()
    worst = UserStatistic("loss", "max").scores(target)
    assert worst == pytest.approx(np.log([0.7, 0.5, 0.3, 0.1]))


def test_algorithm_3_learns_from_four_numbers() -> None:
    shadow, target = of_users()
    attack = LearnedStatistics("confidence").fit([shadow])
    assert attack.weights_.shape == (4,) and np.all(attack.weights_[:3] > 0)
    known = users_of(target)
    found = statistics_of(target.probabilities[:, 0], known)
    scaled = (found - attack.mean_) / attack.scale_
    assert attack.scores(target) == pytest.approx(scaled @ attack.weights_ + attack.bias_)
    assert min(attack.scores(target)[:2]) > max(attack.scores(target)[2:])
    assert attack.decide(target).tolist() == (attack.scores(target) >= 0).tolist()
    # The shadow's mean, min, max and variance by hand; where the loss is least it has no slope.
    by_hand = np.array(
        [[0.9, 0.9, 0.9, 0.0], [0.7, 0.6, 0.8, 0.01], [0.5, 0.3, 0.7, 0.04], [0.3, 0.2, 0.4, 0.01]]
    )
    x = (by_hand - by_hand.mean(0)) / by_hand.std(0)
    wrong = 1 / (1 + np.exp(-(x @ attack.weights_ + attack.bias_))) - [1, 1, 0, 0]
    assert x.T @ wrong + attack.weights_ == pytest.approx(np.zeros(4), abs=1e-3)
    assert wrong.sum() == pytest.approx(0.0, abs=1e-3)


def test_algorithm_4_counts_votes() -> None:
    shadow, target = of_users()
    attack = Votes("confidence").fit([shadow])
    (threshold, _) = attack.samples_.thresholds_  # .3 .2 .4 | .6 | .7 | .8 .9 .9: .75 or .5
    assert threshold == pytest.approx(0.75)
    assert attack.scores(target).tolist() == [0.5, 0.5, 0.0, 0.0]
    assert attack.decide(target).tolist() == [True, True, False, False]


def test_what_users_lack_is_told() -> None:
    shadow, target = of_users()
    with pytest.raises(InvalidInputError, match="column `user`"):
        users_of(outputs([0.5], [True]))
    with pytest.raises(InvalidInputError, match="Sample 1 has no user"):
        users_of(outputs([0.5, 0.5], [1, 0], users=("a", "")))
    for attack in (UserStatistic(), LearnedStatistics()):
        with pytest.raises(InvalidInputError, match="all members"):
            attack.fit([shadow.chosen(shadow.members)])
    for unfitted in (UserStatistic().decide, LearnedStatistics().scores, Votes().scores):
        with pytest.raises(NotFittedError):
            unfitted(target)
