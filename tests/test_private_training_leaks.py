"""Heads and attacks that know by heart what they learnt of are worth a guess in private training.

A head must not be tested on what it was trained on, and what shadow models were trained on must say
nothing of the target's half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memorising_models import (
    MemorisingClassifier,
    MemorisingWordEncoder,
    classifier_entry_of,
    is_at_chance,
)

from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.classifiers.targets import heads, private
from leakscope.core.results import Score
from leakscope.core.studies import named_texts
from leakscope.core.studies.training import private_training
from leakscope.core.studies.training.private_training import PrivateTrainingStudy
from leakscope.core.tasks.labelled import LabelledTask


class HeadByHeart:
    """A head that answers the class of a text that it was trained on, else the largest class."""

    privacy = None

    def __init__(self, vectors: Any, ids: Any, n_classes: int, *_: object) -> None:
        self.parrot, self.n_classes = MemorisingClassifier().fit(vectors, ids), n_classes

    def probabilities(self, vectors: Any) -> Any:
        return np.eye(self.n_classes, dtype=np.float32)[self.parrot.predict(vectors)]


@pytest.fixture(params=["split", "folds"])
def task(request: Any, tmp_path: Path, small_texts: list[str]) -> Path:
    """Texts whose class is dealt by lot; sixty say again what another says, some across sides."""
    rng = np.random.default_rng(0)
    path = tmp_path / "task.csv"
    lines = [f"{text} {i},{'ab'[rng.integers(2)]}" for i, text in enumerate(small_texts[:300])]
    lines += lines[:60]
    parts = ["test" if i % 4 == 0 or i >= 300 else "train" for i in range(360)]
    if request.param == "folds":
        path.write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    else:
        rows = [f"{line},{part}" for line, part in zip(lines, parts, strict=True)]
        path.write_text("\n".join(["text,label,split", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def measured(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], dict[str, Score]]:
    """Measure the study's own cell with heads and an attack that know by heart."""
    for module in (private_training, heads):
        monkeypatch.setattr(module, "load_encoder", lambda name: MemorisingWordEncoder())
    for module in (private_training, private):
        monkeypatch.setattr(module, "fit_head", HeadByHeart)
    for cached in (
        private_training._open_task,
        private_training._ridge_hits,
        named_texts._open_task,
    ):
        cached.cache_clear()
    entry = classifier_entry_of("sample", "the same samples")
    monkeypatch.setitem(CLASSIFIER_ATTACKS, "records", entry)  # type: ignore[arg-type]
    monkeypatch.setattr(private_training, "ATTACKS", ("records",))
    study = PrivateTrainingStudy(
        tasks=(f"lot={task}",),
        epsilons=(0.0,),
        hidden=(0,),
        n_attacked=200,
        n_shadows=4,
        seeds=(0,),
    )

    def scores() -> dict[str, Score]:
        (cell,) = study.cells()
        (row,) = private_training.measure(cell, tmp_path)
        return dict(row.scores)

    return scores


def test_heads_and_attacks_that_know_by_heart_guess(
    measured: Callable[[], dict[str, Score]],
) -> None:
    scores = measured()
    assert scores["accuracy"].value == pytest.approx(scores["accuracy"].chance, abs=10)
    assert scores["auc"].value == pytest.approx(0.5, abs=0.1)
    assert is_at_chance(scores["accuracy"]) and is_at_chance(scores["auc"])


def test_texts_that_are_trained_on_and_tested_would_be_known(
    measured: Callable[[], dict[str, Score]], monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = LabelledTask.parts

    def leaking(task: LabelledTask, **more: Any) -> Any:
        known, held = apart(task, **more)
        return np.concatenate([known, held[::2]]), held

    monkeypatch.setattr(LabelledTask, "parts", leaking)
    accuracy = measured()["accuracy"]
    assert not is_at_chance(accuracy) and accuracy.value > accuracy.chance + 15


def test_a_shadow_that_is_trained_as_the_target_is_would_tell_its_members(
    measured: Callable[[], dict[str, Score]], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = private_training.draw_training_batch

    def leaking(*given: Any) -> Any:
        lesson = drawn(*given)
        trained = lesson.trained.copy()
        trained[1] = trained[0]
        return replace(lesson, trained=trained)

    monkeypatch.setattr(private_training, "draw_training_batch", leaking)
    assert measured()["auc"].value == 1.0
