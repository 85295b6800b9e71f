"""Tests of released numbers: the grid that they lie on, and the odds of two inputs.

The proof of d_χ-privacy is about real numbers. What leaves the machine is floating point, and its
rounding can reveal the input whatever the law of the noise (Mironov 2012,
doi:10.1145/2382196.2382264). So the outputs are tested as they are released: that all lie on one
grid, and that no event seen in them has odds above exp(η·d).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from leakscope.core.defences.metric_dp.audit.pairs import AuditResult, Runs, audit_views

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
    """Test that all outputs are multiples of one step, the same for every input.

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
    """Return the greatest power of two that divides every number."""
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
    """Bound the odds of two inputs from the vectors that a mechanism releases, in both directions.

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
    """Return named statistics of the outputs for x and for x', on which to choose an event.

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
    """Count the coordinates that no noise of a floating-point precision can reach."""
    split = noise * (2.0 ** (53 - bits) + 1)  # Veltkamp: rounds to the leading bits
    nearest = split - (split - noise)
    return np.count_nonzero(np.abs(nearest - noise) > spacings / 2, axis=1)
