"""Verdicts on single users: kept as bits, joined over draws."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from core.attacks.membership.classifiers.evaluation import AttackOutcome, Plan, evaluate
from core.attacks.membership.classifiers.example import simulated_outputs
from core.attacks.membership.ranking import Ranking
from core.attacks.membership.rates import AtRate
from core.intervals import clopper_pearson
from core.results import Interval, Score
from core.studies.membership_classifier_tables import markdown
from core.studies.membership_stability import (
    MOST_KEPT,
    VERDICTS,
    Stability,
    kept_verdicts,
    stability,
)
from core.studies.rows import Row

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
        verdicts = kept_verdicts(outcome_of(scores, members, 0.5), "abcdefgh", "abcdefgh")
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
    own = kept_verdicts(outcome_of(scores, members, 2.5), "abc", "abc")
    shadows = kept_verdicts(outcome_of(scores, members, 2.5, calibrated=1.5), "abc", "abc")
    assert (own["thresholds_of"], shadows["thresholds_of"]) == ("target", "shadows")
    assert own["members"] == shadows["members"] == shadows["called"]["0.1"] != own["called"]["0.1"]
    (real,) = evaluate(OWN.target, OWN.shadows, chosen=[MADE.plan], is_calibrated=True)
    assert real.calibrated and kept_verdicts(real, ["a"] * 60, ["a"])["thresholds_of"] == "shadows"


def test_of_a_large_collection_the_same_part_is_kept_in_every_draw() -> None:
    every = [f"text {i}" for i in range(3 * MOST_KEPT)]
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(2):
        drawn = rng.permutation(len(every))[: 2 * MOST_KEPT]
        members = "".join("+-"[i % 2] for i in drawn)
        made = outcome_of([float(i % 4 == 0) for i in drawn], members, 0.5)
        kept = kept_verdicts(made, [every[i] for i in drawn], every)
        assert kept["n"] == MOST_KEPT and len(json.dumps(kept)) < 1500 and "text" not in str(kept)
        rows.append(Row(facts={VERDICTS: kept}))
    found = found_in(rows)
    assert found.agreement.value == 1 and 300 < found.agreement.n < 600
    assert 0.4 < found.always.value < 0.6


def table_rows() -> list[Row]:
    """Return the rows of two attacks on eight users, two draws with the same members."""

    def row(seed: int, attack: str, area: float) -> Row:
        facts = {"attack": attack, "level": "user", "n_members": 4, "n_member_users": 4, "n": 8,
                 "n_classes": 2, "train_accuracy": 0.9, "test_accuracy": 0.6,
                 "generalisation_error": 0.3}  # fmt: skip
        cell = {"corpus": "posts", "label": "topic", "classifier": "linear", "split": "user",
                "seed": seed, "varied": ""}  # fmt: skip
        (kept,) = rows_of(("++++----", "!!......" if attack == "user_inference" else "!......."))
        score = Score(area, Interval(area - 0.1, area + 0.1), 8, 0.5)
        null = Score(0.5 + area / 100, Interval(0.4, 0.6), 8, 0.5)
        return Row(cell, {"auc": score, "null_auc": null}, facts | {VERDICTS: kept[VERDICTS]})

    return [row(seed, attack, area) for seed in (0, 1)
            for attack, area in (("user_inference", 0.9), ("user_votes", 0.6))]  # fmt: skip


def test_the_table_tells_it_of_the_strongest_attack_in_a_line() -> None:
    rows = table_rows()
    told = markdown(rows)
    assert "Single verdicts, User inference, thresholds of the target itself: at 10 % " in told
    assert "% false accusations 0.500 [0.068, 0.932] of the 4 users that are members in" in told
    assert told.count("two draws agree on 1.000") == 1 and "at 1 % false" not in told
    assert "; User inference on a model trained on neither: AUC 0.509 [" in told
    earlier = [replace(r, scores={"auc": r.scores["auc"]},
                       facts={k: v for k, v in r.facts.items() if k != VERDICTS})
               for r in rows]  # fmt: skip
    assert "Single verdicts" not in markdown(earlier) and "neither" not in markdown(earlier)


def test_the_table_says_how_many_rows_of_the_file_have_no_user_or_class() -> None:
    rows = table_rows()
    left_out = [replace(row, facts=row.facts | {"n_unlabelled": 1203}) for row in rows]
    assert ". 1,203 rows of the file have no user or no class, and are left" in markdown(left_out)
    none = [replace(row, facts=row.facts | {"n_unlabelled": 0}) for row in rows]
    assert markdown(none) == markdown(rows) and "left out" not in markdown(rows)
