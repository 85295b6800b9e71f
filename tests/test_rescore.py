"""Shipped weights are scored anew on held-out texts that nearly repeat no other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from leakscope.core.attacks.inversion.shipped import WEIGHTS, load_attack, text_mark
from leakscope.core.attacks.inversion.train import HeldOut
from leakscope.core.corpora import bundled_sentences
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.storage.artifacts import read_json
from scripts.rescore import held_out_of, rescore

OWN = "The ferry to the northern island leaves at seven in the morning from the old harbour."
NEAR = "The ferry to the northern island leaves at eight in the morning from the old harbour."
OTHER = "A committee of engineers has examined the bridge and found no fault with its cables."


def test_only_what_was_held_out_and_repeats_nothing_is_scored() -> None:
    marks = frozenset({text_mark(OWN), text_mark(OTHER)})
    held_out = held_out_of([OWN, NEAR, OTHER, OTHER, "Something else altogether."], marks)
    assert held_out == HeldOut((OTHER,), n_near_duplicates=1)
    apart = held_out_of([OWN, OTHER], marks)
    assert apart == HeldOut((OWN, OTHER)), "two that were held out may be alike"
    with pytest.raises(InvalidInputError, match=r"Of 2 texts, 1 were held out .* none is left"):
        held_out_of([OWN, NEAR], frozenset({text_mark(OWN)}))
    with pytest.raises(InvalidInputError, match="0 were held out"):
        held_out_of([NEAR], marks)


def test_scores_are_written_and_nothing_else_changes(
    minilm: TransformerEncoder, tmp_path: Path
) -> None:
    folder = tmp_path / "mlc"
    shutil.copytree(WEIGHTS / "minilm" / "mlc", folder)
    before = read_json(folder / "model.json")
    rescore(folder, minilm, HeldOut(bundled_sentences()[:40], n_near_duplicates=3))
    after = read_json(folder / "model.json")
    found = after["training"].pop("held_out")
    before["training"].pop("held_out")
    assert after == before
    assert found["n"] <= 40 and found["n_near_duplicates"] == 3
    low, high = found["token_set_f1_ci95"]
    assert found["prior_f1"] < low < found["token_set_f1"] < high
    assert found["unrestricted_f1"] <= found["token_set_f1"]
    assert found["n_rare"] >= 0 and {"number_recall", "rare_recall"} <= found.keys()
    load_attack(folder)
