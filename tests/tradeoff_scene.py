"""A small trade-off study with all parts: books by two authors, and a task decided by one word."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL_WORDS

from leakscope.core.encoders import load_encoder
from leakscope.core.protocols import Encoder
from leakscope.core.results.rows import Cell
from leakscope.core.specs import EncoderSpec
from leakscope.core.studies.registry import cells_of
from leakscope.core.studies.tradeoff import texts as tradeoff_texts
from leakscope.core.studies.tradeoff.study import TradeoffStudy


def write_files(folder: Path, *, n_task: int = 200) -> tuple[Path, Path]:
    """Write books by two authors with different words, and a task with two classes."""
    rng = np.random.default_rng(0)
    books, task = folder / "books.csv", folder / "task.csv"
    with books.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["author", "book", "text"])
        for book in range(4):
            words = SMALL_WORDS[:12] if book % 2 else SMALL_WORDS[12:]
            for i in range(200):
                drawn = rng.choice(words, 5, replace=False)
                writer.writerow([f"a{book % 2}", f"b{book}", f"{' '.join(drawn)} n{book}x{i}."])
    with task.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for i in range(n_task):
            drawn = rng.choice(SMALL_WORDS[2:], 3, replace=False)
            writer.writerow([f"{SMALL_WORDS[i % 2]} {' '.join(drawn)} {i}", i % 2])
    return books, task


def small_study(files: tuple[Path, Path], encoder: Path) -> TradeoffStudy:
    """Return a trade-off study of the files that measures every part."""
    return TradeoffStudy(
        tasks=(f"first={files[1]}",),
        encoder=f"mlm:{encoder}",
        defences=("none",),
        seeds=(0,),
        attackers=("tuned",),
        n_auxiliary=120,
        n_targets=40,
        near=1.0,
        attack_settings=(("vocabulary_size", 40), ("hidden", 16), ("epochs", 2)),
        attributes=f"who={files[0]}#text",
        group_column="book",
        n_labels=2,
        n_defence=120,
        n_attribute_known=150,
        n_attribute_targets=40,
        membership="first",
        n_attacked=100,
        n_shadows=2,
        hidden=16,
    )


def last_cells(study: TradeoffStudy) -> dict[str, Cell]:
    """Return the last cell of each part of a study."""
    return {cell["part"]: cell for cell in cells_of("tradeoff", study)}


def encoder_of(study: TradeoffStudy) -> Encoder:
    """Load the study's encoder."""
    return load_encoder(EncoderSpec(name=study.encoder))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The books and the task, as files."""
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def study(
    files: tuple[Path, Path],
    small_texts: list[str],
    tiny_bert: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[TradeoffStudy]:
    """The small study, with the small texts as its bundled corpus."""
    texts = list(dict.fromkeys(small_texts))
    monkeypatch.setattr(tradeoff_texts, "bundled_sentences", lambda: texts)
    tradeoff_texts.auxiliary_texts.cache_clear()
    yield small_study(files, tiny_bert)
    tradeoff_texts.auxiliary_texts.cache_clear()
