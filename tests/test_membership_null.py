"""The null control: a model that was trained on none of the attacked gives nobody away.

Members and others are told as of the target, and the study's own code attacks another model, so
that whatever is found is read of membership itself or of how its members were drawn.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_membership_classifier_study import NAME
from test_membership_classifier_study import study as small_study
from test_membership_studies import write_posts

from leakscope.core.attacks.membership.classifiers import features, thresholds
from leakscope.core.attacks.membership.classifiers.evaluation import Plan, attack_auc, ranked
from leakscope.core.attacks.membership.classifiers.outputs import Outputs
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.roc import auc
from leakscope.core.results.rows import Cell, Row
from leakscope.core.studies import named_texts
from leakscope.core.studies.membership import classifiers as membership_classifiers
from leakscope.core.studies.membership import trained_classifiers
from leakscope.core.studies.membership.classifier_rows import NULL
from leakscope.core.studies.membership.classifiers import measure
from leakscope.core.studies.membership.compared import LEVEL
from leakscope.core.studies.membership.stability import KEPT_RATES, VERDICTS, stability
from leakscope.core.studies.membership.trained_classifiers import (
    TrainedModels,
    load_or_train_models,
    training_batch_of,
)
from leakscope.core.studies.registry import cells_of
from leakscope.core.tasks.classifiers import AuthoredTexts


@pytest.fixture(scope="module")
def study(
    tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path, small_texts: list[str]
) -> Iterator[tuple[list[Cell], Path]]:
    """The cells of a small study, users drawn, and the folder where its classifiers are kept."""
    folder = tmp_path_factory.mktemp("null")
    for cached in (named_texts.open_classed, membership_classifiers.content_of):
        cached.cache_clear()
    bare = ",a,Nobody says who wrote this", "u1,,Nor what this is about"
    posts = write_posts(folder / "posts.csv", small_texts, *bare)
    yield cells_of(NAME, small_study(posts, tiny_bert, splits=("user",))), folder


def cell_of(study: tuple[list[Cell], Path], attack: str) -> Cell:
    return next(cell for cell in study[0] if cell["classifier_attack"] == attack)


def rows_of(study: tuple[list[Cell], Path], attack: str) -> list[Row]:
    rows = measure(cell_of(study, attack), study[1])
    return [row for row in rows if "bucket" not in row.facts]


def is_even(row: Row) -> bool:
    null = row.scores[NULL]
    return bool(null.ci95.low <= 0.5 <= null.ci95.high)


def test_the_model_of_the_control_was_trained_on_no_attacked_user(
    study: tuple[list[Cell], Path],
) -> None:
    found: TrainedModels = load_or_train_models(cell_of(study, "threshold"), study[1])
    target, null = found.target(), found.null()
    assert np.array_equal(target.members, null.members) and target.users == null.users
    assert not np.array_equal(target.probabilities, null.probabilities), "another model answers"
    shadow = found.shadow()
    trained_on = {u for u, m in zip(shadow.users or (), shadow.members, strict=True) if m}
    assert trained_on and not trained_on & set(null.users or ())


@pytest.mark.parametrize(
    "attack", ["feature", "threshold", "lira_online", "bavaria", "user_learned", "user_inference"]
)
def test_nobody_is_told_apart_by_a_model_that_was_trained_on_neither(
    study: tuple[list[Cell], Path], attack: str
) -> None:
    rows = rows_of(study, attack)
    assert rows and all(NULL in row.scores for row in rows)
    assert [row.facts.get("feature") for row in rows if not is_even(row)] == []


@lru_cache(maxsize=8)
def many_users(seed: int) -> TrainedModels:
    """2,000 users of three texts: how easy each text is, noise, and surer where trained on."""
    rng = np.random.default_rng([seed, 1])
    n = 6000
    users = tuple(f"u{i // 3}" for i in range(n))
    labels = rng.integers(0, 3, n)
    texts = AuthoredTexts("toy", tuple(map(str, range(n))), users, tuple("abc"[i] for i in labels))
    lesson, parts = training_batch_of(texts, users, 4, seed)
    logits = rng.normal(0, 0.4, (len(lesson.trained), n, 3))
    logits[:, np.arange(n), labels] += rng.normal(1, 1, n) + 0.6 * lesson.trained
    shares = np.exp(logits)
    answers = (shares / shares.sum(2, keepdims=True)).astype(np.float32)
    return TrainedModels(texts, parts, answers, lesson.trained[2:])


PLANS = (
    *(Plan(name, {"feature": "loss"}) for name in ("feature", "threshold", "user_learned")),
    *(Plan(name) for name in ("lira_online", "lira_offline", "rmia_online", "rmia_offline")),
    Plan("bavaria"),
    Plan("user_votes", {"feature": "loss"}),
    Plan("user_inference"),
    Plan("user_statistic", {"feature": "loss", "statistic": "mean"}),
    Plan("user_likelihood", {"of": "bavaria"}),
)


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_of_hundreds_of_users_none_is_told_apart_by_a_model_of_neither(plan: Plan) -> None:
    """With so many the interval is narrow, and draws taken together are at one half."""
    assert {each.attack for each in PLANS} == set(CLASSIFIER_ATTACKS)

    def asked(seed: int) -> tuple[TrainedModels, Any]:
        found = many_users(seed)
        is_aligned = CLASSIFIER_ATTACKS[plan.attack].needs == "the same samples"
        return found, found.aligned() if is_aligned else [found.shadow()]

    nulls = []
    for seed in range(4):
        found, shadows = asked(seed)
        nulls.append(attack_auc(plan, found.null(), shadows))
    assert all(null.ci95.high - null.ci95.low < 0.09 for null in nulls)
    missed = [null for null in nulls if not null.ci95.low <= 0.5 <= null.ci95.high]
    assert len(missed) <= 1, "of intervals of 95 % one in twenty does"
    target = auc(ranked(plan, found.target(), shadows), n_resamples=1).value
    assert target > nulls[-1].ci95.high + 0.05, "what was trained on is found"
    areas = [null.value for null in nulls]
    for seed in range(4, 8):
        found, shadows = asked(seed)
        areas.append(auc(ranked(plan, found.null(), shadows), n_resamples=1).value)
    assert abs(np.mean(areas) - 0.5) < 0.02


def test_membership_that_leaks_into_features_is_noticed(
    study: tuple[list[Cell], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control by lot cannot: it deals membership after the scores."""
    real = features.member_score

    def leaky(name: str, outputs: Outputs) -> Any:
        return real(name, outputs) + 50.0 * outputs.members

    monkeypatch.setattr(thresholds, "member_score", leaky)
    rows = rows_of(study, "threshold")
    assert not any(is_even(row) for row in rows)
    assert all(row.scores[NULL].ci95.low > 0.5 for row in rows)
    assert all(abs(row.scores["control_auc"].value - 0.5) < 0.05 for row in rows)


def test_members_that_are_drawn_unlike_others_are_noticed(
    study: tuple[list[Cell], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members are those whom another model happens to know: no model was trained on more."""
    real = TrainedModels.null

    def sorted_out(found: TrainedModels) -> Outputs:
        null = real(found)
        surest = -features.loss(null.probabilities, null.labels)
        return replace(null, members=surest > np.median(surest))

    monkeypatch.setattr(trained_classifiers.TrainedModels, "null", sorted_out)
    rows = rows_of(study, "feature")
    (loss,) = [row for row in rows if row["feature"] == "loss"]
    assert loss.scores[NULL].ci95.low > 0.5


def test_attacks_on_users_tell_what_they_gain_over_the_strongest_on_samples(
    study: tuple[list[Cell], Path],
) -> None:
    samples = [
        row
        for name, entry in CLASSIFIER_ATTACKS.items()
        if entry.level == "sample"
        for row in rows_of(study, name)
    ]
    best = max(row.scores["auc"].value for row in samples)
    assert not any(LEVEL in row.scores for row in samples)
    for attack in ("user_votes", "user_inference"):
        for row in rows_of(study, attack):
            gain = row.scores[LEVEL]
            assert gain.value == pytest.approx(row.scores["auc"].value - best)
            assert gain.ci95.low <= gain.value <= gain.ci95.high
            told = {
                " ".join([r["attack"], *([r["feature"]] if "feature" in r.facts else [])])
                for r in samples
                if r.scores["auc"].value == best
            }
            assert row["over"] in told


@pytest.mark.parametrize("attack", ["bavaria", "user_inference"])
def test_rows_keep_the_verdicts_on_their_members_as_bits(
    study: tuple[list[Cell], Path], attack: str
) -> None:
    (row,) = rows_of(study, attack)
    kept = row[VERDICTS]
    unit = "n_members" if CLASSIFIER_ATTACKS[attack].level == "sample" else "n_member_users"
    packed = np.frombuffer(base64.b64decode(kept["members"]), dtype=np.uint8)
    assert np.unpackbits(packed).sum() == row[unit] and kept["thresholds_of"] == "shadows"
    assert stability([row, row], KEPT_RATES[0]) is not None, "of each draw the same order"


def test_rows_without_a_user_are_counted(study: tuple[list[Cell], Path]) -> None:
    (row,) = rows_of(study, "user_inference")
    assert row["n_unlabelled"] == 2
