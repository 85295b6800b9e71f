"""Statistical test of a privacy guarantee on one pair of inputs.

Qu et al. (2021), Eq. 2: for tokens x, x' and every set Y of outputs,

    P[M(x) ∈ Y] ≤ exp(η·d(x, x'))·P[M(x') ∈ Y].

The audit runs the mechanism n times on x and on x'. On the first half of the runs it chooses the
set Y on which the two differ most; on the second half it bounds log P[M(x) ∈ Y]/P[M(x') ∈ Y] from
below, with Clopper–Pearson limits. A lower bound above η·d refutes the guarantee. A bound below it
does not prove the guarantee: it shows only what was tried. Vector outputs are mapped to whole
numbers by several statistics; the first half chooses among these too.

The proof of d_χ-privacy is about real numbers. What leaves the machine is floating point, and its
rounding can reveal the input whatever the law of the noise (Mironov 2012,
doi:10.1145/2382196.2382264). So the outputs are tested as they are released: that all lie on one
grid, and that no event seen in them has odds above exp(η·d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import beta

from leakscope.core.errors import InvalidInputError

Runs = NDArray[np.int64]


@dataclass(frozen=True)
class AuditResult:
    """Result of auditing one ordered pair of inputs.

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
    """The least alpha, in [1e-30, 1], at which the runs refute the guarantee."""
    view: str = ""
    """The way of looking at outputs in which the set was found."""

    @property
    def is_refuted(self) -> bool:
        """Whether the runs contradict the guarantee."""
        return self.lower_bound > self.promised


def audit_pair(
    run_x: Callable[[int], Runs],
    run_other: Callable[[int], Runs],
    promised: float,
    *,
    n_runs: int = 20_000,
    alpha: float = 0.01,
) -> AuditResult:
    """Run a mechanism with discrete outputs on two inputs and audit the odds between them.

    Parameters
    ----------
    run_x, run_other : callable
        Given m, return m independent outputs for x, for x', as whole numbers.
    promised : float
        η·d(x, x').
    n_runs : int
        Runs of each, half of them to choose the set.
    alpha : float
        Chance that a mechanism which keeps its guarantee is refuted, for this pair.

    Raises
    ------
    InvalidInputError
        Fewer than 100 runs.
    """
    if n_runs < 100:
        raise InvalidInputError(f"n_runs must be at least 100, got {n_runs}.")
    half = n_runs // 2
    outcomes, others = (np.concatenate([run(half), run(half)]) for run in (run_x, run_other))
    return audit_views({"": (outcomes, others)}, promised, alpha=alpha)


def audit_views(
    views: Mapping[str, tuple[Runs, Runs]],
    promised: float,
    *,
    alpha: float = 0.01,
    caution: float = 1.0,
) -> AuditResult:
    """Audit the odds between two inputs by several statistics of their outputs.

    Parameters
    ----------
    views : dict of tuple
        For each way of looking, what the same n runs gave for x and for x', int64 arrays (n,).
        A view's value for a run may depend on the first half of the runs, never on the second.
    promised : float
        η·d(x, x').
    alpha : float
        Chance that a mechanism which keeps its guarantee is refuted, for this pair.
    caution : float
        Standard errors that are taken off a set's log-ratio when sets are compared.
    """
    n_runs = min(len(runs) for pair in views.values() for runs in pair)
    half = n_runs // 2
    chosen = {
        name: _most_different_set(x[:half], other[:half], caution)
        for name, (x, other) in views.items()
    }
    view = max(chosen, key=lambda name: chosen[name][1])
    outputs, _ = chosen[view]
    hits, other_hits = (int(np.isin(runs[half:], outputs).sum()) for runs in views[view])
    bound = partial(_lower_bound, hits, other_hits, n_runs - half)
    estimate = float(np.log(hits / max(other_hits, 0.5))) if hits else float("nan")
    return AuditResult(
        bound(alpha), estimate, promised, n_runs, alpha, _least_alpha(bound, promised), view
    )


def _lower_bound(hits: int, other_hits: int, half: int, alpha: float) -> float:
    """Return a lower confidence bound of the log-ratio of two hit rates (Clopper–Pearson)."""
    low = beta.ppf(alpha / 2, hits, half - hits + 1) if hits else 0.0
    high = beta.isf(alpha / 2, other_hits + 1, half - other_hits) if other_hits < half else 1.0
    with np.errstate(divide="ignore"):
        return float(np.log(low / high))


def _least_alpha(bound: Callable[[float], float], promised: float) -> float:
    """Return the least alpha at which the bound exceeds the guarantee, by bisection; else 1."""
    low, high = -30.0, 0.0
    if bound(1.0) <= promised:
        return 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if bound(10**middle) > promised else (middle, high)
    return float(10**high)


def _most_different_set(runs: Runs, other: Runs, caution: float) -> tuple[Runs, float]:
    """Return the outputs with the greatest cautious log-ratio of runs to other, and that ratio."""
    outputs = np.unique(np.concatenate([runs, other]))
    seen = np.array([np.sum(runs == y) for y in outputs], dtype=float)
    seen_other = np.array([np.sum(other == y) for y in outputs], dtype=float)
    order = np.argsort(-(seen + 0.5) / (seen_other + 0.5), kind="stable")
    totals, others = np.cumsum(seen[order]), np.cumsum(seen_other[order])
    spread = np.sqrt(1 / (totals + 0.5) + 1 / (others + 0.5))
    cautious = np.log((totals + 0.5) / (others + 0.5)) - caution * spread
    best = int(np.argmax(cautious))
    return outputs[order[: best + 1]], float(cautious[best])


def half_spaces(
    vectors: NDArray[np.float32], x: NDArray[np.float32], other: NDArray[np.float32], n: int = 64
) -> Runs:
    """Return the strip, 0 to n − 1, in which each output vector lies along the line x' to x.

    Half-spaces across the line through x and x' are where the noise of the two differs most;
    d_χ-privacy must hold for any such function of the output (post-processing).
    """
    direction = np.asarray(x, np.float64) - other
    length = float(np.linalg.norm(direction))
    along = (np.asarray(vectors, np.float64) - other) @ direction / length
    edges = np.linspace(-2 * length, 3 * length, n - 1)
    return np.digitize(along, edges).astype(np.int64)


Outputs = NDArray[np.float64]
"""Released vectors, (m, n)."""

_PRECISIONS = {"float32": 24, "float16": 11}
"""Significant bits of the formats that noise may have been drawn in; bfloat16 has fewer than
float16 and shows there."""

_MOST_ROWS = 400
"""Outputs whose numbers are tested for a common step."""

_CAUTION = 3.0
"""Standard errors that are subtracted from a set's log-ratio, because many sets are tried."""

_STRIPS = (0.002, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.998)
"""Quantiles at which distances are cut: finer towards the tails."""


def grid_test(outputs: Outputs) -> float:
    """Return the p-value that all output numbers are multiples of one step, 0 if some are not.

    The first half of the rows gives the step, as the greatest power of two that divides all their
    numbers. In the other half every number must be a multiple of it, and an odd one half of the
    time (binomial test): a step that follows the input or the output is odd less often.
    """
    outputs = outputs[:: max(1, len(outputs) // _MOST_ROWS)]
    half = len(outputs) // 2
    known, rest = outputs[:half], outputs[half:]
    if not known.any():
        return 0.0
    step = _common_step(known)
    multiples = rest / step  # exact: a power of two
    if (multiples != np.rint(multiples)).any():
        return 0.0
    n_odd = int(np.count_nonzero(np.mod(multiples, 2)))
    return float(stats.binomtest(n_odd, multiples.size).pvalue)


def _common_step(values: Outputs) -> float:
    """Return the greatest power of two that divides every number other than 0."""
    mantissas, exponents = np.frexp(values[values != 0])
    whole = np.abs(mantissas * 2.0**53).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(np.float64), exponents - 53).min())


def bound_odds_of_vectors(
    run_x: Callable[[int], Outputs],
    run_other: Callable[[int], Outputs],
    x: NDArray[np.float64],
    other: NDArray[np.float64],
    eta: float,
    *,
    n_runs: int,
    alpha: float = 0.01,
) -> tuple[AuditResult, AuditResult]:
    """Run a mechanism that releases vectors on two inputs; audit their odds, both ways.

    Parameters
    ----------
    run_x, run_other : callable
        Given m, return m independent outputs for x, for x', (m, n).
    x, other : float64 array (n,)
        The inputs.
    n_runs : int
        Runs of each; the first half chooses the event, the other half bounds its odds.
    alpha : float
        Chance that a mechanism which keeps its guarantee is refuted, for each of the two.

    Returns
    -------
    tuple of AuditResult
        Of P[M(x) ∈ Y]/P[M(x') ∈ Y], and of the inverse.
    """
    outputs, others = run_x(n_runs), run_other(n_runs)
    views = _output_views(outputs, others, x, other)
    promised = eta * float(np.linalg.norm(x - other))
    swapped = {name: (second, first) for name, (first, second) in views.items()}
    return (
        audit_views(views, promised, alpha=alpha, caution=_CAUTION),
        audit_views(swapped, promised, alpha=alpha, caution=_CAUTION),
    )


def _output_views(
    outputs: Outputs, others: Outputs, x: NDArray[np.float64], other: NDArray[np.float64]
) -> dict[str, tuple[Runs, Runs]]:
    """Compute discrete statistics of the outputs for x and for x'; return both, by name.

    Distances are the density's own. The others ask, for either input, in how many coordinates no
    noise of a floating-point format leads to the output: for the true input in none.
    """
    half = len(outputs) // 2
    known = np.concatenate([outputs[:half], others[:half]])
    step = _common_step(known) if known.any() else 0.0
    spacings = [np.maximum(np.spacing(np.abs(y).astype("f4")), step) for y in (outputs, others)]
    found: dict[str, tuple[Runs, Runs]] = {}
    for name, candidate in (("x", x), ("x'", other)):
        for title, bits in _PRECISIONS.items():
            found[f"coordinates that {title} noise on {name} cannot give"] = (
                _count_unreachable(outputs - candidate, bits, spacings[0]),
                _count_unreachable(others - candidate, bits, spacings[1]),
            )
    near = [[np.linalg.norm(y - v, axis=1) for v in (x, other)] for y in (outputs, others)]
    distances = {
        "distance from x": (near[0][0], near[1][0]),
        "distance from x'": (near[0][1], near[1][1]),
        "distance from x' less that from x": (near[0][1] - near[0][0], near[1][1] - near[1][0]),
    }
    for name, (first, second) in distances.items():
        edges = np.quantile(np.concatenate([first[:half], second[:half]]), _STRIPS)
        found[name] = (np.digitize(first, edges), np.digitize(second, edges))
    return found


def _count_unreachable(noise: Outputs, bits: int, spacings: NDArray[Any]) -> Runs:
    """Count in each output the coordinates that noise of `bits` bits cannot reach."""
    split = noise * (2.0 ** (53 - bits) + 1)  # Veltkamp: rounds to the leading bits
    nearest = split - (split - noise)
    return np.count_nonzero(np.abs(nearest - noise) > spacings / 2, axis=1)
