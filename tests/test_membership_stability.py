"""Verdicts on single users: kept as bits, joined over draws."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from leakscope.core.attacks.membership.classifiers.evaluation import AttackOutcome, Plan, evaluate
from leakscope.core.attacks.membership.classifiers.own_file import simulated_outputs
from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.rates import AtRate
from leakscope.core.intervals import clopper_pearson
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.membership.stability import (
    MOST_KEPT,
    VERDICTS,
    Stability,
    pack_verdicts,
    stability,
)

OWN = simulated_outputs(60, 3, 4, seed=1)
(MADE,) = evaluate(OWN.target, OWN.shadows, chosen=[Plan("user_inference")])


def outcome_of(
    scores: list[float], members: str, threshold: float, *, calibrated: float | None = None
) -> AttackOutcome:
    """Return an outcome of `scores`, "+" being members, that accuses above a threshold."""

    def at(cut: float) -> tuple[AtRate, ...]:
        return (AtRate(0.1, cut, Score(0.5), 40), AtRate(0.01, cut, Score(0.5), 40))

    held = np.array([each == "+" for each in members])
    cuts = () if calibrated is None else at(calibrated)
    ranking = Ranking(np.array(scores), held)
    return replace(MADE, ranking=ranking, at=at(threshold), calibrated=cuts)


def rows_of(*kept: tuple[str, str]) -> list[Row]:
    """Return a row a draw, of users a to h: who is a member, and who is called one ("!")."""
    rows = []
    for seed, (members, called) in enumerate(kept):
        scores = [1.0 if each == "!" else 0.0 for each in called]
        verdicts = pack_verdicts(outcome_of(scores, members, 0.5), "abcdefgh", "abcdefgh")
        rows.append(Row(facts={"seed": seed, VERDICTS: json.loads(json.dumps(verdicts))}))
    return rows


def found_in(rows: list[Row], rate: float = 0.1) -> Stability:
    found = stability(rows, rate)
    assert found is not None
    return found


def test_verdicts_are_held_against_those_of_other_draws_by_hand() -> None:
    """Members of two draws or more are a to e: a and d are called so each time, b, c and e not.

    Of the first two draws a, b, c and d are members of both: the same of a, c and d. Of the first
    and the last d and e: the same of d. Of the last two d alone, the same.
    """
    rows = rows_of(("+++++---", "!!.!!!!!"), ("++++-+--", "!..!-!!!"), ("---++-+-", "...!.!!."))
    found = found_in(rows)
    assert (found.always.value, found.always.n) == (2 / 5, 5)
    assert found.always.ci95 == clopper_pearson(2, 5)
    assert (found.agreement.value, found.agreement.n) == (5 / 7, 7)
    by_lot = 4 * (3 / 4 * 2 / 4 + 1 / 4 * 2 / 4) + 2 * (1 * 1 / 2 + 0 * 1 / 2) + 1
    assert found.agreement.chance == pytest.approx(by_lot / 7)
    assert found.agreement.ci95.low < 5 / 7 < found.agreement.ci95.high <= 1


def test_who_is_called_so_while_no_member_counts_for_nothing() -> None:
    one, other = rows_of(("++--++++", "!.!!!!!!"), ("++--++++", "!...!!!!"))
    same = rows_of(("++--++++", "!...!!!!"), ("++--++++", "!...!!!!"))
    assert found_in([one, other]) == found_in(same)
    assert found_in(same).agreement.value == 1 and found_in(same).always.value == 5 / 6


def test_what_cannot_be_told_is_not() -> None:
    rows = rows_of(("++++----", "!!!!!!!!"), ("----++++", "!!!!!!!!"))
    assert stability(rows, 0.1) is None, "nobody is a member twice"
    assert stability(rows[:1], 0.1) is None
    assert stability([*rows_of(("++------", "!!......")) * 2], 0.01) is None, "forty tell no 1 %"
    assert stability([Row(facts={"seed": 0})] * 2, 0.1) is None


def test_thresholds_are_those_of_shadows_where_there_are_any() -> None:
    scores, members = [3.0, 2.0, 1.0], "++-"
    own = pack_verdicts(outcome_of(scores, members, 2.5), "abc", "abc")
    shadows = pack_verdicts(outcome_of(scores, members, 2.5, calibrated=1.5), "abc", "abc")
    assert (own["thresholds_of"], shadows["thresholds_of"]) == ("target", "shadows")
    assert own["members"] == shadows["members"] == shadows["called"]["0.1"] != own["called"]["0.1"]
    (real,) = evaluate(OWN.target, OWN.shadows, chosen=[MADE.plan], is_calibrated=True)
    assert real.calibrated and pack_verdicts(real, ["a"] * 60, ["a"])["thresholds_of"] == "shadows"


def test_of_a_large_collection_the_same_part_is_kept_in_every_draw() -> None:
    every = [f"text {i}" for i in range(3 * MOST_KEPT)]
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(2):
        drawn = rng.permutation(len(every))[: 2 * MOST_KEPT]
        members = "".join("+-"[i % 2] for i in drawn)
        made = outcome_of([float(i % 4 == 0) for i in drawn], members, 0.5)
        kept = pack_verdicts(made, [every[i] for i in drawn], every)
        assert kept["n"] == MOST_KEPT and len(json.dumps(kept)) < 1500 and "text" not in str(kept)
        rows.append(Row(facts={VERDICTS: kept}))
    found = found_in(rows)
    assert found.agreement.value == 1 and 300 < found.agreement.n < 600
    assert 0.4 < found.always.value < 0.6
