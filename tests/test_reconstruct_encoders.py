"""The reconstruction on encoders of other kinds, fitted and trained by the command line alone."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

HELD = "The doctor near the river with the violin."
FITTED = {
    "lsa_tfidf": ["n_components=60"],
    "dual_lstm": ["dimension=64", "n_negatives=20", "n_candidates=5"],
}


@pytest.fixture
def known(tmp_path: Path, small_texts: list[str]) -> Path:
    """Documents of four sentences, the one under attack not among them."""
    assert HELD not in small_texts
    path = tmp_path / "known.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["text"])
        rows.writerows([" ".join(small_texts[i : i + 4])] for i in range(0, 400, 4))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FITTED))
def test_another_encoder_needs_no_more_than_the_attack_of_words(
    core: Any, known: Path, tmp_path: Path, name: str
) -> None:
    own, weights = tmp_path / name, tmp_path / "weights"
    options = [part for told in FITTED[name] for part in ("--set", told)]
    core(f"fit --encoder {name} --corpus {known} --out {own} --json", *options).json()
    attack = f"--encoder {name}:{own} --attack reconstruct"
    small = "--set vocabulary_size=80 --set lexicon_size=80 --set base_epochs=20"
    core(f"train {attack} --corpus {known} --out {weights} {small} --json").json()
    read = (f"invert {attack} --weights {weights} --json --text", HELD)
    (unasked,) = core(*read, "--set", "n_queries=0").json()
    (asked,) = core(*read, "--set", "n_queries=600").json()
    assert unasked["n_queries"] == 0 and 0 < asked["n_queries"] <= 600
    assert asked["confidence"] is None and asked["sentence_words"] == [], "not calibrated"
    assert asked["cosine"] > 0.95, asked["sentence"]
    found = {word["word"] for word in asked["words"]}
    assert found == {"doctor", "river", "violin"}, asked["sentence"]


def test_vectors_of_another_encoder_are_refused_by_name(
    core: Any, known: Path, tmp_path: Path
) -> None:
    one, two, weights = (tmp_path / name for name in ("one", "two", "weights"))
    for own, n in ((one, 40), (two, 20)):
        fit = f"fit --encoder lsa_tfidf --corpus {known} --out {own} --set n_components={n}"
        core(f"{fit} --json").json()
    train = f"train --encoder lsa_tfidf:{one} --attack probe --corpus {known} --out {weights}"
    core(f"{train} --json").json()
    invert = f"invert --encoder lsa_tfidf:{two} --attack probe --weights {weights} --text"
    assert "belong together" in core(invert, HELD).refusal()
