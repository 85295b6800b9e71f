from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leakscope.core.errors import InvalidInputError
from leakscope.core.formatting import describe_leak, format_auc, format_rate
from leakscope.core.intervals import (
    balanced_interval,
    bootstrap_interval,
    constant_interval,
    mean_rate,
    percent_interval,
    rate_by_document,
    rate_of,
    ratio_interval,
    student_interval,
    wilson_interval,
)
from leakscope.core.metrics import idf_weights, mean_over_seeds, score_words, token_set_scores
from leakscope.core.rank_correlation import spearman_correlation
from leakscope.core.results import NO_INTERVAL, Interval, Score
from leakscope.core.units import TextUnit, effective_size, units_of

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


ROOT = Path(__file__).parents[1]
TEXTS = [f"The text number {i} of eight." for i in range(8)]
VALUES = np.array([10.0, 0.0, 55.0, 100.0, 35.0, 20.0, 80.0, 5.0])


def test_texts_that_differ_in_case_blanks_or_unicode_form_are_copies() -> None:
    units = units_of(["The caf\u00e9.", " the  CAFE\u0301. ", "The cafe."])
    assert units[0] == units[1] != units[2]
    assert all(isinstance(unit, TextUnit) for unit in units)


def test_documents_with_the_same_texts_are_copies_and_others_are_not() -> None:
    texts = ["One.", "Two.", "two.", "One.", "One.", "Three."]
    units = units_of(texts, ["a", "a", "b", "b", "c", "c"])
    assert units == ["a", "a", "a", "a", "c", "c"]
    assert not any(isinstance(unit, TextUnit) for unit in units)
    assert units_of(["One.", "One.", "Two."], ["a", "a", "b"]) == units_of(["One.", "one.", "Two."])
    with pytest.raises(InvalidInputError, match="2 documents for 1 texts"):
        units_of(["One."], ["a", "b"])


@pytest.mark.parametrize("n_copies", [2, 100])
def test_copies_change_no_interval(n_copies: int) -> None:
    units = units_of(TEXTS * n_copies)
    many, over = np.tile(VALUES, n_copies), np.tile(VALUES + 1, n_copies)
    assert bootstrap_interval(many, groups=units).format(6) == bootstrap_interval(VALUES).format(6)
    assert percent_interval(many, groups=units).format(6) == percent_interval(VALUES).format(6)
    both = ratio_interval(many, over, groups=units), ratio_interval(VALUES, VALUES + 1)
    assert both[0].format(6) == both[1].format(6)
    hits = VALUES > 50
    assert rate_by_document(np.tile(hits, n_copies), units).ci95 == rate_of(3, 8).ci95
    shares = [mean_rate(np.tile(VALUES / 100, n_copies), documents=units), mean_rate(VALUES / 100)]
    assert shares[0].format(6) == shares[1].format(6)
    never = mean_rate(np.zeros(8 * n_copies), documents=units)
    assert never.ci95 == rate_of(0, 8).ci95
    # Without the units the same samples look as if they were independent.
    naive = bootstrap_interval(many)
    own = bootstrap_interval(VALUES)
    assert naive.high - naive.low < 0.8 * (own.high - own.low)


def test_copies_do_not_narrow_the_scores_of_an_attack() -> None:
    targets = [frozenset({f"w{i}", "dog", "cat"}) for i in range(8)]
    answers = [frozenset({"dog", *([f"w{i}"] if i % 3 else [])}) for i in range(8)]
    once = score_words(answers, targets, texts=TEXTS)
    many = score_words(answers * 50, targets * 50, texts=TEXTS * 50)
    assert (once.n, once.n_distinct, many.n, many.n_distinct) == (8, 8, 400, 8)
    for name in ("precision", "recall", "token_set_f1"):
        assert many.score(name).format(6) == once.score(name).format(6)
    assert once.unit == many.unit == "sentence"
    of_two = score_words(answers, targets, texts=TEXTS, groups=[i // 4 for i in range(8)])
    assert (of_two.unit, of_two.n_documents, of_two.n_distinct) == ("document", 2, 8)


def test_effective_size_counts_what_independent_samples_would_say() -> None:
    assert effective_size(["a"] * 9 + ["b"]) == pytest.approx(100 / 82)
    skewed = rate_by_document(np.arange(10) < 5, [TextUnit("a")] * 9 + [TextUnit("b")])
    assert skewed.ci95 == wilson_interval(50 / 82, 100 / 82), "half of hardly more than one text"


@pytest.mark.parametrize("n", [1, 20])
def test_one_unit_has_no_interval(n: int) -> None:
    values, units = np.full(n, 25.0), units_of(["The only text."] * n)
    found = [
        bootstrap_interval(values, groups=units),
        percent_interval(values, groups=units),
        ratio_interval(values, values, groups=units),
        bootstrap_interval(values, groups=["document"] * n),
        mean_rate(values / 100, documents=units).ci95,
        balanced_interval(np.ones(n), np.zeros(n, np.int64), groups=units),
    ]
    assert all(math.isnan(each.low) and math.isnan(each.high) for each in found)
    scores = score_words([frozenset({"dog"})] * n, [frozenset({"dog"})] * n, texts=["A dog."] * n)
    assert math.isnan(scores.token_set_f1_ci95.low)
    assert scores.score("token_set_f1").format() == "100.0"


def test_equal_samples_within_bounds_have_an_interval_that_is_not_a_point() -> None:
    assert percent_interval(np.full(2, 25.0)) == constant_interval(25.0, 2, 0, 100)
    never, always = (percent_interval(np.full(30, value)) for value in (0.0, 100.0))
    from leakscope.core.intervals import clopper_pearson

    assert never.high == pytest.approx(100 * clopper_pearson(0, 30).high)
    assert always.low == pytest.approx(100 * clopper_pearson(30, 30).low)
    assert (never.low, always.high) == (0.0, 100.0)
    student = student_interval(np.full(8, 10.0), low=0, high=10)
    assert student == constant_interval(10.0, 8, 0, 10) and student.low < 7
    assert student_interval(np.full(8, 10.0)) == NO_INTERVAL


def test_an_interval_of_equal_samples_holds_the_mean_as_often_as_it_says() -> None:
    # A mean of rare ones: wherever all of 20 samples are 0, the end must reach it often enough.
    rng, share = np.random.default_rng(0), 0.15
    drawn = rng.random((2000, 20)) < share
    missed = [row for row in drawn if not row.any()]
    interval = percent_interval(np.zeros(20))
    assert interval.high > 100 * share and len(missed) / len(drawn) < 0.05


def test_balanced_accuracy_has_the_interval_of_its_rarest_label() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [500, 20])
    held = 0
    for seed in range(100):
        hits = (rng.random(520) < np.where(labels == 0, 0.9, 0.4)).astype(np.float64)
        found = balanced_interval(hits, labels, seed=seed, n_resamples=400)
        held += found.low <= 0.65 <= found.high
    assert held >= 90
    wide, narrow = found.high - found.low, wilson_interval(0.65 * 520, 520)
    assert wide > 2 * (narrow.high - narrow.low) / 100
    assert balanced_interval(np.ones(520), labels) == constant_interval(1.0, 20, 0, 1)
    assert balanced_interval((labels == 0).astype(float), labels) == NO_INTERVAL


_shares = st.floats(0, 100, allow_subnormal=False)


@st.composite
def _scores(draw: st.DrawFn) -> Score:
    low, value, high = sorted(draw(st.tuples(_shares, _shares, _shares)))
    width = draw(st.sampled_from([1.0, 0.1, 0.001, 0.0]))
    low, high = value - (value - low) * width, value + (high - value) * width
    return Score(value, Interval(low, high), draw(st.integers(1, 999)))


def _numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text.replace("95 % CI", ""))]


@example(Score(0.0, Interval(0.0, 1e-05), 1), 0)
@given(_scores(), st.integers(0, 3))
def test_a_printed_value_lies_in_its_printed_interval(score: Score, decimals: int) -> None:
    said = score.format(decimals)
    if not score.ci95.is_known:
        assert score.ci95.high - score.ci95.low < 1e-6
        assert "[" not in said, "an interval of zero width is none"
        assert score.parts(decimals)[1] == "not known"
        return
    value, low, high = _numbers(said)
    assert low <= value <= high
    if score.ci95.high - score.ci95.low > 10 ** -(decimals + 3):
        assert low < high, "not printed as if it were one number"
    apart, interval = score.parts(decimals)
    assert [value, low, high] == [float(apart), *_numbers(interval)]
    rate, share = format_rate(score, decimals=decimals), score.value / 100
    assert _numbers(rate)[0] == value and _numbers(rate)[-2:] == [low, high]
    of_one = Score(share, Interval(score.ci95.low / 100, score.ci95.high / 100), 3)
    in_percent = _numbers(format_auc(of_one, decimals))
    assert in_percent[1] <= in_percent[0] <= in_percent[2]
    f1, *ends = _numbers(describe_leak(score, 50.0).split("F1 ")[1])
    assert ends[0] <= f1 <= ends[1]


def test_no_interval_is_said_as_such() -> None:
    rounding = Score(0.41, Interval(0.41, 0.41 + 1e-16), 48)
    assert rounding.format() == "0.4", "the ends differ by rounding alone"
    assert Score(25.0, NO_INTERVAL, 1).format() == "25.0"
    assert format_rate(Score(25.0, NO_INTERVAL, 1)) == "25 % of 1 (95 % CI not known)"
    one = Score(40, NO_INTERVAL, 1, n_trials=60)
    assert format_rate(one, "vectors") == "40 % of 60 vectors (95 % CI not known)"


def test_every_printed_interval_has_the_decimals_of_its_value() -> None:
    # Printed apart from its value, an interval may have other decimals and not hold it.
    for folder in ("core", "dashboard", "pages"):
        for path in (ROOT / folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            is_score = path.relative_to(ROOT) == Path("core/results/scores.py")
            assert is_score or "ci95.format(" not in source, f"{path}: use Score.parts"


def test_a_ratio_of_skewed_samples_lies_in_its_interval() -> None:
    values = np.zeros(400)
    values[0] = 1000.0
    for seed in range(5):
        found = bootstrap_interval(values, seed=seed, n_resamples=100, level=0.2)
        assert found.low <= values.mean() <= found.high
