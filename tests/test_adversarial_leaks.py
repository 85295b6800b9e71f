"""Who knows texts by heart gains nothing in the study of adversarial training, nor does a defence.

Fresh attackers on words and on the attribute, and a defence that hides what it was trained on and
nothing else. Some texts are said again with a word more: where those are not kept apart, all three
are found out.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SMALL_WORDS
from memorising_models import (
    NEARLY,
    GuessingMemorisingAttack,
    MemorisingWordEncoder,
    NearMemorisingClassifier,
    is_at_chance,
    match_rows,
)

from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.studies.tradeoff.trained_defences import ProtectedEncoder
from leakscope.core.studies.training import (
    adversarial,
    adversarial_attack,
    adversarial_texts,
    adversarial_words,
)
from leakscope.core.studies.training.adversarial import AdversarialStudy
from leakscope.core.studies.training.adversarial_texts import Sides

N_TEXTS, N_AGAIN = 500, 400


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of two authors who share no word; most are said again, with a word more."""
    path = tmp_path_factory.mktemp("table") / "table.csv"
    rng = np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["author", "text"])
        for author, own in (("a", SMALL_WORDS[:22]), ("b", SMALL_WORDS[22:])):
            texts = [
                f"{' '.join(rng.choice(own, 7, replace=False))} {author}{i}" for i in range(N_TEXTS)
            ]
            again = [f"{text} again" for text in texts[:N_AGAIN]]
            writer.writerows([author, text] for text in rng.permutation([*texts, *again]))
    return path


class HidesByHeart:
    """A defence that says nothing of what it was nearly trained on, and all of anything else."""

    def __init__(self, encoder: Encoder, texts: tuple[str, ...]) -> None:
        self.name, self.dimension = "hides by heart", encoder.dimension
        self.fingerprint, self.encoder = "1" * 64, encoder
        self.known = encoder.encode(texts)

    def encode(self, texts: Any, on_progress: OnProgress = no_progress) -> Vectors:
        found = self.encoder.encode(texts)
        found[match_rows(found, self.known, NEARLY) >= 0] = 0
        return found


def memorising_attack(known: Vectors, labels: Any, held: Vectors, seed: int) -> Any:
    """Attack an attribute: the label of a text that is nearly met again, else the likeliest."""
    said = NearMemorisingClassifier().fit(known, labels).predict(held)
    return np.eye(int(labels.max()) + 1, dtype=np.float32)[said]


Measured = Callable[..., Score]


@pytest.fixture
def measured(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Return what an attacker on words, or on the attribute, reads in the study's own cell."""
    monkeypatch.setattr(adversarial, "load_encoder", lambda name: MemorisingWordEncoder())
    attackers = {**adversarial_attack.ATTRIBUTE_ATTACKERS, "memory": ("a test", memorising_attack)}
    monkeypatch.setattr(adversarial_attack, "ATTRIBUTE_ATTACKERS", attackers)
    monkeypatch.setattr(adversarial_words, "make_attack", lambda spec: GuessingMemorisingAttack())

    def read(hides: str, attacker: str) -> Score:
        study = AdversarialStudy(
            target=f"{table}#text",
            hides=(hides,),
            encoders=("minilm",),
            n_labels=2,
            seeds=(0,),
            word_attackers=("probe_mlc",),
            attribute_attackers=(attacker,),
            n_defence=600,
            n_known=700,
            n_targets=200,
        )
        plain = next(cell for cell in study.cells() if cell["defence_kind"] == "none")
        rows = adversarial.measure(plain, tmp_path)
        (row,) = (row for row in rows if row["when"] == "after")
        return row.scores["read"]

    return read


@pytest.fixture
def leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack also what nearly repeats a text that somebody was trained on."""
    never = frozenset[int]()
    monkeypatch.setattr(adversarial_texts, "near_duplicates", lambda texts, known, near: never)


def hide_by_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the study's defence be one that knows its own texts by heart."""

    def trained(cell: Any, sides: Sides, folder: Path) -> tuple[ProtectedEncoder, ProtectedEncoder]:
        plain, hides = MemorisingWordEncoder(), HidesByHeart(MemorisingWordEncoder(), sides.defence)
        return ProtectedEncoder(plain, plain), ProtectedEncoder(hides, hides)

    monkeypatch.setattr(adversarial, "_train_encoders", trained)


@pytest.mark.parametrize("hides", ["words", "attribute"])
def test_who_knows_texts_by_heart_guesses(measured: Measured, hides: str) -> None:
    read = measured(hides, "memory")
    assert read.n > 40 and is_at_chance(read)
    assert read.value == pytest.approx(read.chance, abs=12)


@pytest.mark.parametrize("hides", ["words", "attribute"])
def test_texts_that_are_nearly_known_would_be_read(
    measured: Measured, leaks: None, hides: str
) -> None:
    read = measured(hides, "memory")
    assert not is_at_chance(read) and read.ci95.low > read.chance


def test_a_defence_that_knows_texts_by_heart_hides_nothing(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = measured("attribute", "knn")
    hide_by_heart(monkeypatch)
    assert measured("attribute", "knn").value == plain.value > 90


def test_a_defence_that_nearly_knows_what_is_attacked_would_look_strong(
    measured: Measured, leaks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = measured("attribute", "knn")
    hide_by_heart(monkeypatch)
    assert measured("attribute", "knn").ci95.high < plain.ci95.low
