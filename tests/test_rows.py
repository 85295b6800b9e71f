"""Scores of rows that differ in their seed alone."""

from __future__ import annotations

import pytest

from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import ResultTable, Row


def mean_of(measure: str, *values: float) -> Interval:
    rows = [
        Row({"seed": seed}, {measure: Score(value, Interval(value - 0.01, value), 50, 0.0)})
        for seed, value in enumerate(values)
    ]
    return ResultTable(rows).mean(measure).ci95


@pytest.mark.parametrize(
    ("measure", "values", "most"),
    [
        ("accuracy", (0.99, 0.70), 1.0),
        ("bucket_accuracy", (0.99, 0.70), 1.0),
        ("accuracy", (99.0, 70.0), 100.0),
        ("accuracy: TREC", (99.0, 70.0), 100.0),
        ("recall@1: QQP", (99.0, 70.0), 100.0),
        ("token_set_f1: search", (99.0, 70.0), 100.0),
        ("spearman: STS-b", (99.0, 70.0), 100.0),
        ("auc", (0.99, 0.70), 1.0),
        ("membership_auc: bavaria", (99.0, 70.0), 100.0),
        ("attribute_top1: tokens", (99.0, 70.0), 100.0),
    ],
)
def test_no_interval_reaches_beyond_what_a_score_can_be(
    measure: str, values: tuple[float, ...], most: float
) -> None:
    assert mean_of(measure, *values).high == most


def test_the_interval_of_a_change_is_not_cut() -> None:
    assert mean_of("change of accuracy: TREC", -0.5, -30.0).high > 100


def test_a_row_tells_no_interval_beyond_what_a_score_can_be() -> None:
    row = Row({}, {"kendall_tau": Score(42.9, Interval(-39.2, 125.0), 24, 0.0)})
    assert row.format("kendall_tau") == "42.9 [-39.2, 100.0]"


def test_an_entry_is_there_where_the_flat_form_has_it() -> None:
    score = Score(43.0, Interval(39.0, 47.0), 24, 5.0)
    for row in (
        Row({"seed": 0}, {"token_set_f1": score, "accuracy": score}, {"n": 24}, 3.0),
        Row({"seed": 0}, {"token_set_f1": score}, {"n": 20}),
        Row({"seed": 0}, {}, {}, 3.0, "it failed"),
    ):
        flat = row.to_dict()
        names = {*flat, "prior_f1", "prior_macro_f1", "token_set_f1_ci95", "accuracy_chance"}
        names |= {"accuracy", "error", "cell_seconds", "seed_ci95", "nothing"}
        assert {name for name in names if name in row} == flat.keys()
        assert 3 not in row
