"""One-run audit of differential privacy (Steinke et al. 2023): an empirical lower bound of ε.

Each of m canaries is included with probability ½. From the model, the auditor guesses for r of them
whether they were; under (ε, δ)-differential privacy many right guesses are unlikely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, ndtr, ndtri

from leakscope.core.errors import InvalidInputError

ALPHA = 0.05
_STEP, _MOST = 0.05, 40.0
_MOST_MU = 20.0


@dataclass(frozen=True, kw_only=True)
class OneRunAudit:
    """The result of a one-run audit: the lower bound of ε and the counts behind it.

    Attributes
    ----------
    epsilon : float
        The lower bound of ε at level 1 − alpha.
    most : float
        The bound if all guesses were right.
    n_canaries, n_guesses, n_right : int
        m, r and v.
    """

    epsilon: float
    most: float
    n_canaries: int
    n_guesses: int
    n_right: int
    delta: float
    alpha: float


def p_value(epsilon: float, n_right: int, n_guesses: int, n_canaries: int, delta: float) -> float:
    """Return an upper bound on the probability of this many right guesses under (ε, δ)-DP.

    Implements Steinke, Nasr & Jagielski (2023), Theorem 5.2: with W ~ Binomial(r, e^ε/(1+e^ε)),
    P[right ≥ v] ≤ β + 2mδ·max_{1≤i≤m} P[v > W ≥ v−i] / i, β = P[W ≥ v].
    Why: where δ = 0 a guess is right with probability e^ε/(1+e^ε) at most, whatever the others
    are, so the number of right ones is no larger in law than W. Otherwise it is no larger than
    W + F, F the number of guesses that δ reveals, with E[F] ≤ 2mδ. The worst distribution of F puts
    all it has on one i: P[F = i] = 2mδ/i, which adds P[v > W ≥ v−i] each time.
    Differs from the paper: nothing; P[v > W ≥ 0] is the most that any i > v can add, so that i
    ends at v.

    Examples
    --------
    >>> round(p_value(0.0, 10, 10, 10, 0.0) * 2**10, 6)
    1.0
    """
    _check_counts(n_right, n_guesses, n_canaries)
    share = 1.0 / (1.0 + math.exp(-epsilon))
    if n_right == 0:
        return 1.0
    beta = float(bdtrc(n_right - 1, n_guesses, share))
    if delta == 0:
        return beta
    i = np.arange(1, n_right + 1)
    below = np.where(n_right - i > 0, bdtr(np.maximum(n_right - i - 1, 0), n_guesses, share), 0.0)
    within = bdtr(n_right - 1, n_guesses, share) - below
    return min(1.0, beta + 2 * n_canaries * delta * float(np.max(within / i)))


def lower_bound(
    n_right: int, n_guesses: int, n_canaries: int, delta: float = 0.0, alpha: float = ALPHA
) -> float:
    """Return the lower bound of ε, at level 1 − α, that the number of right guesses implies.

    Implements Steinke, Nasr & Jagielski (2023), §5: for pure differential privacy the largest ε
    with P[Binomial(r, e^ε/(1+e^ε)) ≥ v] ≤ α (METHODS §8), else by Theorem 5.2.
    The largest ε up to which all values are rejected; 0 if none is. Differs from the paper: with δ
    the p-value need not grow with ε; ours ends at the first ε that is not rejected, so that the
    level holds for every ε. At most 40.

    Raises
    ------
    InvalidInputError
        Numbers that do not fit together, or δ or α outside (0, 1).
    """
    _check_counts(n_right, n_guesses, n_canaries)
    if not (0 <= delta < 1 and 0 < alpha < 1):
        raise InvalidInputError(
            f"delta must lie in [0, 1) and alpha in (0, 1), got {delta}, {alpha}."
        )

    def is_refuted(epsilon: float) -> bool:
        """Return whether this many right guesses are too unlikely under this ε."""
        return p_value(epsilon, n_right, n_guesses, n_canaries, delta) <= alpha

    if not is_refuted(0.0):
        return 0.0
    low = 0.0
    while low < _MOST and is_refuted(low + _STEP):
        low += _STEP
    high = low + _STEP
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return min(low, _MOST)


def gaussian_lower_bound(
    n_right: int, n_guesses: int, n_canaries: int, delta: float, alpha: float = ALPHA
) -> float:
    """Return the lower bound of ε from right guesses if training is a Gaussian mechanism.

    Implements Mahloujifar, Melis & Chaudhuri (2025), the audit of f-differential privacy in one
    run, for f = G_μ of Dong, Roth & Su (2022): the largest μ that the guesses refute, as the ε at
    which a μ-Gaussian mechanism has this δ. Private training is close to such a mechanism: a
    composition of many subsampled Gaussian steps tends to one. `lower_bound` holds for every
    mechanism, and is smaller: its worst case is randomised response.

    Parameters
    ----------
    n_right, n_guesses, n_canaries : int
        v, r and m.
    delta : float
        In (0, 1).

    Raises
    ------
    InvalidInputError
        Numbers that do not fit together, or δ or α outside (0, 1).
    """
    _check_counts(n_right, n_guesses, n_canaries)
    if not (0 < delta < 1 and 0 < alpha < 1):
        raise InvalidInputError(f"delta and alpha must lie in (0, 1), got {delta}, {alpha}.")
    low, high = 0.0, _MOST_MU
    for _ in range(40):
        mu = (low + high) / 2
        is_refuted = _refutes_gaussian(mu, n_right, n_guesses, n_canaries, alpha)
        low, high = (mu, high) if is_refuted else (low, mu)
    if low == 0.0 or gaussian_delta(0.0, low) <= delta:
        return 0.0
    return float(brentq(lambda epsilon: gaussian_delta(epsilon, low) - delta, 0.0, 1_000.0))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return δ(ε) of a μ-Gaussian mechanism (Dong, Roth & Su 2022, Corollary 2.13).

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269
    """
    above, below = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    return float(ndtr(above) - math.exp(min(epsilon + math.log(max(ndtr(below), 1e-300)), 0.0)))


def _refutes_gaussian(mu: float, n_right: int, n_guesses: int, n_canaries: int, a: float) -> bool:
    """Return whether this many right guesses have a probability below a under μ-Gaussian DP.

    Let right_i and wrong_i be the expected shares of canaries that are guessed right and wrong in
    the event of at least i right guesses. Changing one canary turns a right guess into a wrong one,
    so that wrong_i ≥ Φ(Φ⁻¹(right_{i+1}) − μ), and an event of exactly i right guesses has i of them
    to r − i wrong ones. From probability a at i = v, the smallest shares at i = 0 would exceed the
    share r/m of canaries that are guessed at all.
    """
    right, wrong = a * n_right / n_canaries, a * (n_guesses - n_right) / n_canaries
    for i in range(n_right - 1, -1, -1):
        grown = max(wrong, float(ndtr(ndtri(min(right, 1.0)) - mu)))
        if grown == wrong:
            break
        right += i / (n_guesses - i) * (grown - wrong)
        wrong = grown
    return right + wrong > n_guesses / n_canaries


def guess(scores: NDArray[np.float64], n_guesses: int) -> NDArray[np.int64]:
    """Guess inclusion from scores: +1 for the highest, −1 for the lowest, 0 for no guess.

    Implements Steinke, Nasr & Jagielski (2023), Algorithm 1: k₊ = ⌈r/2⌉, k₋ = ⌊r/2⌋; 0 elsewhere.

    Examples
    --------
    >>> guess(np.array([0.1, 3.0, -2.0, 1.0]), 2).tolist()
    [0, 1, -1, 0]
    """
    if not 1 <= n_guesses <= len(scores):
        raise InvalidInputError(
            f"n_guesses must lie in [1, {len(scores)}], the number of canaries, got {n_guesses}."
        )
    order = np.argsort(scores, kind="stable")
    guesses = np.zeros(len(scores), dtype=np.int64)
    n_out = n_guesses // 2
    guesses[order[:n_out]] = -1
    guesses[order[len(order) - (n_guesses - n_out) :]] = 1
    return guesses


def audit(
    scores: NDArray[np.float64],
    is_in: NDArray[np.bool_],
    n_guesses: int,
    *,
    delta: float = 0.0,
    alpha: float = ALPHA,
) -> OneRunAudit:
    """Guess which canaries were included from their scores, and bound ε from below.

    How many are guessed is fixed before scores are seen: choosing it by the outcome would break
    the level.
    """
    if len(scores) != len(is_in):
        raise InvalidInputError(f"{len(scores)} scores for {len(is_in)} canaries.")
    guesses = guess(scores, n_guesses)
    n_right = int(np.sum(guesses * np.where(is_in, 1, -1) == 1))
    m = len(scores)
    return OneRunAudit(
        epsilon=lower_bound(n_right, n_guesses, m, delta, alpha),
        most=lower_bound(n_guesses, n_guesses, m, delta, alpha),
        n_canaries=m,
        n_guesses=n_guesses,
        n_right=n_right,
        delta=delta,
        alpha=alpha,
    )


def _check_counts(n_right: int, n_guesses: int, n_canaries: int) -> None:
    """Raise InvalidInputError unless 0 ≤ right ≤ guesses ≤ canaries."""
    if not 0 <= n_right <= n_guesses <= n_canaries or n_canaries < 1:
        raise InvalidInputError(
            "Right guesses, guesses and canaries must be 0 ≤ right ≤ guesses ≤ canaries, got "
            f"{n_right}, {n_guesses}, {n_canaries}."
        )
