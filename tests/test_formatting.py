"""What leaks is said the same way everywhere: of ten words so many, else as a score."""

from __future__ import annotations

import pytest

from leakscope.core.formatting import (
    describe_leak,
    format_auc,
    format_f1_change,
    format_out_of_ten,
    format_recall,
)
from leakscope.core.results import Interval, Score


@pytest.mark.parametrize(
    ("percent", "told"),
    [
        (0.0, "none of 10 words"),
        (4.4, "fewer than 1 of 10 words"),
        (4.6, "about 1 of 10 words"),  # shown as 5 per cent
        (44.4, "about 4 of 10 words"),
        (44.6, "about 5 of 10 words"),
        (45.0, "about 5 of 10 words"),
        (54.6, "about 6 of 10 words"),
        (55.0, "about 6 of 10 words"),
        (55.9, "about 6 of 10 words"),
        (64.7, "about 7 of 10 words"),
        (65.0, "about 7 of 10 words"),
        (94.4, "about 9 of 10 words"),
        (99.9, "nearly all of 10 words"),
        (100.0, "all of 10 words"),
        (float("nan"), "an unknown number of words"),
    ],
)
def test_a_share_becomes_a_count_by_hand(percent: float, told: str) -> None:
    assert format_out_of_ten(percent) == told


def test_what_is_read_is_counted_by_recall_and_told_as_a_score_without_one() -> None:
    score = Score(50.0, Interval(48.0, 52.0), 500)
    assert describe_leak(score, 34.0) == "about 3 of 10 words (F1 50, 95 % CI 48–52)"
    assert describe_leak(score) == "words with an F1 of 50 (95 % CI 48–52)"
    assert format_recall(score, 34.0) == "about 3 of 10 words"
    assert "of 10 words" not in format_recall(score, None)


def test_two_leaks_are_told_as_the_scores_that_are_kept_of_both() -> None:
    told = format_f1_change(Score(61.2), Score(63.4))
    assert told == "words with an F1 of **61** instead of **63**"


def test_an_auc_is_told_from_0_to_100() -> None:
    assert format_auc(Score(0.643, Interval(0.61, 0.672), 40)) == "64.3 (95 % CI 61.0–67.2)"
