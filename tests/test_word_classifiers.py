"""The classifiers' loss and start, against PyTorch's own loss and hand-worked values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from leakscope.core.attacks.inversion.classifiers import network
from leakscope.core.attacks.inversion.classifiers.mlc import MLCAttack
from leakscope.core.attacks.inversion.classifiers.network import WordClassifier, word_bce
from leakscope.core.attacks.inversion.decision import best_count, best_counts


def small_model(hidden: int = 0) -> WordClassifier:
    rng = np.random.default_rng(0)
    return WordClassifier(
        rng.normal(size=(7, 5)).astype(np.float32),
        rng.normal(size=7).astype(np.float32),
        rng.normal(size=5).astype(np.float32),
        scale=2.0,
        hidden=hidden,
    )


def losses(model: WordClassifier, targets: list[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of three vectors, and the same by PyTorch's own cross-entropy."""
    x = torch.from_numpy(np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32))
    y = torch.zeros(3, 7)
    for i, t in enumerate(targets):
        y[i, t] = 1
    logits = model.features(x) @ model.words.T + model.bias
    plain = F.binary_cross_entropy_with_logits(logits, y, reduction="sum") / 3
    return word_bce(model, x, targets), plain


def test_loss_is_eq_8_by_pytorchs_own_cross_entropy(monkeypatch):
    monkeypatch.setattr(network, "fast_dtype", lambda device: torch.float32)
    model = small_model()
    loss, expected = losses(model, [np.array([0, 3]), np.array([6]), np.array([1, 2, 5])])
    loss.backward()
    gradient = model.words.grad.clone()
    model.zero_grad()
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert torch.allclose(gradient, model.words.grad, atol=1e-6)


def test_the_fast_number_format_changes_the_loss_by_less_than_a_percent():
    loss, expected = losses(small_model(), [np.array([0, 3]), np.array([6]), np.array([1])])
    assert loss.item() == pytest.approx(expected.item(), rel=0.01)


def test_before_training_the_residual_layer_adds_nothing():
    plain, residual = small_model(), small_model(hidden=4)
    x = np.random.default_rng(2).normal(size=(3, 5)).astype(np.float32)
    assert np.allclose(plain.probabilities(x), residual.probabilities(x), atol=1e-6)


def test_expected_f1_is_maximised_by_hand():
    # Sizes: m = 1.8. k=1: 1.8/2.8=0.643; k=2: 3.4/3.8=0.895; k=3: 3.6/4.8=0.75.
    assert best_count(np.array([0.9, 0.8, 0.1])) == 2
    # A longer text makes the doubtful word worth its risk: m = 10.
    assert best_counts(np.array([[0.9, 0.8, 0.3]]), np.array([10.0])).tolist() == [3]
    assert best_count(np.array([0.0, 0.0])) == 1, "at least one word is answered"


def test_vectors_of_any_place_and_size_are_centred_and_scaled(small_texts):
    class Far:
        name, dimension, fingerprint = "far", 6, "f" * 64

        def encode(self, texts, on_progress=None):
            drawn = np.random.default_rng(len(texts)).normal(300.0, 50.0, (len(texts), 6))
            return drawn.astype(np.float32)

    attack = MLCAttack(vocabulary_size=20, epochs=1, substitutions=0, device="cpu")
    encoder = Far()
    vectors = encoder.encode(small_texts)
    attack.fit(encoder, small_texts, vectors)
    seen = attack.model_.features(torch.from_numpy(vectors))
    assert seen.mean(0).abs().max() < 0.3 and 0.8 < seen.std(0).mean() < 1.25
