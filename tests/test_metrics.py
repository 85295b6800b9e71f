from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import (
    bootstrap_interval,
    constant_interval,
    ratio_interval,
    student_interval,
)
from leakscope.core.metrics import idf_weights, mean_over_seeds, score_words, token_set_scores
from leakscope.core.rank_correlation import spearman_correlation
from leakscope.core.results import Interval, Score

SETS = st.frozensets(st.sampled_from("abcdefgh"), max_size=6)


def test_scores_of_a_hand_worked_answer() -> None:
    # Answered a, b, x of a, b, c, d: 2 of 3 right, 2 of 4 found, F1 = 2·(2/3)(1/2)/(7/6) = 4/7.
    precision, recall, f1 = token_set_scores(set("abcd"), set("abx"))
    assert (precision, recall, f1) == pytest.approx((2 / 3, 1 / 2, 4 / 7))


def test_weighted_scores_of_a_hand_worked_answer() -> None:
    # Weights a 1, b 3, c 2, x 4: precision 1/(1+4), recall 1/(1+3+2), F1 = 2/(5+6).
    weight = {"a": 1.0, "b": 3.0, "c": 2.0, "x": 4.0}
    scores = token_set_scores(set("abc"), set("ax"), weight.__getitem__)
    assert scores == pytest.approx((1 / 5, 1 / 6, 2 / 11))


@pytest.mark.parametrize(
    ("true", "answered", "expected"),
    [
        (set("ab"), set("ab"), (1, 1, 1)),
        (set("ab"), set("cd"), (0, 0, 0)),
        (set("ab"), set(), (0, 0, 0)),
        (set(), set("ab"), (0, 0, 0)),
        (set(), set(), (0, 0, 0)),
    ],
)
def test_extreme_answers(true: set[str], answered: set[str], expected: tuple[int, ...]) -> None:
    assert token_set_scores(true, answered) == expected


@given(SETS, SETS)
def test_f1_is_symmetric_and_between_precision_and_recall(
    true: frozenset[str], answered: frozenset[str]
) -> None:
    precision, recall, f1 = token_set_scores(true, answered)
    mirrored = token_set_scores(answered, true)
    assert mirrored == pytest.approx((recall, precision, f1))
    assert min(precision, recall) - 1e-12 <= f1 <= max(precision, recall) + 1e-12
    if true and answered:  # F1 of sets is the Dice coefficient
        assert f1 == pytest.approx(2 * len(true & answered) / (len(true) + len(answered)))


def test_idf_weights_of_a_hand_worked_collection() -> None:
    # Three targets: a in all, b in one: log(4/4) = 0 and log(4/2).
    weights = idf_weights([{"a", "b"}, {"a"}, {"a"}])
    assert weights == pytest.approx({"a": 0.0, "b": math.log(2)})


def test_score_words_averages_over_samples() -> None:
    # F1 of the samples: 4/7, 1, 0; the fourth holds no word to find and does not count.
    targets = [set("abcd"), set("ab"), set("c"), set()]
    answers = [set("abx"), set("ab"), set("y"), set("z")]
    revealing = [set("ad"), set(), set("cq"), set("z")]
    scores = score_words(answers, targets, revealing=revealing, rare={"b", "c", "z"})
    assert scores.n == 3
    # Rare within the targets: b twice and c twice; both b are found.
    assert (scores.n_rare, scores.rare_recall) == (4, 50)
    assert scores.n_numbers == 0 and math.isnan(scores.number_recall)
    assert scores.token_set_f1 == pytest.approx(100 * (4 / 7 + 1) / 3)
    assert scores.precision == pytest.approx(100 * (2 / 3 + 1) / 3)
    assert scores.recall == pytest.approx(100 * (1 / 2 + 1) / 3)
    assert scores.exact_set_rate == pytest.approx(100 / 3)
    # Names within the targets: a, d, c (q is no target); a alone is found.
    assert (scores.n_names, scores.name_recall) == (3, pytest.approx(100 / 3))
    assert (scores.mean_words_true, scores.mean_words_answered) == pytest.approx((7 / 3, 2))
    assert scores.token_set_f1_ci95.low <= scores.token_set_f1 <= scores.token_set_f1_ci95.high


def test_weighted_f1_uses_the_idf_of_the_targets() -> None:
    # D = 2: a is in both (log 3/3 = 0), b and c in one (log 3/2), unseen x weighs log 3.
    scores = score_words([{"a", "b"}, {"a", "x"}], [{"a", "b"}, {"a", "c"}])
    assert scores.weighted_f1 == pytest.approx(50)
    half = score_words([{"b", "x"}, {"c"}], [{"a", "b"}, {"a", "c"}])
    rare, unseen = math.log(3 / 2), math.log(3)
    first = 2 / ((rare + unseen) / rare + 1)
    assert half.weighted_f1 == pytest.approx(100 * (first + 1) / 2)


def test_given_weights_replace_the_idf() -> None:
    scores = score_words([{"a"}], [{"a", "b"}], weights={"a": 3.0, "b": 1.0})
    assert scores.weighted_recall == pytest.approx(75)


def test_perfect_and_useless_answers_have_intervals_that_end_at_their_bound() -> None:
    targets = [{"a", str(i)} for i in range(20)]
    perfect = score_words(targets, targets)
    assert (perfect.token_set_f1, perfect.weighted_f1, perfect.exact_set_rate) == (100, 100, 100)
    assert perfect.token_set_f1_ci95 == constant_interval(100.0, 20, 0.0, 100.0)
    useless = score_words([set()] * 20, targets)
    assert (useless.token_set_f1, useless.token_set_f1_ci95.low) == (0, 0)
    assert useless.token_set_f1_ci95 == constant_interval(0.0, 20, 0.0, 100.0)
    assert math.isnan(useless.name_recall)


def test_scoring_refuses_what_cannot_be_scored() -> None:
    with pytest.raises(InvalidInputError, match="1 answers for 2 targets"):
        score_words([set()], [{"a"}, {"b"}])
    with pytest.raises(InvalidInputError, match="No sample holds a word to find"):
        score_words([{"a"}], [set()])
    with pytest.raises(InvalidInputError, match="at least one sample"):
        bootstrap_interval(np.array([]))


def test_bootstrap_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(300):
        interval = bootstrap_interval(rng.exponential(10, size=80), seed=seed, n_resamples=500)
        hits += interval.low <= 10 <= interval.high
    # 95 % nominal; the percentile bootstrap of 80 skewed values reaches about 93 %, and three
    # standard errors of 300 trials are 4 %.
    assert 0.89 <= hits / 300 <= 0.99


def reference_interval(values: np.ndarray, groups: list[str], seed: int) -> tuple[float, float]:
    """The bootstrap of clusters, spelled out: draw groups, pool their samples, take the mean."""
    rng = np.random.default_rng(seed)
    names = list(dict.fromkeys(groups))
    members = {
        name: [v for v, g in zip(values, groups, strict=True) if g == name] for name in names
    }
    means = []
    for _ in range(20):
        for row in rng.integers(len(names), size=(100, len(names))):
            pooled = [value for i in row for value in members[names[i]]]
            means.append(sum(pooled) / len(pooled))
    # Student's t of three degrees of freedom, and of four groups one is taken up by the mean.
    wider = 3.1824463 / 1.9599640 * (4 / 3) ** 0.5
    centre = values.mean()
    low, high = centre + wider * (np.quantile(means, [0.025, 0.975]) - centre)
    return float(low), float(high)


def test_an_interval_of_documents_draws_whole_documents() -> None:
    values = np.array([10.0, 20.0, 90.0, 40.0, 50.0, 60.0, 5.0])
    groups = ["a", "a", "b", "c", "c", "c", "d"]
    found = bootstrap_interval(values, groups=groups, seed=3)
    assert (found.low, found.high) == pytest.approx(reference_interval(values, groups, 3))
    alone = bootstrap_interval(values, groups=range(7), seed=3)
    assert alone == bootstrap_interval(values, seed=3)
    assert math.isnan(bootstrap_interval(values, groups=["a"] * 7).low)
    with pytest.raises(InvalidInputError, match="2 groups for 7 samples"):
        bootstrap_interval(values, groups=["a", "b"])


def test_an_interval_of_a_ratio_draws_both_sums_together() -> None:
    values, over = np.array([6.0, 1.0, 3.0]), np.array([3.0, 2.0, 0.0])
    groups = ["a", "b", "b"]
    found = ratio_interval(values, over, groups=groups, seed=0)
    # Draws of two groups: a a gives 12/6, b b 8/4 and a b 10/5, always 2; apart they would vary.
    assert (found.low, found.high) == pytest.approx((2.0, 2.0))
    found = ratio_interval(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    assert (found.low, found.high) == (1.0, 3.0), "1/1, 4/2 or 3/1"
    found = ratio_interval(np.array([1.0, 3.0]), np.array([0.0, 1.0]))
    assert (found.low, found.high) == (3.0, 4.0), "draws with nothing below are left out"
    assert math.isnan(ratio_interval(np.ones(2), np.zeros(2)).low)
    with pytest.raises(InvalidInputError, match="not paired"):
        ratio_interval(np.ones(2), np.ones(3))


def test_an_interval_of_documents_is_wider_where_their_sentences_are_alike() -> None:
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(40), 10)
    ratios = {"alike": [], "independent": []}  # type: dict[str, list[float]]
    covered = 0
    for seed in range(60):
        shift, noise = rng.normal(0, 10, 40)[groups], rng.normal(0, 10, 400)
        for name, values in (("alike", 50 + shift + noise), ("independent", 50 + noise)):
            whole = bootstrap_interval(values, groups=groups.tolist(), seed=seed, n_resamples=500)
            plain = bootstrap_interval(values, seed=seed, n_resamples=500)
            ratios[name].append((whole.high - whole.low) / (plain.high - plain.low))
            covered += name == "alike" and whole.low <= 50 <= whole.high
    # By theory √(1 + 9 · ½) = 2.3 where half of the variance is between documents, 1 without any.
    assert 2.0 < np.mean(ratios["alike"]) < 2.6
    assert 0.9 < np.mean(ratios["independent"]) < 1.1
    assert covered >= 52, "of 60, at 95 %"


def test_an_interval_of_few_documents_holds_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(6), 20)
    covered = 0
    for seed in range(200):
        values = 50 + rng.normal(0, 10, 6)[groups] + rng.normal(0, 10, 120)
        found = bootstrap_interval(values, groups=groups.tolist(), seed=seed, n_resamples=500)
        covered += found.low <= 50 <= found.high
    # 95 %, and three standard errors of 200 trials are 4.6 %; unwidened, it is 165 of them.
    assert covered >= 180


def test_an_interval_of_few_samples_holds_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    held = [student_interval(rng.standard_normal(8)) for _ in range(1000)]
    assert 0.93 <= np.mean([each.low <= 0 <= each.high for each in held]) <= 0.97
    by_hand = student_interval(np.array([1.0, 2.0, 3.0]))  # 2 ± 4.3027 / √3
    assert (by_hand.low, by_hand.high) == pytest.approx((-0.4841, 4.4841), abs=1e-3)
    cut = student_interval(np.array([1.0, 2.0, 3.0]), low=0.0, high=4.0)
    assert (cut.low, cut.high) == (0.0, 4.0)
    assert math.isnan(student_interval(np.array([1.0])).low)


def test_scores_say_what_their_intervals_are_of() -> None:
    targets = [set("ab"), set("ab"), set("cd"), set("cd"), set()]
    answers = [set("ab"), set("ab"), set(), set(), set()]
    plain = score_words(answers, targets)
    whole = score_words(answers, targets, groups=["x", "x", "y", "y", "z"])
    assert (plain.unit, plain.n_documents) == ("sentence", None)
    assert (whole.unit, whole.n_documents, whole.n) == ("document", 2, 4)
    assert (whole.token_set_f1_ci95.low, whole.token_set_f1_ci95.high) == (0, 100)
    assert plain.token_set_f1 == whole.token_set_f1
    with pytest.raises(InvalidInputError, match="1 groups for 5 targets"):
        score_words(answers, targets, groups=["x"])


def test_bootstrap_interval_is_repeatable_and_narrows_with_the_level() -> None:
    values = np.random.default_rng(1).normal(size=50)
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert bootstrap_interval(values, seed=3) != bootstrap_interval(values, seed=4)
    wide, narrow = bootstrap_interval(values), bootstrap_interval(values, level=0.5)
    assert wide.low < narrow.low < values.mean() < narrow.high < wide.high


def test_a_mean_over_seeds_has_the_wider_of_both_errors() -> None:
    # Standard errors 1 each; between the values 10 and 20 the variance is 50, of two means 25.
    # Student's t with one degree of freedom, 97.5 %: 12.706.
    apart = [Score(v, Interval(v - 1.96, v + 1.96), 50) for v in (10.0, 20.0)]
    found = mean_over_seeds(apart)
    assert found.ci95.high - 15 == pytest.approx(12.706 * 5, rel=1e-4)
    assert found.ci95.low + found.ci95.high == pytest.approx(30)
    alike = mean_over_seeds([apart[0], apart[0]])  # no spread: their own errors, halved
    assert alike.ci95.high - 10 == pytest.approx(1.96 / math.sqrt(2))
    together = mean_over_seeds(apart, is_same_sample=True)
    assert together.ci95.high - 15 == pytest.approx(math.hypot(1.96, 12.706 * 5), rel=1e-4)


@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0])
def test_intervals_over_three_seeds_hold_the_truth_as_often_as_they_say(spread: float) -> None:
    rng, n = np.random.default_rng(7), 2000
    drawn = rng.normal(size=(n, 3)) + spread * rng.normal(size=(n, 3))
    found = [
        mean_over_seeds([Score(v, Interval(v - 1.96, v + 1.96), 50) for v in run]) for run in drawn
    ]
    held = sum(score.ci95.low <= 0 <= score.ci95.high for score in found) / n
    assert 0.92 <= held <= 0.98, "by 1.96 it would be .82 where seeds differ much"


def test_a_correlations_interval_is_drawn_by_its_seed() -> None:
    rng = np.random.default_rng(0)
    one = rng.normal(size=40)
    two = one + rng.normal(size=40)
    first, again, other = (spearman_correlation(one, two, seed=seed)[1] for seed in (3, 3, 4))
    assert first == again != other
