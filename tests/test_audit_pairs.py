"""An audit of one pair errs no more often than it says: it bounds on runs that chose no set."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.core.defences.metric_dp.audit.pairs import audit_pair

N_OUTPUTS = 2_000
"""So many that any half of the runs has a set on which two equal sources seem to differ."""


@pytest.mark.slow
def test_two_sources_that_are_the_same_are_not_refuted() -> None:
    n_audits, n_refuted = 60, 0
    for seed in range(n_audits):
        rng = np.random.default_rng(seed)

        def draw(n: int, rng: np.random.Generator = rng) -> np.ndarray:
            return rng.integers(N_OUTPUTS, size=n)

        n_refuted += audit_pair(draw, draw, 0.0, n_runs=4_000, alpha=0.01).is_refuted
    assert n_refuted <= 4, "0.6 at most are to be expected; chance gives 5 once in 2,900 tests"
