"""Defences that learn: stored, loaded and refused as trained attacks are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences import stored
from leakscope.core.defences.protected import ProtectedEncoder
from leakscope.core.defences.registry import DEFENCES, DefenceEntry, make_defence
from leakscope.core.defences.setting import read_setting, why_not_tried
from leakscope.core.defences.stored import (
    SHIPPED,
    find_shipped,
    load_defence,
    save_defence,
    shipped_names,
    with_trained,
)
from leakscope.core.defences.trained.adversarial import AdversarialAdapter
from leakscope.core.defences.tried import defend_sentence, fit_inverse_map
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import (
    ArtifactError,
    EncoderMismatchError,
    InvalidInputError,
    NotFittedError,
)
from leakscope.core.protocols import Encoder, OnProgress, TrainedDefence, Vectors, no_progress
from leakscope.core.specs import DefenceSpec, EncoderSpec, setting

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


CHAIN = "adversarial:weight=1+gaussian:sigma=0.05"


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return load_encoder(EncoderSpec(name="minilm"))


def test_it_is_found_by_all_its_settings_and_by_no_other() -> None:
    found = find_shipped(read_setting("adversarial:weight=1"), "minilm")
    assert isinstance(found, AdversarialAdapter)
    assert (found.against, found.weight, found.training_["n_texts"]) == ("words", 1.0, 20_000)
    assert find_shipped(read_setting(CHAIN), "minilm") is found
    assert find_shipped(read_setting("adversarial"), "minilm") is found, "1 is the usual weight"
    for told in ("adversarial:weight=0.3", "adversarial:against=attribute,weight=3", "gaussian"):
        assert find_shipped(read_setting(told), "minilm") is None
    assert find_shipped(read_setting("adversarial"), "lsa") is None
    assert shipped_names("minilm") == ["adversarial", "leace"] and shipped_names("lsa") == []


@pytest.mark.parametrize("told", ["adversarial:against=attribute,weight=1", "leace"])
def test_those_that_hide_an_attribute_ship_and_change_vectors(told: str, minilm: Encoder) -> None:
    spec = read_setting(told)
    found: Any = find_shipped(spec, "minilm")
    assert found is not find_shipped(read_setting("adversarial"), "minilm")
    assert getattr(found, "against", "attribute") == "attribute"
    assert found.training_["n_texts"] == 20_000 and why_not_tried(spec, "minilm") == ""
    texts = list(bundled_sentences()[:20])
    plain, changed = minilm.encode(texts), found.protect(minilm).encode(texts)
    assert np.abs(plain - changed).max() > 0.01
    assert np.einsum("nd,nd->n", plain, changed).min() > 0.3, "they are still about the same"


def test_what_ships_can_be_tried_and_what_does_not_says_so() -> None:
    assert why_not_tried(read_setting(CHAIN), "minilm") == ""
    assert "no trained one ships" in why_not_tried(
        read_setting("adversarial:weight=3+int8"), "minilm"
    )
    assert "no trained one ships" in why_not_tried(read_setting("adversarial"), "lsa")


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("int8+adversarial", "Put it first"),
        ("text_to_text:eta=60+adversarial", "cannot be chained with Text to text. Choose one"),
        ("adversarial+text_to_text", "cannot be chained with Text to text. Choose one"),
        ("leace+adversarial", "cannot be chained with Adversarial training. Choose one"),
        ("adversarial+leace", "cannot be chained with LEACE. Choose one"),
    ],
)
def test_what_is_trained_stands_first_and_alone_of_its_kind(told: str, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        read_setting(told, "point")


def test_it_changes_vectors_stays_useful_and_is_one_stage_of_a_chain(minilm: Encoder) -> None:
    texts = list(bundled_sentences()[:60])
    spec = read_setting("adversarial:weight=1+binary")
    trained = find_shipped(spec, "minilm")
    assert trained is not None
    plain, changed = minilm.encode(texts), trained.protect(minilm).encode(texts)
    assert np.allclose(np.linalg.norm(changed, axis=1), 1, atol=1e-4)
    assert np.abs(plain - changed).max() > 0.05
    upper = np.triu_indices(len(texts), 1)
    alike = np.corrcoef((plain @ plain.T)[upper], (changed @ changed.T)[upper])[0, 1]
    assert alike > 0.5, "which texts belong together is kept"
    chained = with_trained(spec, trained).protect(minilm).encode(texts)
    assert np.allclose(chained, np.sign(changed) / np.sqrt(384), atol=1e-6)


@pytest.mark.slow
def test_a_sentence_goes_through_it_and_is_led_back(minilm: Encoder) -> None:
    text, known = "The harbour master counted twelve ships.", list(bundled_sentences()[:1500])
    vectors, spec = minilm.encode(known), read_setting("adversarial:weight=1")
    (own,) = minilm.encode([text])
    found = defend_sentence(minilm, spec, text, 7)
    back = fit_inverse_map(minilm, spec, vectors, 7)
    assert found.text is None and back is not None
    (led,) = back(found.vector)
    nearer = np.linalg.norm(led - own) < np.linalg.norm(found.vector[0] - own)
    assert nearer, "a linear map alone takes some of it back"


def test_it_protects_no_other_encoder(minilm: Encoder) -> None:
    trained = find_shipped(read_setting("adversarial"), "minilm")
    other = load_encoder(EncoderSpec(name="minilm", layer=2))
    assert trained is not None
    with pytest.raises(EncoderMismatchError, match="Protect that encoder"):
        trained.protect(other)


def test_a_damaged_one_is_told(tmp_path: Path) -> None:
    own = Path("minilm", "adversarial")
    shutil.copytree(SHIPPED / own, tmp_path / own)
    path = tmp_path / "minilm" / "adversarial" / "model.json"
    (arrays,) = path.parent.glob("*.safetensors")
    arrays.write_bytes(arrays.read_bytes()[:-100])
    with pytest.raises(ArtifactError):
        find_shipped(read_setting("adversarial"), "minilm", tmp_path)
    path.write_text("{", encoding="utf-8")
    stored._list_shipped.cache_clear()
    assert find_shipped(read_setting("adversarial"), "minilm", tmp_path) is None
    assert shipped_names("minilm", tmp_path) == []
