"""The audit in one run: a bound of ε that mechanisms of known ε do not pass."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, norm

from leakscope.core.attacks.membership.memorisation.one_run import (
    audit,
    gaussian_delta,
    gaussian_lower_bound,
    guess,
    lower_bound,
    p_value,
)
from leakscope.core.errors import InvalidInputError


def respond(
    rng: np.random.Generator, n: int, epsilon: float, delta: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Toss coins and answer each truly with probability e^ε/(1+e^ε), with δ for certain."""
    is_in = rng.random(n) < 0.5
    is_true = rng.random(n) < math.exp(epsilon) / (1 + math.exp(epsilon))
    is_true |= rng.random(n) < delta
    told = np.where(is_true, is_in, ~is_in)
    return np.where(told, 1.0, -1.0) + 1e-6 * rng.random(n), is_in


def test_the_bound_is_the_inversion_of_the_binomial() -> None:
    for n_right, n in ((10, 10), (70, 100), (95, 100), (480, 500)):
        found = lower_bound(n_right, n, n)
        share = 1 / (1 + math.exp(-found))
        assert binom.sf(n_right - 1, n, share) == pytest.approx(0.05, abs=1e-6)
    # All of 5 right: share^5 = 0.05.
    by_hand = 0.05**0.2
    assert lower_bound(5, 5, 5) == pytest.approx(math.log(by_hand / (1 - by_hand)), abs=1e-6)
    assert lower_bound(50, 100, 100) == 0.0


def test_theorem_5_2_by_hand() -> None:
    # r = m = v = 2, ε = 0: P[W ≥ 2] = 1/4; i = 1 adds P[W = 1] = 1/2, i = 2 adds (3/4)/2.
    assert p_value(0.0, 2, 2, 2, 0.01) == pytest.approx(0.25 + 2 * 2 * 0.01 * 0.5)
    # r = m = v = 1: all that δ gives away is one guess.
    assert p_value(0.0, 1, 1, 1, 0.1) == pytest.approx(0.5 + 2 * 0.1 * 0.5)
    assert p_value(0.0, 1, 2, 2, 0.0) == pytest.approx(0.75)
    assert p_value(3.0, 0, 5, 5, 0.1) == 1.0


def test_theorem_5_2_is_the_worst_law_of_what_delta_gives_away() -> None:
    m, r, v, epsilon, delta = 40, 20, 17, 0.7, 2e-3
    share = 1 / (1 + math.exp(-epsilon))
    worst = 0.0
    for i in range(1, m + 1):  # F = i with probability 2mδ/i, else 0
        chance = 2 * m * delta / i
        passed = chance * binom.sf(v - i - 1, r, share) + (1 - chance) * binom.sf(v - 1, r, share)
        worst = max(worst, float(passed))
    assert p_value(epsilon, v, r, m, delta) == pytest.approx(worst)


def test_one_guess_refutes_the_gaussian_mechanisms_that_the_best_test_does_not_reach() -> None:
    # The best test of one canary is right with probability Φ(μ/2): 0.9 at μ = 2 Φ⁻¹(0.9).
    mu = 2 * norm.ppf(0.9)
    found = gaussian_lower_bound(1, 1, 1, 1e-5, alpha=0.9)
    assert gaussian_delta(found, mu) == pytest.approx(1e-5, rel=1e-4)
    # Corollary 2.13 at ε = 0 is the total variation distance, 2 Φ(μ/2) − 1.
    assert gaussian_delta(0.0, mu) == pytest.approx(2 * 0.9 - 1)


def test_a_gaussian_mechanism_shows_more_of_its_epsilon_and_no_more_than_it() -> None:
    n, n_guesses, mu = 5_000, 200, 0.925
    epsilon = brentq(lambda e: gaussian_delta(e, mu) - 1e-5, 0, 20)
    rng = np.random.default_rng(5)
    found, general = [], []
    for _ in range(100):
        is_in = rng.random(n) < 0.5
        made = audit(mu * is_in + rng.standard_normal(n), is_in, n_guesses, delta=1e-5)
        found.append(gaussian_lower_bound(made.n_right, n_guesses, n, 1e-5))
        general.append(made.epsilon)
    assert epsilon == pytest.approx(4.0, abs=0.02)
    assert np.mean(np.array(found) <= epsilon) >= 0.95
    assert np.mean(found) >= 0.6 * epsilon > 0.5 * epsilon >= np.mean(general)
    assert gaussian_lower_bound(100, 200, n, 1e-5) == 0.0, "guesses at random"
    with pytest.raises(InvalidInputError, match="delta and alpha"):
        gaussian_lower_bound(1, 1, 1, 0.0)


def test_delta_lowers_the_bound_and_nothing_stands_below_it() -> None:
    plain, given = lower_bound(195, 200, 1000), lower_bound(195, 200, 1000, delta=1e-5)
    assert 0 < given < plain
    assert all(p_value(e, 195, 200, 1000, 1e-5) <= 0.05 for e in np.arange(0, given, 0.1))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_a_mechanism_of_known_epsilon_is_passed_as_seldom_as_promised(epsilon: float) -> None:
    rng = np.random.default_rng(1)
    found = [audit(*respond(rng, 500, epsilon), 500).epsilon for _ in range(400)]
    assert np.mean(np.array(found[:40]) <= epsilon) >= 0.95
    assert np.mean(np.array(found) > epsilon) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
    if epsilon == 4.0:
        assert min(found) >= 1.0, "so many guesses show more than that"


def test_with_delta_it_is_passed_as_seldom(n: int = 300) -> None:
    rng = np.random.default_rng(2)
    found = [audit(*respond(rng, n, 1.0, 0.02), n, delta=0.02).epsilon for _ in range(40)]
    assert np.mean(np.array(found) <= 1.0) >= 0.95


def test_coins_that_nobody_saw_show_nothing() -> None:
    rng = np.random.default_rng(3)
    found = [
        audit(respond(rng, 200, 8.0)[0], rng.random(200) < 0.5, 100).epsilon for _ in range(100)
    ]
    assert np.mean(np.array(found) > 0) <= 0.12


def test_the_surest_are_guessed_and_the_rest_is_left() -> None:
    scores = np.array([5.0, -4.0, 0.1, 3.0, -0.2])
    assert guess(scores, 3).tolist() == [1, -1, 0, 1, 0]
    found = audit(scores, np.array([True, False, False, False, True]), 3)
    assert (found.n_right, found.n_guesses, found.n_canaries) == (2, 3, 5)
    assert found.most == pytest.approx(lower_bound(3, 3, 5))


@pytest.mark.parametrize("numbers", [(3, 2, 5), (-1, 2, 5), (1, 6, 5), (0, 0, 0)])
def test_numbers_that_do_not_fit_are_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidInputError, match="0 ≤ right ≤ guesses ≤ canaries"):
        lower_bound(*numbers)
    with pytest.raises(InvalidInputError, match="n_guesses must lie in"):
        guess(np.zeros(3), 4)
