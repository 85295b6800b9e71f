"""Arrays of another shape than the rest of a stored attack or encoder are refused when it opens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from leakscope.core.attacks.inversion.shipped import load_attack, save_attack
from leakscope.core.encoders import fitted
from leakscope.core.encoders.fitted import load_fitted, make_encoder, save_encoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import ArtifactError
from leakscope.core.protocols import TrainedAttack
from leakscope.core.specs import AttackSpec, FittedEncoderSpec
from leakscope.core.storage.artifacts import load_artifact, save_artifact

SETTINGS: dict[str, dict[str, Any]] = {
    "mlc": {"vocabulary_size": 30, "epochs": 1},
    "probe_mlc": {"vocabulary_size": 30, "epochs": 1, "hidden": 8, "substitutions": 0},
    "msp": {"vocabulary_size": 30, "epochs": 1, "hidden": 16},
    "search": {
        "vocabulary_size": 30,
        "base_epochs": 1,
        "base_substitutions": 0,
        "n_calibration": 20,
        "n_candidates": 5,
        "n_rounds": 1,
        "corrector_hidden": 8,
        "corrector_epochs": 1,
    },
    "reconstruct": {
        "vocabulary_size": 30,
        "base_epochs": 1,
        "base_substitutions": 0,
        "lexicon_size": 40,
        "n_queries": 20,
    },
}


def cut(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the array without its last row, without its last column, and with one more axis."""
    if array.ndim and array.shape[0] > 1:
        yield array[:-1]
    if array.ndim > 1 and array.shape[1] > 1:
        yield np.ascontiguousarray(array[:, :-1])
    if array.ndim > 1:
        yield array[None]


@pytest.mark.slow
@pytest.mark.parametrize("name", INVERSION_ATTACKS)
def test_an_attack_with_an_array_of_another_shape_is_refused(
    tiny_encoder: TransformerEncoder, small_texts: list[str], tmp_path: Path, name: str
) -> None:
    attack = make_attack(AttackSpec.of(name, SETTINGS.get(name)))
    if not isinstance(attack, TrainedAttack):
        pytest.skip("learns nothing that is stored")
    attack.fit(tiny_encoder, small_texts[:80])
    save_attack(attack, tmp_path / "whole")
    arrays, meta = load_artifact(tmp_path / "whole")
    vectors = tiny_encoder.encode(small_texts[:2])
    for array_name, array in arrays.items():
        for other in cut(array):
            save_artifact(tmp_path / "cut", {**arrays, array_name: other}, meta)
            try:
                opened = load_attack(tmp_path / "cut")
            except ArtifactError as error:
                assert str(tmp_path / "cut") in str(error)
                continue
            opened.invert(tiny_encoder, vectors)  # what opens has to answer


@pytest.mark.parametrize("name", ["retrieval", "probe"])
@pytest.mark.parametrize("value", [-1, 2**30], ids=["below 0", "beyond the last"])
def test_places_outside_of_sparse_rows_are_refused(
    small_texts: list[str], tmp_path: Path, name: str, value: int
) -> None:
    encoder = make_encoder("tfidf").fit(small_texts[:80])
    attack = make_attack(AttackSpec.of(name))
    assert isinstance(attack, TrainedAttack)
    save_attack(attack.fit(encoder, small_texts[:80]), tmp_path / "whole")
    arrays, meta = load_artifact(tmp_path / "whole")
    places = [key for key in ("indices", "columns", "indptr", "starts") if key in arrays]
    assert len(places) == {"retrieval": 4, "probe": 2}[name]
    for place in places:
        changed = arrays[place].copy()
        changed[len(changed) // 2] = value
        save_artifact(tmp_path / "cut", {**arrays, place: changed}, meta)
        with pytest.raises(ArtifactError, match="does not contain a trained attack"):
            load_attack(tmp_path / "cut")  # a product with it would write beyond its memory


ENCODERS: dict[str, dict[str, Any]] = {
    "tfidf": {},
    "lsa_tfidf": {"n_components": 5},
    "doc2vec": {"vector_size": 8, "epochs": 1},
    "word2vec": {"vector_size": 8, "epochs": 1},
    "fasttext": {"vector_size": 8, "epochs": 1, "n_cells": 64},
}


ANSWERS: dict[str, set[tuple[str, int]]] = {
    "lsa_tfidf": {("components", 4)},
    "word2vec": {("vectors", 7)},
}
"""Arrays that may be cut, and how many dimensions are left."""


@pytest.mark.parametrize("is_sealed_anew", [False, True], ids=["altered", "with its fingerprint"])
@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_with_an_array_of_another_shape_is_refused(
    small_texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    is_sealed_anew: bool,
) -> None:
    encoder = make_encoder(FittedEncoderSpec.of(name, ENCODERS[name])).fit(small_texts)
    save_encoder(encoder, tmp_path / "whole")
    arrays, meta = load_artifact(tmp_path / "whole")
    if is_sealed_anew:  # as whoever means harm would
        monkeypatch.setattr(fitted, "digest_of", lambda *_: meta["fingerprint"])
    for array_name, array in arrays.items():
        for other in list(cut(array))[:2]:
            save_artifact(tmp_path / "cut", {**arrays, array_name: other}, meta)
            try:
                opened = load_fitted(tmp_path / "cut")
            except ArtifactError as error:
                assert str(tmp_path / "cut") in str(error)
                continue
            assert is_sealed_anew, "its fingerprint is another"
            # One dimension less, or a word a letter shorter, is another encoder: it has to answer.
            assert opened.encode(small_texts[:2]).shape == (2, opened.dimension)
            is_fewer = (array_name, opened.dimension) in ANSWERS.get(name, ())
            assert is_fewer or array_name.endswith("words")


@pytest.mark.parametrize("name", ["vectors", "hidden"])
def test_weights_of_another_type_never_reach_gensim(
    small_texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    settings = ENCODERS["doc2vec"]
    encoder = make_encoder(FittedEncoderSpec.of("doc2vec", settings)).fit(small_texts)
    save_encoder(encoder, tmp_path / "whole")
    arrays, meta = load_artifact(tmp_path / "whole")
    monkeypatch.setattr(fitted, "digest_of", lambda *_: meta["fingerprint"])
    save_artifact(tmp_path / "cut", {**arrays, name: arrays[name].astype(np.float16)}, meta)
    with pytest.raises(ArtifactError, match=f"{name} must be float32"):
        load_fitted(tmp_path / "cut")
