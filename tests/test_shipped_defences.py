"""Trained defences that ship: found by their settings, chained, and tried on a sentence."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences import shipped
from leakscope.core.defences.setting import read_setting, why_not_tried
from leakscope.core.defences.shipped import SHIPPED, find_shipped, shipped_names, with_trained
from leakscope.core.defences.trained.adversarial import AdversarialAdapter
from leakscope.core.defences.tried import defend_sentence, fit_inverse_map
from leakscope.core.encoders import load_encoder
from leakscope.core.errors import ArtifactError, EncoderMismatchError, InvalidInputError
from leakscope.core.protocols import Encoder
from leakscope.core.specs import EncoderSpec

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
    shipped._list_shipped.cache_clear()
    assert find_shipped(read_setting("adversarial"), "minilm", tmp_path) is None
    assert shipped_names("minilm", tmp_path) == []
