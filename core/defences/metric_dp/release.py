"""Releasing noisy vectors on a fixed grid, so that floating point does not reveal the input.

The proof of d_χ-privacy (Qu et al. 2021, Eq. 2–3) is about real numbers. A float32 sum v + n keeps
the rounding grid of v: wherever |v_i + n_i| < |v_i|/2 it is a multiple of half the spacing of
floats at v_i, and for another input it usually is not (Mironov 2012, doi:10.1145/2382196.2382264).
One such coordinate excludes an input for certain, whatever η guarantees.

So the sum is computed in float64, where a float32 input is exact, and rounded to multiples of a
step δ = 2^-k that depends on the scale of the noise alone. What is returned is a function of the
grid point. What remains is the discreteness of the float64 sum and of the sampler: each
probability is off by a relative 2^-30 or so, where the proof has 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.noise import draw_noise
from leakscope.core.protocols import Vectors

STEPS_PER_SCALE = 1000
"""The step is at most this fraction of the scale of the noise: 1/η, or σ."""

FINEST_STEP = 2.0**-30
"""Well above float64's resolution, 2^-43 at 1,000, for noise however small."""


def grid_step(scale: float) -> float:
    """Return the release grid's step for a noise scale: the greatest power of two ≤ scale/1000.

    Parameters
    ----------
    scale : float
        1/η for d_χ-privacy, σ for Gaussian noise; at least 0. Public, as the mechanism is.

    Examples
    --------
    >>> grid_step(1.0) == 2**-10, grid_step(1 / 75) == 2**-17, grid_step(0.0) == 2**-30
    (True, True, True)
    """
    if scale < FINEST_STEP * STEPS_PER_SCALE:
        return FINEST_STEP
    return 2.0 ** math.floor(math.log2(scale / STEPS_PER_SCALE))


def release(
    vectors: NDArray[np.floating], noise: NDArray[np.float64], scale: float
) -> NDArray[np.float32]:
    """Add float64 noise to vectors and round the sum to the fixed release grid.

    Every mechanism whose output is numbers calls this, and nothing else adds noise to what it
    releases.

    Parameters
    ----------
    vectors : float32 array (m, n)
        What is to be hidden.
    noise : float64 array (m, n)
        Drawn in float64: noise of float32 would have a grid of its own.
    scale : float
        See `grid_step`.

    Returns
    -------
    float32 array (m, n)
        Multiples of the step. Exact up to 2^24 steps; a greater coordinate is rounded once more,
        to a coarser grid that the grid point alone decides.

    Raises
    ------
    TypeError
        The noise is not float64.
    """
    if noise.dtype != np.float64:
        raise TypeError(f"noise must be float64 to be released, got {noise.dtype}.")
    step = grid_step(scale)
    sums = np.add(vectors, noise, dtype=np.float64)
    sums /= step  # exact: a power of two
    np.rint(sums, out=sums)
    sums *= step
    return sums.astype(np.float32)


def release_under_noise(
    vectors: Vectors | NDArray[np.float32], eta: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Add fresh d_χ-privacy noise at η to (m, n) vectors and round to the release grid.

    Implements Qu et al. (2021), Eq. 3. Differs from the paper: released on a grid.

    Parameters
    ----------
    vectors : float32 array (m, n)
    eta : float
        Privacy parameter, 1/distance.
    rng : Generator
        `secure_generator()` for what leaves the machine.
    """
    noise = draw_noise(len(vectors), vectors.shape[1], eta, rng=rng, dtype=np.float64)
    return release(vectors, noise, 1 / eta)
