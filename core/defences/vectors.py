"""Defences that change the vector alone: noise, rounding, quantising, truncation, projection.

None of them comes with a guarantee; users ask about them, so they are measured beside the
mechanisms that have one. All work on the vectors of any encoder, one vector at a time: no
statistics of other texts are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from leakscope.core.defences.metric_dp.release import release
from leakscope.core.defences.protected import ProtectedEncoder, encode_dense, generator_of
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors
from leakscope.core.ranges import Strength
from leakscope.core.specs import setting, validate_settings


def _truncated_dimensions(dimension: int) -> tuple[float, ...]:
    """Return the preset dimensions below that of the vectors, to offer for truncation."""
    return tuple(n for n in (8, 16, 32, 64, 96, 128, 192, 256) if n < dimension)


_SIGMA = Strength(
    "Standard deviation of the noise", 0.05, (0.01, 0.02, 0.03, 0.05, 0.1, 0.2), "σ {:g}"
)
_DECIMALS = Strength("Digits kept", 1, (3, 2, 1, 0), "to {:g} decimals", "to {:g} decimal")
_DIMENSION = Strength("Numbers kept", 96, _truncated_dimensions, "to {:g} dimensions")


@dataclass(frozen=True, kw_only=True)
class NoDefence:
    """The baseline: leaves vectors unchanged."""

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the baseline: an encoder with the same vectors, under the defence's name."""
        return _protect_vectors(self, encoder, lambda v: v)


@dataclass(frozen=True, kw_only=True)
class GaussianNoise:
    """Adds independent normal noise to every number; released on a fixed grid (`release`)."""

    sigma: float = setting(
        0.03, "Standard deviation of the noise per number", low=0, high=1e6, strength=_SIGMA
    )
    seed: int | None = None

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder that adds Gaussian noise to its vectors, without normalising them."""
        rng = generator_of(self.seed)

        def change(vectors: Vectors) -> np.ndarray:
            noise = self.sigma * rng.standard_normal(vectors.shape)
            return release(vectors, noise, self.sigma)

        return _protect_vectors(self, encoder, change)


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """Rounds every number of a vector to a number of decimals."""

    decimals: int = setting(1, "Number of decimals to keep", low=0, high=7, strength=_DECIMALS)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder whose vectors are rounded to `decimals` decimals."""
        return _protect_vectors(self, encoder, lambda v: np.round(v, self.decimals))


@dataclass(frozen=True, kw_only=True)
class Int8:
    """Quantises vectors to 255 levels, scaled by each vector's greatest magnitude."""

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder whose vectors are quantised to 255 levels and scaled back."""
        return _protect_vectors(self, encoder, _quantise)


@dataclass(frozen=True, kw_only=True)
class Binary:
    """Replaces every number of a vector by its sign."""

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder whose vectors keep only the signs, as ±1/√n."""
        return _protect_vectors(
            self, encoder, lambda v: np.where(v >= 0, 1, -1) / np.sqrt(v.shape[1])
        )


@dataclass(frozen=True, kw_only=True)
class Truncation:
    """Truncates vectors to their first `dimension` numbers."""

    dimension: int = setting(96, "Numbers kept", low=1, strength=_DIMENSION)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder whose vectors keep their first `dimension` numbers, not normalised."""
        _check_dimension(self.dimension, encoder)
        return _protect_vectors(self, encoder, lambda v: v[:, : self.dimension], self.dimension)


@dataclass(frozen=True, kw_only=True)
class RandomProjection:
    """Multiplies vectors by a random Gaussian matrix, which the attacker knows."""

    dimension: int = setting(96, "Numbers after the projection", low=1, strength=_DIMENSION)
    seed: int = setting(0, "Random seed of the matrix", low=0)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder whose vectors are multiplied by a random matrix drawn from `seed`."""
        _check_dimension(self.dimension, encoder)
        rng = np.random.default_rng(self.seed)
        matrix = rng.standard_normal((encoder.dimension, self.dimension)) / np.sqrt(self.dimension)
        return _protect_vectors(self, encoder, lambda v: v @ matrix, self.dimension)


def _protect_vectors(
    defence: object,
    encoder: Encoder,
    change: Callable[[Vectors], np.ndarray],
    dimension: int | None = None,
) -> ProtectedEncoder:
    """Check a defence's settings; return an encoder that applies `change` to its vectors."""
    validate_settings(defence)

    def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
        vectors = encode_dense(encoder, texts, on_progress)
        return np.ascontiguousarray(change(vectors), np.float32)

    return ProtectedEncoder.of(encoder, defence, transform, dimension)


def _quantise(vectors: Vectors) -> Vectors:
    """Return vectors rounded to 255 levels each, as floats on their original scale."""
    step = np.maximum(np.abs(vectors).max(1, keepdims=True), 1e-30) / 127
    return np.round(vectors / step) * step


def _check_dimension(dimension: int, encoder: Encoder) -> None:
    """Raise InvalidInputError unless a reduced dimension lies between 1 and the encoder's."""
    if not 1 <= dimension <= encoder.dimension:
        raise InvalidInputError(
            f"dimension must lie in [1, {encoder.dimension}] for {encoder.name}, got {dimension}."
        )
