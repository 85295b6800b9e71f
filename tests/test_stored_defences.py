"""Defences that learn: stored, loaded and refused as trained attacks are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.core.defences.protected import ProtectedEncoder
from leakscope.core.defences.registry import DEFENCES, DefenceEntry, make_defence
from leakscope.core.defences.stored import load_defence, save_defence
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import (
    ArtifactError,
    EncoderMismatchError,
    InvalidInputError,
    NotFittedError,
)
from leakscope.core.protocols import Encoder, OnProgress, TrainedDefence, Vectors, no_progress
from leakscope.core.specs import DefenceSpec, setting

NAME = "toy_trained"


@dataclass(kw_only=True)
class MeanRemoval:
    """Takes the mean of the training texts off every vector."""

    share: float = setting(1.0, "Share of the mean that is taken off", low=0, high=1)
    seed: int | None = None

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        vectors = encoder.encode(texts, on_progress) if vectors is None else vectors
        self.mean_ = np.asarray(vectors).mean(0)
        self.encoder_fingerprint_ = encoder.fingerprint
        return self

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        if not hasattr(self, "mean_"):
            raise NotFittedError("MeanRemoval is not trained: call fit.")
        return {"mean": self.mean_}, {"encoder_fingerprint": self.encoder_fingerprint_}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        self.mean_, self.encoder_fingerprint_ = arrays["mean"], meta["encoder_fingerprint"]
        return self

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        self.state()
        if encoder.fingerprint != self.encoder_fingerprint_:
            raise EncoderMismatchError("MeanRemoval was trained on another encoder.")

        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
            return encoder.encode(texts, on_progress) - np.float32(self.share) * self.mean_

        return ProtectedEncoder.of(encoder, self, transform)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = DefenceEntry("Toy", "Takes a mean off.", "a test", f"{__name__}:MeanRemoval", "vector")
    monkeypatch.setitem(DEFENCES, NAME, entry)


def fitted(encoder: Encoder, texts: Sequence[str], **settings: Any) -> TrainedDefence:
    defence = make_defence(DefenceSpec.of(NAME, settings))
    assert isinstance(defence, TrainedDefence)
    return defence.fit(encoder, texts)


def test_saved_and_loaded_it_protects_identically(
    tiny_encoder: TransformerEncoder, small_texts: list[str], tmp_path: Path
) -> None:
    defence = fitted(tiny_encoder, small_texts[:50], share=0.5, seed=3)
    folder = save_defence(defence, tmp_path / "d", training={"corpus": "small"})
    loaded = load_defence(folder, seed=3)
    assert loaded == defence and loaded.training_ == {"corpus": "small"}  # type: ignore[attr-defined]
    one, other = defence.protect(tiny_encoder), loaded.protect(tiny_encoder)
    assert one.fingerprint == other.fingerprint and one.name == other.name
    np.testing.assert_array_equal(one.encode(small_texts[50:60]), other.encode(small_texts[50:60]))


def test_what_was_learned_is_part_of_the_fingerprint(
    tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    first = fitted(tiny_encoder, small_texts[:50], seed=0).protect(tiny_encoder)
    second = fitted(tiny_encoder, small_texts[50:], seed=0).protect(tiny_encoder)
    assert first.fingerprint != second.fingerprint


def test_the_seed_of_the_noise_is_not_written(
    tiny_encoder: TransformerEncoder, small_texts: list[str], tmp_path: Path
) -> None:
    save_defence(fitted(tiny_encoder, small_texts[:50], seed=12345), tmp_path)
    assert "12345" not in (tmp_path / "model.json").read_text()


def test_an_unfitted_defence_is_not_written(tmp_path: Path) -> None:
    defence = make_defence(NAME)
    with pytest.raises(NotFittedError):
        save_defence(defence, tmp_path)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_class_of_no_entry_is_refused(
    tiny_encoder: TransformerEncoder,
    small_texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    defence = fitted(tiny_encoder, small_texts[:50])
    monkeypatch.delitem(DEFENCES, NAME)
    with pytest.raises(InvalidInputError, match="MeanRemoval is not a registered defence"):
        save_defence(defence, tmp_path)


@pytest.mark.parametrize("change", [{"kind": "encoder"}, {"defence": "gaussian"}, {"state": {}}])
def test_a_folder_that_holds_something_else_is_refused(
    tiny_encoder: TransformerEncoder, small_texts: list[str], tmp_path: Path, change: dict[str, Any]
) -> None:
    save_defence(fitted(tiny_encoder, small_texts[:50]), tmp_path)
    meta = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(meta | change))
    with pytest.raises(ArtifactError, match="does not contain a trained defence"):
        load_defence(tmp_path)
