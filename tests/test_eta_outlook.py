"""What is told beside a recommended η is what was measured nearest to it, or that nothing was."""

from __future__ import annotations

import pytest

from leakscope.core.findings.deniability import describe_scales, outlook
from leakscope.core.results import Interval, Score
from leakscope.core.studies.tradeoff.summary import Point, Tradeoff, measured_etas, shipped_tradeoff


def point(defence: str, eta: float | None, useful: float, leak: float) -> Point:
    return Point(
        defence,
        (("eta", eta),) if eta else (),
        {
            "one": Score(useful, Interval(useful - 5, useful + 5), 100, 50.0),
            "two": Score(60.0, Interval(55.0, 65.0), 100, 20.0),
        },
        {"probe_mlc": Score(leak, Interval(leak - 1, leak + 1), 100, 3.0)},
        Score(12.0, Interval(11.0, 13.0), 100) if eta else None,
    )


@pytest.fixture
def found() -> Tradeoff:
    return Tradeoff(
        (
            point("none", None, 90.0, 40.0),
            point("text_to_text", 60.0, 54.0, 8.0),
            point("text_to_text", 120.0, 80.0, 30.0),
            point("token_representation", 480.0, 60.0, 20.0),
        ),
        {},
    )


def test_the_nearest_measured_eta_is_told_by_hand(found: Tradeoff) -> None:
    near = outlook(found, "text_to_text", 55.0)
    # One: (54 − 50) / (90 − 50) = 10 %, its interval reaches 49 < 50; two: all of it.
    assert near.measured == 60.0 and near.is_near
    assert near.kept == {"one": pytest.approx(0.1), "two": 1.0}
    where, useful, read = near.sentences
    assert "not measured at this η. The nearest η measured is 60, with less noise:" in where
    assert "55 % is left on average over 2 tasks" in useful
    assert "(worst task 10 %, best 100 %)" in useful
    assert "On 1 of 2 tasks, utility is not significantly better than guessing" in useful
    assert "recovers words with an F1 of 8 (95 % CI 7–9)" in read
    assert "Without a defence, the F1 is 40 (95 % CI 39–41)" in read
    assert "guessing reaches 3." in read
    assert "Of the tokens of the sentences attacked for this, 12 % (95 % CI 11–13) stay" in read


def test_an_eta_that_was_measured_is_said_to_be(found: Tradeoff) -> None:
    assert outlook(found, "text_to_text", 120.0).sentences[0].endswith("were measured at this η:")


@pytest.mark.parametrize(("eta", "measured"), [(30.0, 60.0), (84.0, 60.0), (86.0, 120.0)])
def test_where_nothing_was_measured_near_it_says_so(
    found: Tradeoff, eta: float, measured: float
) -> None:
    far = outlook(found, "text_to_text", eta)
    assert not far.is_near and far.measured == measured
    (only,) = far.sentences
    assert f"Nothing was measured near η = {eta:g}" in only and "are unknown" in only
    assert f"Text to text is {measured:g}" in only


def test_a_mechanism_that_was_not_measured(found: Tradeoff) -> None:
    (only,) = outlook(found, "sequence_representation", 200.0).sentences
    assert "was not measured" in only


def test_other_mechanisms_lie_on_other_scales(found: Tradeoff) -> None:
    told = describe_scales(found, "text_to_text")
    assert "only for **Text to text**" in told
    assert "“Token representation” at η 480" in told


def test_what_ships_can_be_told() -> None:
    shipped = shipped_tradeoff()
    measured = list(measured_etas(shipped, "text_to_text"))
    assert measured == sorted(measured) and len(measured) > 1
    for eta in measured:
        told = outlook(shipped, "text_to_text", 0.95 * eta)
        assert told.measured == eta and len(told.sentences) == 3
    assert "“Sequence representation” at η 200 to 800" in describe_scales(shipped, "text_to_text")
