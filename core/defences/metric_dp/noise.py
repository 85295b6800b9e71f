"""The noise of d_χ-privacy: a norm of Gamma(n, 1/η), a direction uniform on the sphere.

Implements Qu et al. (2021), Eq. 3: N ∈ R^n of density ∝ exp(−η‖N‖), drawn as N = l·p with
l ~ Gamma(shape n, scale 1/η) and p uniform on the unit sphere; the mean norm is n/η.
Differs from the paper: nothing.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter, ChaCha

from leakscope.core.errors import InvalidInputError

LEAST_ETA = 1e-6

MOST_ETA = 1e12
"""Beyond it the noise is lost in floating point: nothing would be hidden."""


_ROWS = 128
"""Draws that a processor's cache holds."""


def secure_generator() -> np.random.Generator:
    """Return a cryptographic random generator with a fresh key: AES-128 or ChaCha20.

    For releases. Anyone who knew a run's key could subtract the noise again, so the key is drawn by
    the operating system and never stored. Guessing some of the noise reveals nothing of the rest:
    the stream is a cipher's, AES in counter mode (FIPS 197) if the processor has it, else ChaCha20
    (RFC 8439). Measurements that must be repeatable seed another generator instead.
    """
    in_hardware = AESCounter(key=secrets.randbits(128))
    if in_hardware.use_aesni:
        return np.random.Generator(in_hardware)
    return np.random.Generator(ChaCha(key=secrets.randbits(256)))


def draw_noise(
    n_draws: int,
    dimension: int,
    eta: float = 1.0,
    *,
    rng: np.random.Generator,
    dtype: type[np.floating] = np.float32,
) -> NDArray[Any]:
    """Draw (n_draws, dimension) independent noise vectors at `eta`.

    Parameters
    ----------
    eta : float
        In 1/distance; the noise scales with 1/η, so draws at η = 1 serve every η.
    dtype : type
        float32 serves measurements and what only picks a nearest token. Noise that is released
        is float64 (see `release`).
    """
    check_eta(eta)
    directions = rng.standard_normal((n_draws, dimension))
    norms = rng.gamma(dimension, 1.0 / eta, size=(n_draws, 1))
    noise = np.empty((n_draws, dimension), dtype)
    for start in range(0, n_draws, _ROWS):  # few enough for a processor's cache
        rows = slice(start, start + _ROWS)
        directions[rows] /= np.linalg.norm(directions[rows], axis=1, keepdims=True)
        np.multiply(directions[rows], norms[rows], out=noise[rows], casting="same_kind")
    return noise


def check_eta(eta: object) -> float:
    """Return η as a float; raise InvalidInputError unless it is a positive finite number."""
    if not (isinstance(eta, int | float) and 0 < eta < float("inf")):
        raise InvalidInputError(f"eta must be a positive number, got {eta!r}.")
    return float(eta)
