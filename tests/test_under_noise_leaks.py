"""A network that knows nothing but its training texts by heart is worth the largest class.

In the studies of networks under noise, with texts alone and in pairs, with an official split and
without, and where texts stand there twice. If it is worth more, what it is tested on was trained
on. Each study is also run with a split that leaks on purpose, which the network must find.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from memorising_models import MemorisingNetwork
from numpy.typing import NDArray

from leakscope.core.results.rows import Row
from leakscope.core.studies.registry import run_study
from leakscope.core.studies.training import tuned_networks
from leakscope.core.studies.training.adaptive import AdaptiveStudy
from leakscope.core.studies.training.constrained import ConstrainedStudy
from leakscope.core.tasks.examples import Examples

TASKS = ("alone", "pairs", "split")
OF_OTHERS = ("accuracy", "null_accuracy", "noiseless_accuracy", "constrained_accuracy")
"""Every accuracy that a row tells, whatever network it is of."""


class Unadapted:
    """A pretraining that leaves weights as they are."""

    def __init__(self, **settings: Any) -> None:
        pass

    def fit(self, *_: Any, **more: Any) -> Self:
        return self

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        told = {"tokens_seen": 10, "new_tokens": 10, "passed": 1, "curve": []}
        return {"service.words": np.zeros((2, 2), np.float32)}, told


@pytest.fixture(autouse=True)
def by_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned_networks, "ConstrainedClassifier", MemorisingNetwork)
    monkeypatch.setattr(tuned_networks, "AdaptivePretraining", Unadapted)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory, bundled: list[str]) -> tuple[str, ...]:
    """A hundred and forty rows of two classes: forty of them say again what another row said."""
    folder = tmp_path_factory.mktemp("tasks")
    drawn, beside = bundled[::40][:100], bundled[13::40][:100]
    texts = [*drawn, *drawn[:40]]
    labels = ["b" if i % 100 % 4 == 0 else "a" for i in range(140)]
    columns: dict[str, dict[str, list[str]]] = {
        "alone": {"text": texts},
        "pairs": {"sentence1": texts, "sentence2": [*beside, *beside[:40]]},
        "split": {"text": texts, "split": ["train"] * 100 + ["test"] * 40},
    }
    for name, found in columns.items():
        if name == "split":  # a fifth of what is tested is new
            found["text"] = [*texts[:132], *bundled[7::40][:8]]
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*found, "label"])
            writer.writerows(zip(*found.values(), labels, strict=True))
    return tuple(f"{name}={folder / name}.csv" for name in TASKS)


def study_constrained(tasks: tuple[str, ...], tiny: Path, folder: Path) -> list[Row]:
    study = ConstrainedStudy(tasks=tasks, encoder=f"mlm:{tiny}", etas=(50.0,), seeds=(0, 1))
    return run_study("constrained", study, folder)


def study_adaptive(tasks: tuple[str, ...], tiny: Path, folder: Path) -> list[Row]:
    study = AdaptiveStudy(
        tasks=tasks,
        encoder=f"mlm:{tiny}",
        etas=(50.0,),
        seeds=(0, 1),
        other=tasks[0].partition("=")[2],
    )
    return run_study("adaptive", study, folder)


STUDIES = {
    "constrained": study_constrained,
    "adaptive": study_adaptive,
}


def accuracies(rows: list[Row]) -> Iterator[tuple[str, float, float]]:
    """Yield of each row its task, and value and baseline of each accuracy in it."""
    for row in rows:
        assert not row.error, row.error
        for name in OF_OTHERS:
            if name in row.scores:
                yield row.cell["task"], row.scores[name].value, row.scores[name].chance


@pytest.mark.parametrize("study", STUDIES)
def test_a_network_that_knows_its_texts_by_heart_is_worth_the_largest_class(
    study: str, tasks: tuple[str, ...], tiny_bert: Path, tmp_path: Path
) -> None:
    found = list(accuracies(STUDIES[study](tasks, tiny_bert, tmp_path)))
    assert {task for task, _, _ in found} == set(TASKS) and len(found) > 20
    for task, value, chance in found:
        assert value == pytest.approx(chance), task


@pytest.mark.parametrize("study", STUDIES)
def test_texts_that_stand_on_both_sides_would_be_found(
    study: str,
    tasks: tuple[str, ...],
    tiny_bert: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    apart = Examples.parts

    def leaking(examples: Examples, **more: Any) -> Any:
        known, held = apart(examples, **more)
        return np.concatenate([known, held[::2]]), held

    monkeypatch.setattr(Examples, "parts", leaking)
    found = list(accuracies(STUDIES[study](tasks, tiny_bert, tmp_path)))
    assert found and all(value > chance for _, value, chance in found)
