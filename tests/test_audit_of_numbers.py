"""Tests of released numbers and of sequences of draws: each fails what it is for, and that only."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.core.defences.metric_dp.audit.noise_law import law_tests, sequence_tests
from leakscope.core.defences.metric_dp.audit.pairs import (
    audit_views,
    bound_odds_of_vectors,
    grid_test,
)
from leakscope.core.defences.metric_dp.noise import draw_noise
from leakscope.core.defences.metric_dp.release import release

N, ETA = 96, 75.0
PAIRS = "any two draws: no direction again"
LAGS = "any lag: directions"
SIGNS = "any lag: directions of either sign"
NORMS = "any lag: norms"


def draws(m: int, seed: int = 0, n: int = N) -> np.ndarray:
    return draw_noise(m, n, ETA, rng=np.random.default_rng(seed), dtype=np.float64)


def inputs(m: int, seed: int = 1) -> np.ndarray:
    scales = np.geomspace(0.05, 1, m)[:, None]
    drawn = np.random.default_rng(seed).standard_normal((m, N)) * scales * np.sqrt(N) / ETA
    return drawn.astype(np.float32)


def test_p_values_of_independent_draws_are_spread_evenly() -> None:
    found = [sequence_tests(draws(300, seed)) for seed in range(80)]
    for name in (PAIRS, LAGS, SIGNS, NORMS):
        values = np.array([each[name] for each in found])
        assert values.min() > 1e-4, name
        assert (values < 0.2).mean() == pytest.approx(0.2, abs=0.15), name


def test_a_draw_that_comes_again_much_later_is_found_with_either_sign() -> None:
    for sign in (1, -1):
        noise = draws(1500)
        noise[1400] = sign * 0.7 * noise[3]
        assert sequence_tests(noise)[PAIRS] == 0


def test_a_block_that_comes_again_shows_at_its_lag() -> None:
    noise = draws(600)
    noise[250:290] = noise[:40]
    found = sequence_tests(noise)
    assert found[LAGS] < 1e-6 and found[SIGNS] < 1e-6


def test_repeats_with_random_signs_show_where_the_sum_does_not() -> None:
    noise = draws(1200)
    signs = np.where(np.arange(600) % 2, 1, -1)[:, None]
    fresh = draws(1200, 5)
    noise[1::2] = fresh[1::2] + 0.25 * signs * noise[::2]
    found = sequence_tests(noise)
    assert found[SIGNS] < 1e-4 and found[LAGS] > 1e-3


@pytest.mark.parametrize("lag", [1, 3, 70])
def test_norms_that_follow_earlier_ones_are_found(lag: int) -> None:
    noise, norms = draws(1500), np.random.default_rng(2).standard_normal(1500)
    for i in range(lag, 1500):
        norms[i] = 0.25 * norms[i - lag] + np.sqrt(1 - 0.25**2) * norms[i]
    noise *= (1 + 0.05 * norms[:, None]) / np.linalg.norm(noise, axis=1, keepdims=True)
    found = sequence_tests(noise)
    assert found[NORMS] < 1e-4 and min(found[PAIRS], found[LAGS], found[SIGNS]) > 1e-3


def test_a_tail_that_is_cut_off_is_found() -> None:
    noise = draws(3000)
    norms = np.linalg.norm(noise, axis=1, keepdims=True)
    name = "norm: no tail cut off"
    places = np.random.default_rng(6).standard_normal((3000, N))
    assert law_tests(noise[None], places, ETA)[name] > 1e-3
    longest = noise * np.minimum(1, np.quantile(norms, 0.99) / norms)
    shortest = noise * np.maximum(1, np.quantile(norms, 0.01) / norms)
    for cut in (longest, shortest):
        assert law_tests(cut[None], places, ETA)[name] < 1e-6


def test_a_fixed_grid_passes_and_all_others_fail() -> None:
    vectors, noise = inputs(300), draws(300)
    fixed = release(vectors, noise, 1 / ETA).astype(np.float64)
    assert grid_test(fixed) > 1e-3
    assert grid_test(vectors + noise) == 0, "float64 has no step that all numbers share"
    floating = (vectors + noise.astype(np.float32)).astype(np.float64)
    assert grid_test(floating) == 0
    by_input = np.concatenate(
        [
            release(part, noise[:150], scale / ETA)
            for part, scale in ((vectors[:150], 1.0), (vectors[150:], 4.0))
        ]
    ).astype(np.float64)
    assert grid_test(by_input[np.random.default_rng(0).permutation(300)]) < 1e-6
    assert grid_test(np.zeros((300, N))) == 0, "no noise at all"
    outlier = fixed.copy()
    outlier[-1, 0] += 2.0**-25
    assert grid_test(outlier) == 0


@pytest.mark.parametrize("fault", ["none", "float32 sum", "float16 noise", "none half the time"])
def test_the_odds_of_numbers_are_bounded(fault: str) -> None:
    x = inputs(1)[0] * 20
    way = np.random.default_rng(3).standard_normal(N)
    other = (x + way / np.linalg.norm(way) / ETA).astype(np.float32)
    rng = np.random.default_rng(4)

    def run(vector: np.ndarray, n: int) -> np.ndarray:
        noise = draw_noise(n, N, ETA, rng=rng, dtype=np.float64)
        rows = np.repeat(vector[None], n, axis=0)
        if fault == "float32 sum":
            return (rows + noise.astype(np.float32)).astype(np.float64)
        if fault == "float16 noise":
            noise = noise.astype(np.float16).astype(np.float64)
        if fault == "none half the time":
            noise *= rng.random((n, 1)) < 0.5
        return release(rows, noise, 1 / ETA).astype(np.float64)

    found = bound_odds_of_vectors(
        lambda n: run(x, n),
        lambda n: run(other, n),
        x.astype(np.float64),
        other.astype(np.float64),
        ETA,
        n_runs=400,
    )
    for bound in found:
        assert bound.promised == pytest.approx(1, abs=1e-3) and bound.n_runs == 400
        assert bound.is_refuted == (fault != "none"), bound
        assert (bound.p_value < 1e-3) == (fault != "none")


def test_of_several_views_the_one_that_tells_most_is_bounded_on_other_runs() -> None:
    rng = np.random.default_rng(0)
    blind = (rng.integers(50, size=400), rng.integers(50, size=400))
    telling = (np.ones(400, int), np.zeros(400, int))
    found = audit_views({"blind": blind, "telling": telling}, 1.0, alpha=0.01)
    assert found.view == "telling" and found.is_refuted
    # The best set of the first half says nothing of the second.
    first_only = (np.r_[np.ones(200, int), np.zeros(200, int)], np.zeros(400, int))
    assert not audit_views({"": first_only}, 0.0).is_refuted
