"""The study of private training: what it measures, keeps, and must not know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.errors import StoppedError
from leakscope.core.results.rows import Row
from leakscope.core.studies import named_texts
from leakscope.core.studies.registry import cells_of, run_study
from leakscope.core.studies.training import private_training
from leakscope.core.studies.training.private_training import PrivateTrainingStudy
from leakscope.core.studies.training.private_training_tables import markdown

pytest.importorskip("opacus")
pytest.importorskip("dp_accounting")

NAME = "private-training"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    head = replace(private_training._HEAD, batch_size=100, steps=60, learning_rate=0.02)
    model = replace(private_training._MODEL, hidden=16, batch_size=32, learning_rate=1e-2)
    monkeypatch.setattr(private_training, "_HEAD", head)
    monkeypatch.setattr(private_training, "_MODEL", model)
    monkeypatch.setattr(private_training, "FORMATS", ("my pin is {digits:2}", "code {digits:2}"))
    for cached in (
        private_training._open_task,
        private_training._ridge_hits,
        named_texts._open_task,
    ):
        cached.cache_clear()


@pytest.fixture
def task(tmp_path: Path, small_texts: list[str]) -> Path:
    """400 texts whose class is dealt by lot, so that it can be learnt by heart alone."""
    rng = np.random.default_rng(0)
    path = tmp_path / "task.csv"
    lines = [
        f"{text} {i},{'ab'[rng.integers(2)]},{'test' if i % 5 == 0 else 'train'}"
        for i, text in enumerate(small_texts[:400])
    ]
    path.write_text("\n".join(["text,label,split", *lines]) + "\n", encoding="utf-8")
    return path


def study(task: Path, tiny_bert: Path, **more: Any) -> PrivateTrainingStudy:
    given: dict[str, Any] = {
        "tasks": (f"lot={task}",),
        "encoder": f"mlm:{tiny_bert}",
        "epsilons": (0.0, 0.5),
        "hidden": (128,),
        "n_attacked": 200,
        "n_shadows": 4,
        "seeds": (0,),
        **more,
    }
    return PrivateTrainingStudy(**given)


@pytest.mark.slow
def test_privacy_hides_members_and_both_accountants_say_what_it_cost(
    task: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = replace(private_training._HEAD, steps=400, learning_rate=0.05)
    monkeypatch.setattr(private_training, "_HEAD", long)
    rows = run_study(NAME, study(task, tiny_bert), tmp_path / "study")
    assert [row.error for row in rows if row.error] == []
    without, private = rows
    assert without["epsilon"] == 0 and without["epsilon_opacus"] is None
    assert without.scores["accuracy_change"].value == 0
    assert without.scores["auc"].value > 0.75, "what is learnt by heart gives members away"
    assert private.scores["auc"].value < 0.62
    for row in rows:
        assert abs(row.scores["control_auc"].value - 0.5) < 0.05, "membership dealt by lot"
        assert row["n_members"] == 100 and row["n_train"] == 320 and row["n"] == 80
        assert row["strongest"] in row["aucs"] and len(row["aucs"]) == 6
        assert row["aucs"][row["strongest"]] == max(row["aucs"].values())
    for before in ("", "attacked_"):
        told = private[f"{before}epsilon_opacus"]
        assert 0.49 < told <= 0.5
        assert private[f"{before}epsilon_dp_accounting"] == pytest.approx(told, rel=0.01)
        assert private[f"{before}epsilon_tight"] < told
    told = markdown([Row.from_dict(row.to_dict()) for row in rows])
    assert "| lot | 128 units | ∞ | 320 |" in told and "| 0.5 |" in told
    assert not any((tmp_path / "study").rglob("training/*")), "finished cells need no checkpoint"


@pytest.mark.slow
def test_no_head_learns_from_a_test_text_and_shadows_say_nothing_of_the_targets_half(
    task: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    lessons: list[Any] = []
    fit, attacked = private_training.fit_head, private_training.PrivateHeads.fit

    def watched(vectors: Any, *given: Any, **more: Any) -> Any:
        seen.append(vectors)
        return fit(vectors, *given, **more)

    def learned(self: Any, lesson: Any, **more: Any) -> Any:
        lessons.append(lesson)
        return attacked(self, lesson, **more)

    monkeypatch.setattr(private_training, "fit_head", watched)
    monkeypatch.setattr(private_training.PrivateHeads, "fit", learned)
    asked = study(task, tiny_bert, epsilons=(0.5,))
    (cell,) = cells_of(NAME, asked)
    private_training.measure(cell, tmp_path)
    opened, vectors, _ = private_training._open_task(cell["task"], cell["content"], cell["encoder"])
    known, held = opened.parts(seed=0)
    assert len(seen) == 2 and all(len(each) == len(known) for each in seen)
    tested = {vectors[i].tobytes() for i in held}
    assert not tested & {row.tobytes() for each in seen for row in each}
    (lesson,) = lessons
    assert not set(lesson.texts) & {opened.texts[i] for i in held}
    target, halves = lesson.trained[0], lesson.trained[1:]
    assert target.sum() == 100 and (halves.sum(0) == 2).all()
    inside = [np.corrcoef(target, half)[0, 1] for half in halves]
    assert max(map(abs, inside)) < 0.3, "no shadow is trained on the target's half, or the rest"


@pytest.mark.slow
def test_a_language_model_shows_its_canaries_without_and_hardly_with(
    task: Path, corpus: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    asked = study(
        task,
        tiny_bert,
        tasks=(),
        target=str(corpus),
        n_texts=80,
        epochs=25,
        insertions=30,
        n_canaries=2,
    )
    without, private = run_study(NAME, asked, tmp_path / "study")
    assert without.error == private.error == ""
    assert without.scores["exposure"].value > private.scores["exposure"].value + 1
    assert without["bits_a_token"] < private["bits_a_token"]
    assert private["epsilon_dp_accounting"] == pytest.approx(private["epsilon_opacus"], rel=0.01)
    told = markdown([without, private])
    assert "each planted 30 times" in told and "less than that many times ε" in told
    spent = private["epsilon_canary"]
    assert spent > 30 * private["epsilon_tight"], "copies have more than their number times ε"
    assert without["epsilon_canary"] is None and f"| {spent:.1f} |" in told
    assert "as weak" not in told


@pytest.mark.slow
def test_what_was_stopped_goes_on_and_no_model_is_trained_twice(
    task: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leakscope.core.attacks.membership.classifiers.targets import private as targets

    whole = run_study(NAME, study(task, tiny_bert, epsilons=(0.5,)), tmp_path / "whole")
    calls: list[int] = []
    fit = targets.fit_head

    def stopped(*given: Any, **more: Any) -> Any:
        calls.append(given[4])
        if len(calls) == 3:
            raise StoppedError("enough")
        return fit(*given, **more)

    monkeypatch.setattr(targets, "fit_head", stopped)
    asked = study(task, tiny_bert, epsilons=(0.5,))
    with pytest.raises(StoppedError):
        run_study(NAME, asked, tmp_path / "study")
    again = run_study(NAME, asked, tmp_path / "study")
    assert calls == [0, 1, 2, 2, 3, 4], "target and four shadows, the third of them twice"
    assert again[0].scores == whole[0].scores
