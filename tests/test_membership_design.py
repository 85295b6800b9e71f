"""The shadow design alone must not tell members from others, and no attack may be fooled by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.core.attacks.membership import predictability as predictability_module
from leakscope.core.attacks.membership.classifiers.evaluation import check_design, plans, ranked
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.predictability import blind_baseline
from leakscope.core.attacks.membership.roc import auc

CASES = Path(__file__).parent / "cases"

N_USERS, N_CLASSES = 60, 3

Design = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Who of the users the target was trained on (n_users,), and each shadow (n_shadows, n_users)."""


def random_halves(n_shadows: int, rng: np.random.Generator) -> Design:
    drawn = rng.random((n_shadows + 1, N_USERS)).argsort(1) < N_USERS // 2
    return drawn[0], drawn[1:]


def k_fold(n_shadows: int, rng: np.random.Generator) -> Design:
    fold = rng.permutation(np.arange(N_USERS) % (n_shadows + 1))
    held = fold != np.arange(n_shadows + 1)[:, None]
    return held[0], held[1:]


def disjoint(n_shadows: int, rng: np.random.Generator) -> Design:
    part = rng.permutation(np.arange(N_USERS) % (n_shadows + 2))
    held = part == np.arange(n_shadows + 1)[:, None]
    return held[0], held[1:]


def of_members_alone(n_shadows: int, rng: np.random.Generator) -> Design:
    members = rng.permutation(np.arange(N_USERS) < N_USERS // 2)
    return members, members & (rng.random((n_shadows, N_USERS)) < 0.5)


def every_one_in_half_of_all(n_shadows: int, rng: np.random.Generator) -> Design:
    """Each user is in exactly half of all models, the target counted."""
    drawn = rng.random((n_shadows + 1, N_USERS)).argsort(0) < (n_shadows + 1) // 2
    return drawn[0], drawn[1:]


FAIR = {"random halves": random_halves}
UNFAIR = {
    "k-fold": k_fold,
    "disjoint": disjoint,
    "of members alone": of_members_alone,
    "each in half of all": every_one_in_half_of_all,
}
DESIGNS = {**FAIR, **UNFAIR}

ANSWERS = {
    "the same of every class": np.full(N_CLASSES, 1 / N_CLASSES),
    "one class likelier": np.array([0.4, 0.3, 0.3]),
    "saturated": np.array([1.0, 0.0, 0.0]),
}


def constant(design: Design, answer: NDArray[np.float64]) -> tuple[Outputs, Shadows]:
    """Return models that answer every text alike; each user has one text of each class."""
    members, inside = (np.repeat(part, N_CLASSES, axis=-1) for part in design)
    n = N_USERS * N_CLASSES
    labels = np.tile(np.arange(N_CLASSES), N_USERS)
    users = tuple(f"user {i // N_CLASSES}" for i in range(n))
    answers = np.tile(answer, (len(inside) + 1, n, 1))
    return (
        Outputs(answers[0], labels, members, users),
        Shadows(answers[1:], labels, inside, users),
    )


@pytest.mark.slow
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("n_shadows", [1, 2, 3, 7])
@pytest.mark.parametrize("design", DESIGNS)
def test_no_attack_finds_a_constant_classifier_s_members(
    design: str, n_shadows: int, answer: str
) -> None:
    rng = np.random.default_rng(n_shadows)
    target, shadows = constant(DESIGNS[design](n_shadows, rng), ANSWERS[answer])
    chosen = plans(shadows, has_users=True, every_statistic=True)
    assert {plan.attack for plan in chosen} == set(CLASSIFIER_ATTACKS)
    found = {plan.name: auc(ranked(plan, target, shadows), n_resamples=1) for plan in chosen}
    assert {name: score.value for name, score in found.items() if score.value != 0.5} == {}


@pytest.mark.parametrize("n_shadows", [1, 2, 3, 7])
@pytest.mark.parametrize("design", UNFAIR)
def test_a_design_that_gives_members_away_is_found(design: str, n_shadows: int) -> None:
    rng = np.random.default_rng(n_shadows)
    target, shadows = constant(UNFAIR[design](n_shadows, rng), ANSWERS["saturated"])
    found = check_design(target, shadows)
    assert found.is_above_chance and found.auc.value > 0.6
    assert found.auc.n == N_USERS, "users are the units where each is in a model as a whole"


@pytest.mark.parametrize("n_shadows", [1, 4, 16])
def test_random_halves_raise_no_alarm(n_shadows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictability_module, "N_PERMUTATIONS", 99)
    found = []
    for seed in range(40):
        rng = np.random.default_rng([n_shadows, seed])
        target, shadows = constant(random_halves(n_shadows, rng), ANSWERS["saturated"])
        found.append(check_design(target, shadows, seed=seed).p_value)
    low = sum(p <= 0.1 for p in found)
    assert low <= 11, "of 40 fair designs 4 are expected below .1; 12 or more once in 1,000"
    assert 9 <= sum(p <= 0.5 for p in found) <= 31


def test_shadow_models_that_hold_nothing_or_everything_say_nothing() -> None:
    members = np.arange(N_USERS) % 2 == 0
    for held in (False, True):
        target, shadows = constant((members, np.full((3, N_USERS), held)), ANSWERS["saturated"])
        found = check_design(target, shadows)
        assert found.auc.value == 0.5 and not found.is_above_chance


def of_case(core: Any, name: str) -> Any:
    return core("membership", "--probabilities", CASES / "membership" / f"{name}.csv", "--json")


ALIGNED = {
    name
    for name, entry in CLASSIFIER_ATTACKS.items()
    if entry.needs == "the same samples" and entry.level == "sample"
}


@pytest.mark.slow
def test_shadow_models_of_members_alone_are_no_evidence_of_a_leak(core: Any) -> None:
    done = of_case(core, "shadows_of_members_no_leak")
    told = done.json()
    assert told["shadow_design"]["is_above_chance"] and told["shadow_design"]["auc"] > 0.9
    assert "shadow design is not valid" in done.err and "permutation p" in done.err
    assert [note for note in told["notes"] if "shadow design is not valid" in note]
    assert told["verdict"].startswith("The shadow models cannot be used")
    assert "None of 10 attacks" in told["verdict"]
    for name, record in told["sample"].items():
        assert record["is_valid"] == (name not in ALIGNED)
        if name in ALIGNED:
            assert set(record["tpr_at_fpr"].values()) == {None} and not record["ppv_at_fpr"]
            assert "by_shadow_threshold" not in record and "advantage" not in record
    path = CASES / "membership" / "shadows_of_members_no_leak.csv"
    lines = core("membership", "--probabilities", path).out.splitlines()
    (line,) = [line for line in lines if "lira_online" in line]
    assert "not valid: shadow design" in line and "%" not in line


def test_a_constant_classifier_in_a_k_fold_has_an_auc_of_fifty(core: Any) -> None:
    told = of_case(core, "kfold_constant").json()
    for record in told["sample"].values():
        low, high = record["auc_ci95"]
        assert abs(record["auc"] - 0.5) <= 0.011 and low <= 0.5 <= high
    exact = {"lira_online", "lira_offline", "rmia_online", "bavaria"}
    assert {told["sample"][name]["auc"] for name in exact} == {0.5}
    assert told["shadow_design"]["is_above_chance"]


def test_random_halves_without_a_leak_stay_near_fifty_and_are_told_so(core: Any) -> None:
    told = of_case(core, "control_random_halves_no_leak").json()
    assert not told["shadow_design"]["is_above_chance"] and not told["notes"]
    for record in told["sample"].values():
        assert record["is_valid"] and abs(record["auc"] - 0.5) < 0.06
        assert record["resolution_at_fpr"] == {
            "0.1": "resolvable",
            "0.01": "coarse",
            "0.001": "not resolvable",
        }
    assert told["verdict"].startswith("None of 15 attacks")


def test_labels_that_are_off_by_one_are_named(core: Any) -> None:
    done = of_case(core, "labels_shifted")
    (note,) = [note for note in done.json()["notes"] if "chance" in note]
    assert "1.9%" in note and "far below chance (25.0%)" in note
    assert "may be off by one: they are 1 to 3 for the columns p_0 to p_3" in note
    assert "class just before the label" in note and note in done.err


# Texts


def texts_of(members: NDArray[np.bool_], *, leak: bool) -> list[str]:
    rng = np.random.default_rng(8)
    words = np.array(
        ["red", "blue", "green", "small", "large", "old", "near", "far", "warm", "cold"]
    )
    dates = np.where(members, "2019", "2023") if leak else np.full(len(members), "2021")
    return [f"{' '.join(rng.choice(words, 8))} in {date}" for date in dates]


def test_texts_of_two_years_are_told_apart_without_a_model_and_of_one_are_not() -> None:
    members = np.random.default_rng(1).permutation(np.arange(200) < 100)
    assert blind_baseline(texts_of(members, leak=True), members).auc.value > 0.95
    fair = blind_baseline(texts_of(members, leak=False), members)
    assert not fair.is_above_chance and fair.auc.value < 0.65


def test_texts_of_a_user_count_once() -> None:
    users = [f"u{i // 10}" for i in range(200)]
    members = np.arange(200) < 100
    texts = [
        f"{text} {user}" for text, user in zip(texts_of(members, leak=False), users, strict=True)
    ]
    found = blind_baseline(texts, members, users)
    assert found.auc.n == 20 and not found.is_above_chance, "a user's own words tell no other user"
    assert blind_baseline(texts, members).is_above_chance, "counted one by one they would"


def write(path: Path, *, leak: bool) -> Path:
    rng = np.random.default_rng(5)
    members = rng.permutation(np.arange(160) < 80)
    labels = rng.integers(0, 2, 160)
    right = np.where(rng.random(160) < 0.8, labels, 1 - labels)
    lines = [
        {
            "member": int(m),
            "label": int(y),
            "p_0": 0.8 - 0.6 * int(r),
            "p_1": 0.2 + 0.6 * int(r),
            "text": text,
        }
        for m, y, r, text in zip(members, labels, right, texts_of(members, leak=leak), strict=True)
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return path


def test_the_command_says_that_a_split_leaks_by_its_words(core: Any, tmp_path: Path) -> None:
    leaking, fair = (write(tmp_path / f"{leak}.jsonl", leak=leak) for leak in (True, False))
    done = core("membership", "--probabilities", leaking, "--json")
    told = done.json()
    assert told["blind_baseline"]["is_above_chance"] and "the split itself leaks" in done.err
    assert told["verdict"].startswith("Members and non-members differ in their words")
    other = core("membership", "--probabilities", fair, "--json").json()
    assert not other["blind_baseline"]["is_above_chance"]
    assert not [note for note in other["notes"] if "split" in note]
    said = core("membership", "--probabilities", fair).out
    assert "without the classifier, the texts alone: AUC" in said
