"""Correctors: the loss against autograd, the start, and what they learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from leakscope.core.attacks.inversion.classifiers.network import WordClassifier
from leakscope.core.attacks.inversion.search.correction import (
    AnswerCorrector,
    CorrectionPlan,
    Corrections,
    Ranked,
    correction_loss,
)
from leakscope.core.text import Vocabulary

WORDS = tuple(f"w{chr(97 + i)}" for i in range(12))
D = 16


class MeanEncoder:
    """The vector of a text is the mean of fixed random vectors of its words."""

    name, dimension, fingerprint = "mean", D, "0"
    table = np.random.default_rng(5).normal(size=(len(WORDS), D)).astype(np.float32)

    def encode(self, texts, on_progress=lambda f, m: None):
        rows = [self.table[[WORDS.index(w) for w in t.split()]].mean(0) for t in texts]
        unit = np.stack(rows)
        return (unit / np.linalg.norm(unit, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def base() -> WordClassifier:
    """A classifier that knows a little: the cosine with each word's vector."""
    words = MeanEncoder.table / np.linalg.norm(MeanEncoder.table, axis=1, keepdims=True)
    bias = np.full(len(WORDS), -1.5, np.float32)
    return WordClassifier(words, bias, np.zeros(D, np.float32), scale=4.0).eval()


def some_texts(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(2, 6), replace=False)) for _ in range(n)]


def test_an_untrained_corrector_repeats_the_classifier(base: WordClassifier) -> None:
    x = MeanEncoder().encode(some_texts(9, 0))
    corrector = AnswerCorrector(base, hidden=8)
    p = corrector.probabilities(x, x[::-1].copy(), [np.array([0, 3])] * 9)
    np.testing.assert_allclose(p, base.probabilities(x), atol=1e-6)


def test_being_in_the_answer_moves_that_word_alone(base: WordClassifier) -> None:
    x = MeanEncoder().encode(some_texts(2, 0))
    corrector = AnswerCorrector(base, hidden=8)
    corrector.inside.data[3] = 2.0
    p = corrector.probabilities(x, x, [np.array([3]), np.array([1])])
    before = base.probabilities(x)
    logit = np.log(before[0, 3] / (1 - before[0, 3])) + 2
    assert p[0, 3] == pytest.approx(1 / (1 + np.exp(-logit)), rel=1e-5)
    changed = np.abs(p - before) > 1e-6
    assert changed.sum() == 1 and changed[0, 3]


def test_the_loss_and_its_gradient_equal_autograd(base: WordClassifier) -> None:
    torch.manual_seed(0)
    corrector = AnswerCorrector(base, hidden=8, dropout=0.0)
    for parameter in corrector.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    x, h = torch.randn(3, D), torch.randn(3, D)
    lists = [np.array([0, 3]), np.array([1]), np.array([2, 5, 7])]
    targets = [np.array([0]), np.array([1, 4]), np.array([11])]
    loss = correction_loss(corrector, x, h, lists, targets, base.words.detach())
    loss.backward()
    ours = {name: p.grad.clone() for name, p in corrector.named_parameters()}
    corrector.zero_grad()

    inside, true = torch.zeros(3, len(WORDS)), torch.zeros(3, len(WORDS))
    for i in range(3):
        inside[i, lists[i]], true[i, targets[i]] = 1, 1
    logits = corrector.features(x, h) @ base.words.T.detach() + base.bias.detach()
    logits = logits + corrector.bias + corrector.inside * inside
    plain = torch.nn.functional.binary_cross_entropy_with_logits(logits, true, reduction="sum") / 3
    plain.backward()
    assert loss.item() == pytest.approx(plain.item(), rel=1e-5)
    for name, parameter in corrector.named_parameters():
        torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-4, atol=1e-6)


def mean_f1(ranked: Ranked, rows: list) -> float:
    pairs = zip(ranked.lists, rows, strict=True)
    return float(np.mean([2 * np.isin(a, t).sum() / (len(a) + len(t)) for a, t in pairs]))


def test_correcting_an_answer_improves_it_and_survives_the_disk(base: WordClassifier) -> None:
    encoder = MeanEncoder()
    known, unseen = some_texts(3000, 1), some_texts(300, 2)
    vocabulary = Vocabulary.count(known, stop_words=frozenset())
    order = [WORDS.index(w) for w in vocabulary.words]  # the classifier follows
    base.words.data, base.bias.data = base.words.data[order], base.bias.data[order]
    corrections = Corrections(base, vocabulary, 1.0)
    x, rows = encoder.encode(unseen), vocabulary.rows(unseen)
    before = mean_f1(corrections.rank(encoder, x), rows)
    plan = CorrectionPlan(n_rounds=2, hidden=64, epochs=15, learning_rate=5e-3, seed=0)
    corrections.fit(encoder, known, encoder.encode(known), plan)
    after = corrections.rank(encoder, x)
    assert mean_f1(after, rows) > before + 0.05
    assert len(corrections.correctors) == 2

    again = Corrections(base, vocabulary, 1.0).load(corrections.arrays())
    np.testing.assert_array_equal(again.rank(encoder, x).likely, after.likely)


def test_a_ranking_is_the_likeliest_words_and_the_whole_mass() -> None:
    p = np.array([[0.1, 0.9, 0.2, 0.8], [0.6, 0.0, 0.1, 0.0]], np.float32)
    ranked = Ranked.of(p, 1.0)
    assert ranked.words[0].tolist() == [1, 3, 2, 0]
    assert [answer.tolist() for answer in ranked.lists] == [[1, 3], [0]]
    np.testing.assert_allclose(ranked.mass, [2.0, 0.7], rtol=1e-6)
