"""The study of membership in classifiers: what it measures, keeps, and must not know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_membership_studies import write_posts

from leakscope.core.attacks.membership.classifiers.evaluation import Plan, evaluate
from leakscope.core.attacks.membership.classifiers.outputs import Outputs
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.classifiers.targets.heads import Solving, fit_heads
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.studies import named_texts
from leakscope.core.studies.membership import classifier_tables as membership_classifier_tables
from leakscope.core.studies.membership import classifiers as membership_classifiers
from leakscope.core.studies.membership import trained_classifiers
from leakscope.core.studies.membership.classifier_rows import entropy_rows
from leakscope.core.studies.membership.classifiers import MembershipClassifierStudy
from leakscope.core.studies.membership.shipped import Measured
from leakscope.core.studies.membership.trained_classifiers import (
    TrainedModels,
    load_or_train_models,
)
from leakscope.core.studies.named_texts import ClassedTexts, parse_classed_texts
from leakscope.core.studies.registry import cells_of, run_study

NAME = "membership-classifiers"


@pytest.fixture(autouse=True)
def forgotten() -> None:
    for cached in (named_texts.open_classed, membership_classifiers.content_of):
        cached.cache_clear()


@pytest.fixture
def posts(tmp_path: Path, small_texts: list[str]) -> Path:
    return write_posts(tmp_path / "posts.csv", small_texts)


def study(posts: Path, tiny_bert: Path, **more: Any) -> MembershipClassifierStudy:
    given: dict[str, Any] = {
        "encoder": f"mlm:{tiny_bert}",
        "n_shadows": 4,
        "seeds": (0,),
        "least": 2,
    }
    return MembershipClassifierStudy(corpora=(f"posts={posts}:topic",), **(given | more))


@pytest.fixture
def rows(posts: Path, tiny_bert: Path, tmp_path: Path) -> list[Row]:
    return run_study(NAME, study(posts, tiny_bert), tmp_path / "study")


@pytest.mark.slow
def test_every_attack_is_scored_by_users_and_those_on_texts_by_texts(rows: list[Row]) -> None:
    assert [row.error for row in rows if row.error] == []
    found = {(row["split"], row["attack"]) for row in rows}
    assert found == {
        (split, name)
        for split in ("user", "sample")
        for name, entry in CLASSIFIER_ATTACKS.items()
        if split == "user" or entry.level == "sample"
    }
    for row in rows:
        if "bucket" in row.facts:
            continue
        auc, control = row.scores["auc"], row.scores["control_auc"]
        assert auc.ci95.low <= auc.value <= auc.ci95.high
        assert abs(control.value - 0.5) < 0.05, "membership dealt by lot"
        assert row["train_accuracy"] >= row["test_accuracy"] - 0.1
        assert len(row["curve"]) == 25 and row["curve"][-1] == [1.0, 1.0]
    users = [r for r in rows if r["attack"] == "user_votes" and "bucket" not in r.facts]
    assert {row["n"] for row in users} == {
        users[0]["n_member_users"] + users[0]["n_outsider_users"]
    }


@pytest.mark.slow
def test_classifiers_are_trained_once_for_all_attacks_and_kept(
    posts: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[str] = []
    real = trained_classifiers.make_classifiers

    def counted(name: str, settings: Any) -> Any:
        trained.append(name)
        return real(name, settings)

    monkeypatch.setattr(trained_classifiers, "make_classifiers", counted)
    folder, asked = tmp_path / "study", study(posts, tiny_bert, splits=("user",))
    first = run_study(NAME, asked, folder)
    assert trained == ["linear"]
    for path in (folder / "cells").iterdir():
        path.unlink()
    assert told(run_study(NAME, asked, folder)) == told(first) and trained == ["linear"]
    for path in (folder / "classifiers").rglob("*.safetensors"):
        path.write_bytes(b"")
    for path in (folder / "cells").iterdir():
        path.unlink()
    again = run_study(NAME, asked, folder)
    assert trained == ["linear"] * 2, "what is damaged is trained again"
    assert told(again) == told(first)


def told(rows: list[Row]) -> list[Any]:
    """Return what rows say, but for how long it took."""
    return [(row.scores, row.facts) for row in rows]


def test_one_setting_varies_at_a_time_and_lstms_alone_have_a_vocabulary(
    posts: Path, tiny_bert: Path
) -> None:
    asked = study(
        posts,
        tiny_bert,
        classifiers=("linear", "lstm"),
        splits=("user",),
        most=(8, 4),
        vocabulary_sizes=(500, 100),
        max_lengths=(16, 4),
        tokenisations=("word", "word-piece"),
    )
    cells = asked.cells()
    varied = {(c["classifier"], c["varied"]) for c in cells}
    assert varied == {
        *(("linear", what) for what in ("", "most", "max_length")),
        *(("lstm", what) for what in ("", "most", "max_length", "vocabulary_size", "tokenisation")),
    }
    assert {c["classifier_attack"] for c in cells if c["varied"]} == {"threshold", "user_votes"}
    usual = next(c for c in cells if c["classifier"] == "lstm" and not c["varied"])
    for cell in cells:
        if cell["classifier"] == "lstm" and cell["varied"]:
            both = (cell["selection"] | cell["classifier_settings"]).items()
            base = usual["selection"] | usual["classifier_settings"]
            assert [name for name, value in both if base[name] != value] == [cell["varied"]]


def trained(posts: Path, tiny_bert: Path, tmp_path: Path, **more: Any) -> TrainedModels:
    (cell, *_) = cells_of(NAME, study(posts, tiny_bert, splits=("user",), **more))
    return load_or_train_models(cell, tmp_path / "one")


def test_decisions_do_not_depend_on_who_the_targets_members_are(
    posts: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    """Thresholds come from the attacker's own models: with other members they are the same."""
    found = trained(posts, tiny_bert, tmp_path)
    target = found.target()
    turned = replace(target, members=~target.members)
    asked: list[tuple[Plan, Any]] = [
        (Plan("threshold", {"feature": "loss"}), [found.shadow()]),
        (Plan("user_statistic", {"feature": "loss", "statistic": "mean"}), [found.shadow()]),
        (Plan("user_learned", {"feature": "loss"}), [found.shadow()]),
        (Plan("user_votes", {"feature": "loss"}), [found.shadow()]),
        (Plan("lira_online", {}), found.aligned()),
        (Plan("bavaria", {}), found.aligned()),
    ]
    for plan, shadows in asked:
        (one,) = evaluate(target, shadows, chosen=[plan])
        (other,) = evaluate(turned, shadows, chosen=[plan])
        assert one.decided is not None and other.decided is not None
        assert np.array_equal(one.decided, other.decided), plan.name
        assert np.array_equal(one.ranking.scores, other.ranking.scores), plan.name
        assert one.auc.value == pytest.approx(1 - other.auc.value)


def test_target_and_shadow_share_no_user_and_halves_are_drawn_without_the_target(
    posts: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    found = trained(posts, tiny_bert, tmp_path)
    target, shadow = found.target(), found.shadow()
    assert not set(target.users or ()) & set(shadow.users or ())
    assert found.aligned().matches(target)
    for members in found.aligned().members:
        both = (members == target.members).mean()
        assert 0.1 < both < 0.9, "a shadow that is trained as the target is would tell its members"


def test_a_split_that_leaks_measures_nothing(
    posts: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = trained_classifiers.draw_parts

    def leaky(units: Any, seed: int) -> Any:
        parts = real(units, seed)
        return replace(parts, shadow_members=np.r_[parts.shadow_members, parts.members[:2]])

    monkeypatch.setattr(trained_classifiers, "draw_parts", leaky)
    asked = study(posts, tiny_bert, splits=("user",), classifier_attacks=("threshold",))
    (row,) = run_study(NAME, asked, tmp_path / "leaky")
    assert "must not overlap" in row.error


@pytest.mark.slow
def test_answers_that_tell_nothing_rank_nobody() -> None:
    rng = np.random.default_rng(0)
    users = tuple(f"u{i % 200}" for i in range(4000))

    def blind(seed: int) -> Outputs:
        drawn = np.random.default_rng(seed).dirichlet(np.ones(4), 4000)
        return Outputs(drawn, rng.integers(0, 4, 4000), np.arange(4000) % 200 < 100, users)

    for outcome in evaluate(blind(1), [blind(2)]):
        assert abs(outcome.auc.value - 0.5) < (0.03 if outcome.plan.level == "sample" else 0.12)


def test_classes_that_are_dealt_by_lot_give_an_overfitted_head_away(
    posts: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    """Split by user, thresholds of the shadow, a head that is solved to the end."""
    found = trained(posts, tiny_bert, tmp_path)
    rng = np.random.default_rng(1)
    features = rng.normal(size=(len(found.texts), 300)).astype(np.float32)
    labels = found.texts.class_ids
    masks = np.zeros((2, len(labels)), dtype=bool)
    masks[0, found.parts.members] = masks[1, found.parts.shadow_members] = True
    heads = fit_heads(features, labels, 3, masks, ~masks, Solving(c=1e3, patience=0))
    own = replace(found, answers=heads.probabilities(features), halves=masks[:0])
    outcomes = evaluate(own.target(), [own.shadow()])
    by_name = {outcome.plan.name: outcome for outcome in outcomes}
    assert by_name["threshold loss"].auc.value > 0.9
    accuracy = by_name["user_votes loss"].accuracy
    assert accuracy is not None and accuracy.value > 0.9


def test_texts_are_named_by_file_and_class() -> None:
    assert str(ClassedTexts.of("a=b.csv#t:c")) == "a=b.csv#t:c"
    assert ClassedTexts.of("x/posts.csv:c").name == "posts"
    for wrong in ("posts.csv", "=a.csv:c", "a=b.csv:", "a=:c"):
        with pytest.raises(InvalidInputError, match="NAME=FILE:CLASS"):
            ClassedTexts.of(wrong)
    with pytest.raises(InvalidInputError, match="called 'a'"):
        parse_classed_texts(["a=b.csv:c", "a=d.csv:c"])


def test_draws_of_one_corpus_are_one_sample() -> None:
    """What its users have in common does not average out, however often members are dealt."""
    at = Interval(0.7, 0.8)
    rows = [Row(facts={"seed": seed}, scores={"auc": Score(0.75, at, 300, 0.5)}) for seed in (0, 1)]
    assert membership_classifier_tables._format_mean(ResultTable(rows)) == "0.750 [0.700, 0.800]"
    measured = Measured(
        study=NAME,
        model="",
        data="",
        attack="",
        model_title="",
        data_title="",
        attack_title="",
        unit="users",
        entry=CLASSIFIER_ATTACKS["threshold"],
        rows=tuple(rows),
    )
    assert (measured.auc.ci95.low, measured.auc.ci95.high) == pytest.approx((0.7, 0.8))
    assert measured.auc.n == 300


def test_users_of_equal_entropy_are_of_one_bucket() -> None:
    """Those of one class alone have none: the alphabet must not deal them into several."""
    names = tuple(f"u{i:02}" for i in range(40))
    users = tuple(name for name in names for _ in range(2))
    labels = np.zeros(80, dtype=np.int64)
    labels[[2 * i + 1 for i in range(30, 40)]] = 1  # ten of forty write of two classes
    members = np.repeat(np.arange(40) % 2 == 0, 2)
    probabilities = np.random.default_rng(0).dirichlet(np.ones(2), 80)
    target = Outputs(probabilities, labels, members, users)
    (outcome,) = evaluate(target, [target], chosen=[Plan("user_votes", {"feature": "loss"})])
    rows = entropy_rows(outcome, target, {})
    assert [(row["bucket"], row["n"]) for row in rows] == [(0, 30), (7, 10)]
    assert rows[0]["class_entropy"] == 0 and rows[1]["class_entropy"] == pytest.approx(np.log(2))
    assert outcome.decided is not None
    right = outcome.decided == outcome.ranking.members
    assert [row.scores["bucket_accuracy"].value for row in rows] == [
        pytest.approx(right[:30].mean()),
        pytest.approx(right[30:].mean()),
    ]
