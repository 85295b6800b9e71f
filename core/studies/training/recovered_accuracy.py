"""The share of accuracy lost to noise that pretraining recovers, with its interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Interval, Score


def recovered_share(
    without: NDArray[np.bool_],
    constrained: NDArray[np.bool_],
    adapted: NDArray[np.bool_],
    *,
    seed: int = 0,
    n_resamples: int = 2000,
) -> Score:
    """Return 100 (adapted − constrained) / (without − constrained), accuracies on the same texts.

    The interval comes from a bootstrap that resamples the texts jointly. There is none if a
    resample shows no loss. Without any loss, the value is NaN.

    Parameters
    ----------
    without, constrained, adapted : bool arrays (n,)
        Whether each text is correct without noise, under noise, and under noise after pretraining.

    Raises
    ------
    InvalidInputError
        The three belong to different texts.

    Examples
    --------
    >>> right = np.arange(100)
    >>> recovered_share(right < 90, right < 50, right < 70).format(0)
    '50 [35, 65]'
    """
    if not len(without) == len(constrained) == len(adapted):
        raise InvalidInputError("Results on different texts cannot be compared.")
    gain, lost = (np.subtract(one, constrained, dtype=np.float64) for one in (adapted, without))
    n = len(gain)
    if not n or lost.mean() <= 0:
        return Score(float("nan"), n=n, chance=0.0)
    rows = np.random.default_rng([seed, 31]).integers(n, size=(n_resamples, n))
    costs = lost[rows].mean(1)
    value = 100 * float(gain.mean() / lost.mean())
    if n < 2 or costs.min() <= 0:
        return Score(value, n=n, chance=0.0)
    low, high = np.quantile(100 * gain[rows].mean(1) / costs, [0.025, 0.975])
    return Score(value, Interval(min(float(low), value), max(float(high), value)), n, 0.0)
