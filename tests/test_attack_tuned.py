"""Attacks that go on from trained ones, on vectors that were changed."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from leakscope.core.attacks.inversion.classifiers.network import WordClassifier, word_bce
from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.classifiers.tuned import (
    fine_tune,
    pairs_in_vocabulary,
    teacher_for,
)
from leakscope.core.attacks.inversion.evaluation import evaluate
from leakscope.core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from leakscope.core.attacks.inversion.released_tokens.released import ReleasedTokens, TokenReader
from leakscope.core.attacks.inversion.search.attack import SearchAttack
from leakscope.core.attacks.inversion.search.tuned import SearchPlan, tune_search
from leakscope.core.defences.vectors import GaussianNoise, RandomProjection
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.text import Vocabulary, word_set


@pytest.fixture(scope="module")
def parts(small_texts: list[str]) -> tuple[list[str], list[str], list[str]]:
    distinct = list(dict.fromkeys(small_texts))
    return distinct[:250], distinct[250:310], distinct[310:]


@pytest.fixture(scope="module")
def plain(tiny_encoder: TransformerEncoder, parts: Any) -> ProbeMLCAttack:
    return ProbeMLCAttack(
        vocabulary_size=40, hidden=16, epochs=30, substitutions=0, device="cpu"
    ).fit(tiny_encoder, parts[0])


def test_a_map_undoes_what_is_linear_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 8)).astype(np.float32)
    turn = rng.standard_normal((8, 8)).astype(np.float32)
    np.testing.assert_allclose(Lift.fit(x @ turn + 3, x)(x @ turn + 3), x, atol=1e-2)
    np.testing.assert_allclose(Lift.fit(x, x)(x), x, atol=1e-4)
    with pytest.raises(InvalidInputError, match="at least 20 pairs, got 5 and 5"):
        Lift.fit(x[:5], x[:5])


def test_a_map_shrinks_noise_as_wieners_filter_does() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20_000, 3)).astype(np.float32)
    noisy = x + 2 * rng.standard_normal(x.shape).astype(np.float32)
    # Variance 1 under noise of variance 4: 1/(1 + 4).
    np.testing.assert_allclose(Lift.fit(noisy, x).weight, np.eye(3) / 5, atol=0.03)


def test_what_was_trained_goes_on_where_vectors_are_changed(
    tiny_encoder: TransformerEncoder, plain: ProbeMLCAttack, parts: Any
) -> None:
    known, held, targets = parts
    protected = RandomProjection(dimension=24).protect(tiny_encoder)
    changed = protected.encode(known)
    lift = Lift.fit(changed, tiny_encoder.encode(known))
    own = LiftedEncoder(tiny_encoder, protected, lift)
    pairs = pairs_in_vocabulary(
        plain.vocabulary_, (known, [lift(changed)]), (held, own.encode(held))
    )
    before = plain.model_.words.detach().clone()
    tuned = fine_tune(plain, tiny_encoder, pairs, epochs=6, learning_rate=5e-3)

    def f1(attack: Any) -> float:
        lifted = LiftedAttack(attack, lift, tiny_encoder, protected)
        return evaluate(lifted, protected, targets).scores.token_set_f1

    assert f1(tuned) > f1(plain) + 1
    assert bool((plain.model_.words == before).all()), "the one that it began with is as it was"


def test_training_on_that_only_spoils_is_undone(
    tiny_encoder: TransformerEncoder, plain: ProbeMLCAttack, parts: Any
) -> None:
    known, held, _ = parts
    vectors = tiny_encoder.encode(known)
    shuffled = vectors[np.random.default_rng(0).permutation(len(vectors))]
    pairs = pairs_in_vocabulary(
        plain.vocabulary_, (known, [shuffled]), (held, tiny_encoder.encode(held))
    )
    spoiled = fine_tune(plain, tiny_encoder, pairs, epochs=2, learning_rate=1.0)
    tried = tiny_encoder.encode(held[:5])
    np.testing.assert_allclose(
        spoiled.model_.probabilities(tried), plain.model_.probabilities(tried), atol=1e-3
    )


def test_a_teacher_tells_what_stands_in_the_texts_of_wrong_labels(
    tiny_encoder: TransformerEncoder, plain: ProbeMLCAttack, parts: Any
) -> None:
    known, held, _ = parts
    clean, seen = tiny_encoder.encode(known), tiny_encoder.encode(held)
    turned = np.ascontiguousarray(clean[:, ::-1]), np.ascontiguousarray(seen[:, ::-1])
    pairs = pairs_in_vocabulary(plain.vocabulary_, (known, [turned[0]]), (held, turned[1]))
    order = np.random.default_rng(0).permutation(len(pairs.rows))
    wrong = replace(pairs, rows=[pairs.rows[i] for i in order])

    often = copy.copy(plain)
    often.batch_size = 16

    def f1(teacher: Any) -> float:
        tuned = fine_tune(
            often, tiny_encoder, wrong, epochs=30, learning_rate=1e-2, teacher=teacher
        )
        return max(tuned.log_.validation)

    assert f1(teacher_for(plain, known, clean)) > f1(None) + 3


def test_a_teacher_answers_for_every_copy_of_a_text_and_for_no_other(
    tiny_encoder: TransformerEncoder, plain: ProbeMLCAttack, parts: Any
) -> None:
    known, held, _ = parts
    clean = tiny_encoder.encode(known)
    kept = [i for i, row in enumerate(plain.vocabulary_.rows(known)) if len(row)]
    teacher = teacher_for(plain, known, clean)
    assert len(teacher) == len(kept)
    expected = plain.model_.probabilities(clean[kept])
    for rows in (np.arange(5), np.arange(5) + len(kept)):
        np.testing.assert_allclose(teacher.probabilities(rows).numpy(), expected[:5], atol=2e-2)
    pairs = pairs_in_vocabulary(
        plain.vocabulary_, (known, [clean]), (held, tiny_encoder.encode(held))
    )
    with pytest.raises(InvalidInputError, match="vectors of the same texts"):
        fine_tune(
            plain,
            tiny_encoder,
            pairs,
            epochs=1,
            learning_rate=1e-3,
            teacher=teacher_for(plain, known[:-9], clean[:-9]),
        )


def test_the_loss_of_taught_targets_is_that_of_their_mean() -> None:
    torch.manual_seed(0)
    start = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)
    model = WordClassifier(start, np.zeros(7), np.zeros(4, np.float32), scale=1.0)
    vectors, answers = torch.randn(3, 4), torch.rand(3, 7)
    rows = [np.array([0, 2], np.int32), np.array([1], np.int32), np.array([6], np.int32)]
    hard = torch.zeros(3, 7)
    for i, row in enumerate(rows):
        hard[i, row.tolist()] = 1
    loss = word_bce(model, vectors, rows, answers)
    loss.backward()  # type: ignore[no-untyped-call]
    logits = (vectors @ model.words.detach().T).requires_grad_()
    mean = 0.2 * hard + 0.8 * answers
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(logits, mean, reduction="sum") / 3
    wanted.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None and model.words.grad is not None
    assert loss.item() == pytest.approx(wanted.item(), rel=2e-2)  # products in bfloat16
    torch.testing.assert_close(model.words.grad, logits.grad.T @ vectors, rtol=2e-2, atol=2e-2)


def test_copies_of_noise_have_the_words_of_their_texts(
    tiny_encoder: TransformerEncoder, plain: ProbeMLCAttack, parts: Any
) -> None:
    known, held, _ = parts
    noisy = GaussianNoise(sigma=0.1, seed=0).protect(tiny_encoder)
    copies = [noisy.encode(known) for _ in range(2)]
    pairs = pairs_in_vocabulary(plain.vocabulary_, (known, copies), (held, noisy.encode(held)))
    n = len(pairs.rows) // 2
    assert pairs.vectors.shape == (2 * n, 32)
    assert all(np.array_equal(a, b) for a, b in zip(pairs.rows[:n], pairs.rows[n:], strict=True))
    assert not np.allclose(pairs.vectors[:n], pairs.vectors[n:])


def test_what_chooses_the_epoch_is_not_trained_on(plain: ProbeMLCAttack, parts: Any) -> None:
    known, _, _ = parts
    vectors = np.zeros((len(known), 32), np.float32)
    with pytest.raises(
        InvalidInputError, match="3 texts are in both the training and the validation set"
    ):
        pairs_in_vocabulary(plain.vocabulary_, (known, [vectors]), (known[:3], vectors[:3]))


@pytest.mark.slow
def test_the_search_goes_on_from_its_correctors(
    tiny_encoder: TransformerEncoder, parts: Any
) -> None:
    known, held, targets = parts
    search = SearchAttack(
        vocabulary_size=40,
        base_epochs=20,
        base_substitutions=0,
        n_candidates=6,
        n_rounds=1,
        corrector_hidden=8,
        corrector_epochs=1,
    ).fit(tiny_encoder, known)
    noisy = GaussianNoise(sigma=0.05, seed=0).protect(tiny_encoder)
    lift = Lift.fit(noisy.encode(known), tiny_encoder.encode(known))
    attacked = LiftedEncoder(tiny_encoder, noisy, lift)
    plan = SearchPlan(n_corrected=200, n_mapped=100, n_calibration=60)
    found = tune_search(search, search.base_, (tiny_encoder, attacked), (known, held), plan)
    assert len(found.corrections_.correctors) == len(search.corrections_.correctors) == 1
    assert found.corrections_.correctors[0] is not search.corrections_.correctors[0]
    lifted = LiftedAttack(found, lift, tiny_encoder, noisy)
    result = evaluate(lifted, noisy, targets)
    assert result.scores.token_set_f1 > result.baseline.token_set_f1 + 5
    assert result.n_queries_mean > 1


def test_released_tokens_are_read_as_they_are(tiny_encoder: TransformerEncoder, parts: Any) -> None:
    words = Vocabulary.count(parts[0])
    released = ReleasedTokens(tiny_encoder, lambda ids: ids, identity="same")
    reader = TokenReader(words).fit(released)
    answers = reader.invert(released, released.encode(parts[2]))
    for text, answer in zip(parts[2], answers, strict=True):
        assert answer.word_set == word_set(text) & words.index.keys()
    unknown = tiny_encoder.token_ids(["minister"])[0][0]
    other = ReleasedTokens(tiny_encoder, lambda ids: np.full_like(ids, unknown), identity="one")
    (lost,) = TokenReader(words).fit(other).invert(other, other.encode([parts[2][0]]))
    assert lost.word_set == {"minister"}
