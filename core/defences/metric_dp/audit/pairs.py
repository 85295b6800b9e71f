"""Does a mechanism keep its promise? A statistical test of d_χ-privacy for one token.

Qu et al. (2021), Eq. 2: for tokens x, x' and every set Y of outputs,

    P[M(x) ∈ Y] ≤ exp(η·d(x, x'))·P[M(x') ∈ Y].

The audit runs the mechanism n times on x and on x'. On the first half of the runs it chooses the
set Y on which the two differ most; on the second half it bounds log P[M(x) ∈ Y]/P[M(x') ∈ Y] from
below, with Clopper–Pearson limits. A lower bound above η·d refutes the promise. A bound below it
does not prove the promise: it says what was tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from core.errors import InvalidInputError

__all__ = ["AuditResult", "audit_pair", "half_spaces"]

Runs = NDArray[np.int64]


@dataclass(frozen=True)
class AuditResult:
    """What an audit of one pair found.

    Attributes
    ----------
    lower_bound : float
        Lower 1 − `alpha` confidence bound of the log-ratio on the chosen set.
    estimate : float
        The log-ratio itself, as measured on the second half; NaN where x never gave the set.
    promised : float
        η·d(x, x').
    """

    lower_bound: float
    estimate: float
    promised: float
    n_runs: int
    alpha: float
    p_value: float = 1.0
    """The least alpha, in [1e-30, 1], at which the runs refute the promise."""

    @property
    def is_refuted(self) -> bool:
        """Whether the runs contradict the promise."""
        return self.lower_bound > self.promised


def audit_pair(
    run_x: Callable[[int], Runs],
    run_other: Callable[[int], Runs],
    promised: float,
    *,
    n_runs: int = 20_000,
    alpha: float = 0.01,
) -> AuditResult:
    """Audit a mechanism of discrete outputs on one ordered pair of inputs.

    Parameters
    ----------
    run_x, run_other : callable
        Given m, return m independent outputs for x, for x', as whole numbers.
    promised : float
        η·d(x, x').
    n_runs : int
        Runs of each, half of them to choose the set.
    alpha : float
        Chance that a mechanism which keeps its promise is refuted, for this pair.

    Raises
    ------
    InvalidInputError
        Fewer than 100 runs.
    """
    if n_runs < 100:
        raise InvalidInputError(f"n_runs must be at least 100, got {n_runs}.")
    half = n_runs // 2
    chosen = _most_telling(run_x(half), run_other(half))
    hits, other_hits = np.isin(run_x(half), chosen).sum(), np.isin(run_other(half), chosen).sum()
    bound = partial(_lower_bound, int(hits), int(other_hits), half)
    estimate = float(np.log(hits / max(other_hits, 0.5))) if hits else float("nan")
    return AuditResult(
        bound(alpha), estimate, promised, n_runs, alpha, _least_alpha(bound, promised)
    )


def _lower_bound(hits: int, other_hits: int, half: int, alpha: float) -> float:
    """Bound the log-ratio from below by two Clopper-Pearson limits of alpha/2 each."""
    low = beta.ppf(alpha / 2, hits, half - hits + 1) if hits else 0.0
    high = beta.isf(alpha / 2, other_hits + 1, half - other_hits) if other_hits < half else 1.0
    with np.errstate(divide="ignore"):
        return float(np.log(low / high))


def _least_alpha(bound: Callable[[float], float], promised: float) -> float:
    """Bisect for the alpha at which the bound meets the promise: the bound rises with alpha."""
    low, high = -30.0, 0.0
    if bound(1.0) <= promised:
        return 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if bound(10**middle) > promised else (middle, high)
    return float(10**high)


def _most_telling(runs: Runs, other: Runs) -> Runs:
    """Return the outputs, by descending ratio, that make the clearest set."""
    outputs = np.unique(np.concatenate([runs, other]))
    seen = np.array([np.sum(runs == y) for y in outputs], dtype=float)
    seen_other = np.array([np.sum(other == y) for y in outputs], dtype=float)
    order = np.argsort(-(seen + 0.5) / (seen_other + 0.5), kind="stable")
    totals, others = np.cumsum(seen[order]), np.cumsum(seen_other[order])
    # A cautious log-ratio of each nested set: one standard error towards zero.
    cautious = np.log((totals + 0.5) / (others + 0.5)) - np.sqrt(
        1 / (totals + 0.5) + 1 / (others + 0.5)
    )
    return outputs[order[: int(np.argmax(cautious)) + 1]]


def half_spaces(
    vectors: NDArray[np.float32], x: NDArray[np.float32], other: NDArray[np.float32], n: int = 64
) -> Runs:
    """Turn outputs that are vectors into whole numbers: their place along x − x', in n strips.

    Half-spaces across the line through x and x' are where the noise of the two differs most;
    d_χ-privacy must hold for any such function of the output (post-processing).
    """
    direction = np.asarray(x, np.float64) - other
    length = float(np.linalg.norm(direction))
    along = (np.asarray(vectors, np.float64) - other) @ direction / length
    edges = np.linspace(-2 * length, 3 * length, n - 1)
    return np.digitize(along, edges).astype(np.int64)
