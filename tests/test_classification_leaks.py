"""A classifier that knows its texts by heart sorts news no better than by the largest class."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from memorising_models import MemorisingWordEncoder, NearMemorisingClassifier

from leakscope.core.results import Score
from leakscope.core.studies.inversion import classification
from leakscope.core.studies.inversion.classification import ClassificationStudy

N_TEXTS = 150


@pytest.fixture
def news(tmp_path: Path, small_texts: list[str]) -> Path:
    """Articles whose class is dealt by lot; each is there again, with a word more."""
    path = tmp_path / "news.csv"
    rng = np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "text", "label_name"])
        for i in range(N_TEXTS):
            label = "abb"[rng.integers(3)]
            text = " ".join(small_texts[2 * i : 2 * i + 2])
            writer.writerow([f"Title {i} of it", text, label])
            writer.writerow([f"Title {i} of it", f"{text} Again.", label])
    return path


@pytest.fixture
def measured(news: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Score]:
    monkeypatch.setattr("sklearn.model_selection.GridSearchCV", NearMemorisingClassifier)
    monkeypatch.setattr(classification, "_encoder", lambda *_: MemorisingWordEncoder())
    study = ClassificationStudy(
        target=str(news),
        other=str(news),
        encoders=("minilm",),
        domains=("cross",),
        views=("text",),
    )

    def score() -> Score:
        (cell,) = study.cells()
        (row,) = classification.measure(cell, tmp_path)
        return row.scores["macro_f1"]

    return score


def test_a_classifier_that_knows_its_texts_by_heart_is_at_the_baseline(
    measured: Callable[[], Score],
) -> None:
    score = measured()
    assert score.n > 20 and score.value == pytest.approx(score.chance)


def test_articles_that_are_nearly_known_would_be_sorted(
    measured: Callable[[], Score], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classification, "near_duplicates", lambda texts, known: frozenset())
    score = measured()
    assert score.value > score.chance + 20
