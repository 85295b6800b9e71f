"""Arrays of another shape than the rest of a stored attack or encoder are refused when it opens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from core.attacks.inversion.shipped import load_attack, save_attack
from core.encoders.fitted import load_fitted, make_encoder, save_encoder
from core.encoders.transformer import TransformerEncoder
from core.errors import ArtifactError
from core.protocols import TrainedAttack
from core.specs import AttackSpec
from core.store import load_artifact, save_artifact

SETTINGS: dict[str, dict[str, Any]] = {
    "mlc": {"vocabulary_size": 30, "epochs": 1},
    "probe_mlc": {"vocabulary_size": 30, "epochs": 1, "hidden": 8, "substitutions": 0},
    "msp": {"vocabulary_size": 30, "epochs": 1, "hidden": 16},
    "search": {"vocabulary_size": 30, "base_epochs": 1, "base_substitutions": 0,
               "n_calibration": 20, "n_candidates": 5, "n_rounds": 1, "corrector_hidden": 8,
               "corrector_epochs": 1},
    "reconstruct": {"vocabulary_size": 30, "base_epochs": 1, "base_substitutions": 0,
                    "lexicon_size": 40, "n_queries": 20},
}  # fmt: skip


def cut(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the array without its last row, without its last column, and with one more axis."""
    if array.ndim and array.shape[0] > 1:
        yield array[:-1]
    if array.ndim > 1 and array.shape[1] > 1:
        yield np.ascontiguousarray(array[:, :-1])
    if array.ndim > 1:
        yield array[None]


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


@pytest.mark.parametrize("name", ["tfidf", "lsa_tfidf"])
def test_an_encoder_with_an_array_of_another_shape_is_refused(
    small_texts: list[str], tmp_path: Path, name: str
) -> None:
    encoder = make_encoder(name)
    if name == "lsa_tfidf":
        encoder.n_components = 5  # type: ignore[attr-defined]
    save_encoder(encoder.fit(small_texts), tmp_path / "whole")
    arrays, meta = load_artifact(tmp_path / "whole")
    for array_name, array in arrays.items():
        for other in list(cut(array))[:2]:
            save_artifact(tmp_path / "cut", {**arrays, array_name: other}, meta)
            with pytest.raises(ArtifactError, match="cut"):
                load_fitted(tmp_path / "cut")
