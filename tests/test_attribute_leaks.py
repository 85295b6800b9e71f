"""Who knows labelled texts by heart infers no attribute, however the study of attributes splits."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL_WORDS
from memorising_models import MemorisingAttributeAttack, memory_entry

from leakscope.core.attacks.attributes import draw
from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS, AttributeEntry
from leakscope.core.results import Score
from leakscope.core.studies.attributes import study as attributes
from leakscope.core.studies.attributes.study import AttributeStudy

N_AUTHORS, N_BOOKS, N_TEXTS = 4, 4, 20


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Texts of four authors; each stands again, with a word more, in the next book."""
    path = tmp_path / "books.csv"
    rng = np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["author", "book", "text"])
        for author in range(N_AUTHORS):
            texts = [
                f"{' '.join(rng.choice(SMALL_WORDS, 7))} n{author}x{i}"
                for i in range(N_BOOKS * N_TEXTS)
            ]
            for i, text in enumerate(texts):
                book = i // N_TEXTS
                writer.writerow([author, f"{author}/{book}", text])
                writer.writerow([author, f"{author}/{(book + 1) % N_BOOKS}", f"{text} again"])
    return path


Measured = Callable[[str], list[Score]]


@pytest.fixture
def measured(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Return the top-1 accuracy of an attack that knows its texts by heart, of each source."""
    entry = memory_entry(AttributeEntry, MemorisingAttributeAttack, reads="texts")
    monkeypatch.setitem(ATTRIBUTE_ATTACKS, "memory", entry)
    for cached in (attributes._read_examples, attributes._content_of, attributes._draw_cached):
        cached.cache_clear()

    def scores(split: str) -> list[Score]:
        study = AttributeStudy(
            target=str(table),
            group_column="book",
            attribute_attacks=("memory",),
            splits=(split,),
            labels=(N_AUTHORS,),
            sizes=(30,),
            n_targets=60,
            run_length=10,
            seeds=(0,),
        )
        (cell,) = study.cells()
        return [row.scores["top1"] for row in attributes.measure(cell, tmp_path)]

    return scores


@pytest.mark.parametrize("split", draw.SPLITS)
def test_who_knows_labelled_texts_by_heart_guesses(measured: Measured, split: str) -> None:
    for score in measured(split):
        assert score.n > 40 and score.value <= score.chance < 0.4


@pytest.mark.parametrize("split", draw.SPLITS)
def test_texts_that_are_nearly_labelled_would_be_found(
    measured: Measured, split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draw, "near_duplicates", lambda texts, known, near: frozenset())
    assert max(score.value - score.chance for score in measured(split)) > 0.1
