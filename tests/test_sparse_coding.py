from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from leakscope.core.attacks.inversion.sparse.attack import (
    SparseCodingAttack,
    tune_penalty,
    words_of_codes,
)
from leakscope.core.attacks.inversion.sparse.solvers import (
    SOLVERS,
    kkt_residual,
    objective,
    projected_adam,
    working_set,
)
from leakscope.core.encoders.transformer import TransformerEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.text import STOP_WORDS, words


def problem(seed: int, n_tokens: int = 60, dimension: int = 12, n_targets: int = 4):
    rng = np.random.default_rng(seed)
    tokens = rng.standard_normal((n_tokens, dimension)).astype(np.float32)
    tokens /= np.linalg.norm(tokens, axis=1, keepdims=True)
    mix = (rng.random((n_targets, n_tokens)) < 0.08) * rng.random((n_targets, n_tokens))
    noise = 0.01 * rng.standard_normal((n_targets, dimension))
    return tokens, (mix @ tokens + noise).astype(np.float32)


@pytest.mark.parametrize("solver", SOLVERS)
def test_orthonormal_tokens_give_the_hand_worked_answer(solver: str) -> None:
    # With V = I the problem falls apart: z_j = max(0, t_j − λ/2).
    targets = np.array([[0.5, 0.04, -0.3], [0.1, 0.0, 0.2]], dtype=np.float32)
    z = SOLVERS[solver](np.eye(3, dtype=np.float32), targets, 0.1)
    np.testing.assert_allclose(z, [[0.45, 0, 0], [0.05, 0, 0.15]], atol=5e-3)


def test_objective_and_residual_are_the_hand_worked_values() -> None:
    tokens = np.array([[1.0, 0.0], [0.0, 2.0]], dtype=np.float32)
    target = np.array([[1.0, 1.0]], dtype=np.float32)
    z = np.array([[0.5, 0.0]], dtype=np.float32)
    # misfit (−0.5, −1): 0.25 + 1 + 0.2·0.5 = 1.35
    np.testing.assert_allclose(objective(z, tokens, target, 0.2), [1.35], rtol=1e-6)
    # pulls: 0.5 − 0.1 on the active token, 2·1 − 0.1 on the other
    np.testing.assert_allclose(kkt_residual(z, tokens, target, 0.2), [1.9], rtol=1e-6)


@pytest.mark.parametrize("penalty", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("size", [1, 5, 128])
def test_working_set_is_optimal(penalty: float, size: int) -> None:
    tokens, targets = problem(1)
    z = working_set(tokens, targets, penalty, size=size)
    assert (z >= 0).all() and z.dtype == np.float32
    assert kkt_residual(z, tokens, targets, penalty).max() < 2e-3 * penalty


@pytest.mark.parametrize("penalty", [0.02, 0.2])
def test_agrees_with_scikit_learn(penalty: float) -> None:
    tokens, targets = problem(2, dimension=80)
    z = working_set(tokens, targets, penalty, tolerance=1e-4)
    # scikit-learn halves the squares and divides them by the dimension: α = λ/(2d).
    lasso = Lasso(alpha=penalty / 160, positive=True, fit_intercept=False, tol=1e-10)
    expected = [lasso.fit(tokens.T.astype(np.float64), t).coef_ for t in targets]
    np.testing.assert_allclose(z, np.array(expected), atol=2e-5)


@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.05, 0.3]))
@settings(max_examples=25, deadline=None)
def test_working_set_is_optimal_whatever_the_problem(seed: int, penalty: float) -> None:
    tokens, targets = problem(seed, n_tokens=30)
    z = working_set(tokens, targets, penalty, size=8)
    assert kkt_residual(z, tokens, targets, penalty).max() < 2e-3 * penalty


@pytest.mark.parametrize("penalty", [0.05, 0.3])
def test_never_worse_than_projected_adam(penalty: float) -> None:
    tokens, targets = problem(5)
    ours = objective(working_set(tokens, targets, penalty), tokens, targets, penalty)
    paper = objective(projected_adam(tokens, targets, penalty), tokens, targets, penalty)
    nothing = objective(np.zeros((4, 60), np.float32), tokens, targets, penalty)
    assert (ours <= paper * (1 + 1e-6)).all()
    # … and the baseline is no straw man: it goes nearly all the way.
    assert (nothing - paper > 0.95 * (nothing - ours)).all()


def test_a_large_penalty_leaves_nothing_and_no_targets_give_no_rows() -> None:
    tokens, targets = problem(3)
    assert not working_set(tokens, targets, 100.0).any()
    assert working_set(tokens, targets[:0], 0.1).shape == (0, 60)


def test_an_answer_does_not_depend_on_the_batch() -> None:
    tokens, targets = problem(4)
    together = working_set(tokens, targets, 0.05, tolerance=1e-4)
    alone = np.concatenate([working_set(tokens, t[None], 0.05, tolerance=1e-4) for t in targets])
    np.testing.assert_allclose(alone, together, atol=1e-4)


def test_words_are_summed_ranked_and_cut_at_the_threshold() -> None:
    codes = np.array([[0.2, 0.3, 0.4, 0.25, 0.05, 0.0]], dtype=np.float32)
    (answer,) = words_of_codes(codes, ["cat", "dog", None, "cat", "eel", "fox"], 0.3)
    assert [w.word for w in answer.words] == ["cat", "dog"]
    assert [w.word for w in answer.runners_up] == ["eel"]
    assert answer.words[0].score == pytest.approx(0.45)


@pytest.fixture(scope="module")
def fitted(tiny_encoder: TransformerEncoder, small_texts: list[str]) -> SparseCodingAttack:
    return SparseCodingAttack(penalty=0.001).fit(tiny_encoder, small_texts[:300])


def test_both_solvers_give_the_attack_the_same_words(
    fitted: SparseCodingAttack, tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    vectors = tiny_encoder.encode(small_texts[300:310])
    slow = SparseCodingAttack(penalty=0.001, solver="projected_adam").load_state(*fitted.state())
    for ours, paper in zip(
        fitted.invert(tiny_encoder, vectors), slow.invert(tiny_encoder, vectors), strict=True
    ):
        assert [w.word for w in ours.words][:3] == [w.word for w in paper.words][:3]


def test_reads_words_and_leaves_stop_words_out_unless_kept(
    fitted: SparseCodingAttack, tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    texts = small_texts[300:340]
    vectors = tiny_encoder.encode(texts)
    answers = fitted.invert(tiny_encoder, vectors)
    truth = [set(words(text)) - STOP_WORDS for text in texts]
    hits = sum(len(a.word_set & t) for a, t in zip(answers, truth, strict=True))
    assert hits > 0.5 * sum(len(t) for t in truth)
    assert not any(a.word_set & STOP_WORDS for a in answers)
    kept = SparseCodingAttack(penalty=0.001, keep_stop_words=True).load_state(*fitted.state())
    assert any(a.word_set & STOP_WORDS for a in kept.invert(tiny_encoder, vectors))


def test_tuning_finds_the_best_of_the_grid(
    fitted: SparseCodingAttack, tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    best = tune_penalty(
        fitted, tiny_encoder, small_texts[300:330], penalties=(5.0, 0.001), thresholds=(0.9, 0.02)
    )
    assert (best["penalty"], best["threshold"]) == (0.001, 0.02)
    assert best["token_set_f1"] > 40
    assert fitted.penalty == 0.001


def test_chosen_settings_beat_wrong_ones_and_are_kept(
    tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    given = SparseCodingAttack(penalty=5.0).fit(tiny_encoder, small_texts[:300])
    chosen = SparseCodingAttack(penalty=5.0, n_tuning=60).fit(tiny_encoder, small_texts[:300])
    assert chosen.map_.n_texts == 240
    assert chosen.chosen_ is not None and chosen.chosen_["penalty"] < 5.0
    vectors = tiny_encoder.encode(small_texts[300:340])
    answers = chosen.invert(tiny_encoder, vectors)
    truth = [set(words(text)) - STOP_WORDS for text in small_texts[300:340]]

    def n_hits(answers):
        return sum(len(a.word_set & t) for a, t in zip(answers, truth, strict=True))

    assert n_hits(answers) > n_hits(given.invert(tiny_encoder, vectors))
    again = SparseCodingAttack(penalty=5.0, n_tuning=60).load_state(*chosen.state())
    assert again.invert(tiny_encoder, vectors) == answers


def test_tuning_must_leave_texts_to_learn_from(
    tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    with pytest.raises(InvalidInputError, match="half of the 10 texts"):
        SparseCodingAttack(n_tuning=6).fit(tiny_encoder, small_texts[:10])


def test_the_penalties_follow_the_length_of_the_tokens(
    fitted: SparseCodingAttack, tiny_encoder: TransformerEncoder, small_texts: list[str]
) -> None:
    tokens, targets = problem(7)
    short = working_set(tokens, targets, 0.05, tolerance=1e-4)
    long = working_set(2 * tokens, 2 * targets, 0.2, tolerance=1e-4)
    np.testing.assert_allclose(long, short, atol=1e-4)
    best = tune_penalty(fitted, tiny_encoder, small_texts[300:320])
    length = tiny_encoder.token_vectors.detach().square().sum(1).mean().item()
    assert 0.005 * length < best["penalty"] < 0.3 * length
