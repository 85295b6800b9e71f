"""Copies of a text do not narrow an interval, one unit has none, and what is printed agrees."""

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
from leakscope.core.metrics import score_words
from leakscope.core.results import NO_INTERVAL, Interval, Score
from leakscope.core.units import TextUnit, effective_size, units_of

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
