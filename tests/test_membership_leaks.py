"""Who knows the attacker's own records by heart finds no member in the studies of membership.

What an attack learnt of must not be scored: neither texts and users of shadow models, nor windows
and pairs of documents that are labelled. The models under attack know nothing here, so that
whatever is found was known before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from by_heart import classifier_entry_of, is_a_guess

from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.attacks.membership.classifiers.targets.lesson import Lesson
from core.results import Score
from core.studies import classed_texts, membership_classifiers, trained_classifiers
from core.studies.membership_classifiers import MembershipClassifierStudy

KINDS = [
    (level, needs) for level in ("sample", "user") for needs in ("shadows", "the same samples")
]


class KnowNothing:
    """Classifiers whose answers are drawn, whatever they were trained on."""

    def fit(self, lesson: Lesson, **more: Any) -> Self:
        size = (lesson.n_models, len(lesson.texts))
        drawn = np.random.default_rng(0).dirichlet(np.ones(lesson.n_classes), size)
        self.answers_ = drawn.astype(np.float32)
        return self


@pytest.fixture
def posts(tmp_path: Path, small_texts: list[str]) -> Path:
    """Three texts each of a hundred and thirty users."""
    rng = np.random.default_rng(0)
    path = tmp_path / "posts.csv"
    rows = [f"u{i % 130},{'ab'[rng.integers(2)]},{text} {i}"
            for i, text in enumerate(small_texts[:390])]  # fmt: skip
    path.write_text("\n".join(["user_id,topic,text", *rows]) + "\n", encoding="utf-8")
    return path


Measured = Callable[[str, str, str], dict[str, Score]]


@pytest.fixture
def classifiers(posts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Measure a cell of a split with an attack that knows by heart what shadows learnt of."""
    monkeypatch.setattr(trained_classifiers, "make_classifiers", lambda *_: KnowNothing())
    for cached in (classed_texts.open_classed, membership_classifiers.content_of):
        cached.cache_clear()

    def measured(split: str, level: str, needs: str) -> dict[str, Score]:
        entry = classifier_entry_of(level, needs)
        monkeypatch.setitem(CLASSIFIER_ATTACKS, "records", entry)  # type: ignore[arg-type]
        study = MembershipClassifierStudy(
            corpora=(f"posts={posts}:topic",), classifier_attacks=("records",), splits=(split,),
            n_shadows=4, seeds=(0,), least=2,
        )  # fmt: skip
        (cell,) = study.cells()
        (row,) = membership_classifiers.measure(cell, tmp_path / "study")
        return dict(row.scores)

    return measured


@pytest.mark.parametrize(("level", "needs"), KINDS)
def test_who_knows_by_heart_whom_shadows_learnt_of_finds_no_member(
    classifiers: Measured, level: str, needs: str
) -> None:
    for split in ("user", "sample")[: 1 if level == "user" else 2]:
        scores = classifiers(split, level, needs)
        assert is_a_guess(scores["auc"]) and is_a_guess(scores["null_auc"])
        assert scores["auc"].value < 0.65


@pytest.mark.parametrize(("level", "needs"), KINDS)
def test_shadows_that_learn_of_the_targets_members_would_tell_them(
    classifiers: Measured, level: str, needs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users of the target's halves are those of the attacker's; one shadow's half is the target's."""
    draw, halves = trained_classifiers.draw_parts, trained_classifiers.random_halves
    drawn: list[Any] = []

    def leaking(units: Any, seed: int) -> Any:
        parts = draw(units, seed)
        drawn.append(parts)
        return replace(parts, shadow_members=parts.members, shadow_outsiders=parts.outsiders)

    def repeating(units: Any, n_models: int, seed: int) -> Any:
        found = halves(units, n_models, seed)
        found[0] = np.isin(drawn[-1].attacked, drawn[-1].members)
        return found

    monkeypatch.setattr(trained_classifiers, "draw_parts", leaking)
    monkeypatch.setattr(trained_classifiers, "random_halves", repeating)
    monkeypatch.setattr(trained_classifiers, "check_apart", lambda *_: None)  # it refuses them
    assert classifiers("user", level, needs)["auc"].value == 1.0
