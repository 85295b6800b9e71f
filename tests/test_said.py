"""What leaks is said the same way everywhere: of ten words so many, then the F1."""

from __future__ import annotations

import pytest

from core.results import Interval, Score
from core.said import instead_said, leak_said, of_ten


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
        (float("nan"), "not known how many words"),
    ],
)
def test_a_share_becomes_a_count_by_hand(percent: float, told: str) -> None:
    assert of_ten(percent) == told


def test_what_is_read_is_counted_by_recall_where_it_is_kept() -> None:
    score = Score(50.0, Interval(48.0, 52.0), 500)
    assert leak_said(score) == "about 5 of 10 words (F1 50 [48, 52])"
    assert leak_said(score, 34.0).startswith("about 3 of 10 words (F1 50")


def test_two_leaks_that_ten_words_cannot_tell_apart_are_told_of_a_hundred() -> None:
    assert "2 of 10 words" in instead_said(Score(20.0), Score(60.0))
    assert "61 of 100 words" in instead_said(Score(61.0), Score(63.0))
    alike = instead_said(Score(61.2), Score(61.4))
    assert alike.startswith("**about 61 of 100 words** instead of **about 61**")
