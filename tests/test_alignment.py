"""Alignment of foreign vectors to a known space: with pairs, without, and knowing when it fails.

Packages that sell a secret rotation as protection are aligned too.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.core.audit.alignment.anchored import (
    fit_anchored,
    initial_rotation_from_pairs,
    is_rotation,
)
from leakscope.core.audit.alignment.confidence import measure_confidence
from leakscope.core.audit.alignment.linear import orthogonal_factor
from leakscope.core.audit.alignment.paired import fit_paired, learning_curve
from leakscope.core.audit.alignment.structured import hadamard_key, hadamard_transform
from leakscope.core.audit.alignment.unpaired import fit_unpaired, maximum_likelihood_rotation
from leakscope.core.audit.identification import random_rotation
from leakscope.core.errors import InvalidInputError
from leakscope.core.vectors import unit

D = 16
Rows = NDArray[np.float32]


def rotation(d: int, seed: int = 1) -> Rows:
    return random_rotation(d, seed).astype(np.float32)


def bags(n: int, seed: int, d: int = D, *, domain: int | None = None) -> Rows:
    """Means of word vectors, the words of a text drawn from a topic: a small encoder's vectors.

    A domain has topics of other weights.
    """
    shared = np.random.default_rng(7)
    words = (shared.exponential(size=(600, d)) - 0.9) * np.geomspace(1, 0.05, d)
    topics = shared.dirichlet(0.02 * np.ones(600), 40)
    weights = shared.dirichlet(np.ones(40))
    if domain is not None:
        weights = np.random.default_rng(domain).dirichlet(np.ones(40))
    rng = np.random.default_rng(seed)
    which = rng.choice(40, n, p=weights)
    counts = np.stack([rng.multinomial(6, topics[topic]) for topic in which])
    return np.asarray(unit(counts @ words + 0.01 * rng.standard_normal((n, d))), dtype=np.float32)


def mean_cosine(first: Rows, second: Rows) -> float:
    return float((unit(first) * unit(second)).sum(axis=1).mean())


@pytest.fixture(scope="module")
def known() -> Rows:
    return bags(6_000, 0)


@pytest.fixture(scope="module")
def clear() -> Rows:
    return bags(4_000, 1)


def test_the_orthogonal_factor_maximises_the_trace() -> None:
    turn = orthogonal_factor(np.array([[0.0, 3.0], [-2.0, 0.0]]))
    assert turn == pytest.approx(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    # of rank 1: what the matrix does not show maps to 0
    assert orthogonal_factor(np.diag([2.0, 0.0])) == pytest.approx(np.diag([1.0, 0.0]))


@pytest.mark.slow
def test_a_rotation_is_found_without_pairs(known: Rows, clear: Rows) -> None:
    secret = rotation(D)
    found = fit_unpaired(known, clear @ secret)
    assert mean_cosine(found.map.apply(clear @ secret), clear) > 0.98
    assert found.confidence.is_right
    again = fit_unpaired(known, clear @ secret)
    assert np.array_equal(again.map.weights, found.map.weights)


@pytest.mark.slow
def test_appended_zeros_do_not_hide_a_rotation(known: Rows, clear: Rows) -> None:
    padded = np.pad(clear, ((0, 0), (0, 8))) @ rotation(D + 8)
    found = fit_unpaired(known, padded)
    assert mean_cosine(found.map.apply(padded), clear) > 0.98


@pytest.mark.slow
def test_confidence_knows_a_wrong_map(known: Rows, clear: Rows) -> None:
    right = measure_confidence(known[:4_000], known[4_000:], clear)
    assert right.share == pytest.approx(1.0, abs=0.1)
    wrong = [
        measure_confidence(known[:4_000], known[4_000:], clear @ rotation(D, seed))
        for seed in range(5)
    ]
    assert not any(one.is_right for one in wrong)
    assert abs(np.mean([one.share for one in wrong])) < 0.2


def test_confidence_expects_less_of_far_neighbours(known: Rows, clear: Rows) -> None:
    keys, own = known[:4_000], known[4_000:]
    far = bags(3_000, 1, domain=5)
    alike, other = (measure_confidence(keys, own, rows) for rows in (clear, far))
    assert other.own.value < 0.97 * alike.own.value
    assert other.share > other.theirs.value / alike.own.value
    turned = orthogonal_factor(
        np.eye(D) + 0.5 * (rotation(D) - rotation(D).T).astype(np.float64)
    ).astype(np.float32)
    assert mean_cosine(far @ turned, far) < 0.95
    assert measure_confidence(keys, own, far @ turned).share < 0.8 * other.share
    assert not measure_confidence(keys, own, far @ rotation(D)).can_be_refined


@pytest.mark.slow
def test_other_vectors_do_not_pass_for_a_rotation(known: Rows) -> None:
    rng = np.random.default_rng(3)
    gaussian = unit(rng.standard_normal((3_000, D)) * np.geomspace(1, 0.25, D))
    found = fit_unpaired(known, gaussian.astype(np.float32))
    assert not found.confidence.is_right


def test_the_likeliest_turn_undoes_a_turn_of_pairs() -> None:
    rng = np.random.default_rng(0)
    scales = np.geomspace(3, 1, 6)
    p = rng.standard_normal((2_000, 6)) * scales
    turn = orthogonal_factor(np.eye(6) + 0.1 * rng.standard_normal((6, 6)))
    z = (p + 0.1 * rng.standard_normal(p.shape)) @ turn  # W z = p with W = turn
    found = maximum_likelihood_rotation(
        (p.T @ z / len(z))[None], (z.T @ z / len(z))[None], np.full((1, 6), 0.01), n_steps=60
    )
    assert found == pytest.approx(turn, abs=0.01)


def test_pairs_of_a_rotation_choose_procrustes(clear: Rows) -> None:
    theirs = clear @ rotation(D)
    found = fit_paired(clear[:200], theirs[:200])
    assert found.map.method == "procrustes"
    assert mean_cosine(found.map.apply(theirs[1_000:]), clear[1_000:]) == pytest.approx(1, abs=1e-5)
    assert found.held_out.value > 0.999 > found.held_out.chance


def test_pairs_of_another_encoder_choose_ridge(clear: Rows) -> None:
    rng = np.random.default_rng(5)
    mixed = clear @ rng.standard_normal((D, D)) * 1.0 + 0.05 * rng.standard_normal(clear.shape)
    theirs = np.asarray(mixed, dtype=np.float32)
    found = fit_paired(clear[:500], theirs[:500])
    assert found.map.method == "ridge"
    truth = mean_cosine(found.map.apply(theirs[1_000:]), clear[1_000:])
    assert truth > 0.95
    assert found.held_out.value == pytest.approx(truth, abs=0.01)


@pytest.mark.slow
def test_few_pairs_and_many_vectors_undo_a_rotation(known: Rows) -> None:
    clear = bags(4_000, 1, domain=5)  # of another domain than the known ones
    theirs = clear @ rotation(D)
    pairs = clear[:5], theirs[:5]
    assert is_rotation(*pairs)
    alone = orthogonal_factor(pairs[1].T.astype(np.float64) @ pairs[0]).astype(np.float32)
    assert mean_cosine(theirs[5:] @ alone, clear[5:]) < 0.85
    start = initial_rotation_from_pairs(known, theirs[5:], pairs, np.random.default_rng(0))
    assert start.T @ start == pytest.approx(np.eye(D), abs=1e-5)
    assert mean_cosine(theirs[:5] @ start, clear[:5]) > 0.999
    found = fit_anchored(known, theirs[5:], pairs, n_rounds=2)
    assert mean_cosine(found.map.apply(theirs[5:]), clear[5:]) > 0.95
    assert found.map.method == "anchored" and found.n_pairs == 5
    again = fit_anchored(known, theirs[5:], pairs, n_rounds=2)
    assert np.array_equal(again.map.weights, found.map.weights)


def test_pairs_of_another_encoder_are_no_rotation(clear: Rows) -> None:
    rng = np.random.default_rng(5)
    noisy = clear[:50] @ rotation(D) + 0.02 * rng.standard_normal((50, D)) / np.sqrt(D)
    assert is_rotation(clear[:50], noisy.astype(np.float32))
    mixed = clear[:50] @ rng.standard_normal((D, D))
    assert not is_rotation(clear[:50], mixed.astype(np.float32))
    assert not is_rotation(clear[:50], clear[:50, :8])


def test_cosines_left_out_are_those_of_fits_without_the_pair(clear: Rows) -> None:
    from leakscope.core.audit.alignment.paired import _whitened_decompositions

    rng = np.random.default_rng(6)
    x, y = clear[:30].astype(np.float64), rng.standard_normal((30, 4))
    centred, targets = x - x.mean(axis=0), y - y.mean(axis=0)
    plain = next(_whitened_decompositions(centred))
    predicted = plain.left_out(targets, 0.3)
    for i in (0, 17):
        kept = np.arange(30) != i
        own_x, own_y = x[kept].mean(axis=0), y[kept].mean(axis=0)
        inner = (x[kept] - own_x).T @ (x[kept] - own_x) + 0.3 * np.eye(D)
        weights = np.linalg.solve(inner, (x[kept] - own_x).T @ (y[kept] - own_y))
        expected = (x[i] - own_x) @ weights + own_y
        assert predicted[i] + y.mean(axis=0) == pytest.approx(expected, abs=1e-9)


def test_more_pairs_map_better(clear: Rows) -> None:
    theirs = np.asarray(clear @ np.random.default_rng(8).standard_normal((D, 24)), np.float32)
    curve = learning_curve(clear[:500], theirs[:500], seed=1)
    assert [k for k, _ in curve] == [10, 30, 100, 300], "a fifth of 500 is held out"
    values = [score.value for _, score in curve]
    assert values == sorted(values) and values[-1] > 0.99
    assert values[0] > curve[0][1].chance
    assert all(score.has_interval and score.n == 100 for _, score in curve)
    doubled = np.concatenate([clear[:20], clear[:20]]), np.concatenate([theirs[:20], theirs[:20]])
    ((k, score),) = learning_curve(*doubled)
    assert (k, score.n) == (10, 4), "copies of a pair are one pair"
    assert learning_curve(clear[:10], theirs[:10]) == ()


def test_a_hadamard_key_is_found_from_a_rough_estimate() -> None:
    rng = np.random.default_rng(2)
    size, d = 128, 96
    first, second = rng.choice([-1.0, 1.0], (2, size))
    inner = (hadamard_transform(np.eye(size)) * first)[rng.permutation(size)] * second[:, None]
    secret = hadamard_transform(inner.T).T[:, :d]
    rough = secret + 0.1 * rng.standard_normal(secret.shape)
    assert mean_cosine(rough.astype(np.float32), secret.astype(np.float32)) < 0.8
    found = hadamard_key(rough)
    assert found.is_permutation
    assert found.rotation == pytest.approx(secret, abs=1e-12)
    dense = rotation(size).astype(np.float64)[:, :d]
    other = hadamard_key(dense)
    assert not other.is_permutation and other.fit < 0.5


def test_refusals_name_what_is_wrong(clear: Rows) -> None:
    with pytest.raises(InvalidInputError, match="At least 10 pairs"):
        fit_paired(clear[:9], clear[:9])
    with pytest.raises(InvalidInputError, match="one row per pair"):
        fit_paired(clear[:20], clear[:19])
    with pytest.raises(InvalidInputError, match="method must be one of"):
        fit_paired(clear[:20], clear[:20], method="lasso")
    with pytest.raises(InvalidInputError, match="equal width"):
        fit_paired(clear[:20], clear[:20, :4], method="procrustes")
    with pytest.raises(InvalidInputError, match="finite"):
        fit_paired(clear[:20], np.full((20, D), np.nan, np.float32))
    with pytest.raises(InvalidInputError, match="at least 1,000 vectors"):
        fit_unpaired(clear[:999], clear)
    with pytest.raises(InvalidInputError, match="as many dimensions as known"):
        fit_unpaired(clear, clear[:, :4])
    with pytest.raises(InvalidInputError, match="pairs of equal shape"):
        fit_anchored(clear, clear, (clear[:20], clear[:19]))
    with pytest.raises(InvalidInputError, match="on both sides"):
        fit_anchored(clear, clear[:999], (clear[:20], clear[:20]))
    with pytest.raises(InvalidInputError, match=r"shape \(n, 16\)"):
        fit_unpaired(clear, clear @ rotation(D)).map.apply(clear[:, :4])


def test_hadamask_falls_exactly(known: Rows, clear: Rows) -> None:
    transform = pytest.importorskip("hadamask.transform")
    keys = pytest.importorskip("hadamask.keys")
    secret = transform.OrthogonalTransform(keys.MasterKey.generate(), D, processing_dim=2 * D)
    stored = secret.encode(clear)
    found = fit_unpaired(known, stored)
    assert found.confidence.is_right
    assert mean_cosine(found.map.apply(stored), clear) > 0.98
    key = hadamard_key(found.map.weights)
    assert key.is_permutation
    assert stored @ key.rotation == pytest.approx(clear, abs=1e-5)


def test_turboquant_vectors_falls_without_pairs(known: Rows, clear: Rows) -> None:
    private = pytest.importorskip("turboquant_vectors.private")
    stored = private.PrivateEncoder.from_seed(D, 2**80 + 5).rotate(clear)
    found = fit_unpaired(known, stored)
    assert found.confidence.is_right
    assert mean_cosine(found.map.apply(stored), clear) > 0.98


def test_privrag_guard_falls_with_pairs_and_without(known: Rows, clear: Rows) -> None:
    guard = pytest.importorskip("privrag.core.guard")
    secret = guard.PrivRAGGuard(key_seed=2**90 + 7)
    stored = np.asarray(secret.protect_batch(clear), dtype=np.float32)
    most = 1 / np.sqrt(1 + secret.noise_fraction**2)  # of the noise that it adds
    paired = fit_paired(clear[:100], stored[:100])
    assert mean_cosine(paired.map.apply(stored[200:]), clear[200:]) > most - 0.01
    found = fit_unpaired(known, stored)
    assert found.confidence.is_right
    assert mean_cosine(found.map.apply(stored), clear) > most - 0.03
