"""Defences that change the vector alone: noise, rounding, quantising, cutting, projecting.

None of them comes with a guarantee; users ask about them, so they are measured beside the
mechanisms that have one. All work on the vectors of any encoder, one vector at a time: no
statistics of other texts are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from core.defences.metric_dp.release import release
from core.defences.protected import ProtectedEncoder, encode_dense, generator_of
from core.errors import InvalidInputError
from core.protocols import Encoder, OnProgress, Vectors
from core.ranges import Strength
from core.specs import setting, validate_settings

__all__ = [
    "Binary",
    "GaussianNoise",
    "Int8",
    "NoDefence",
    "RandomProjection",
    "Rounding",
    "Truncation",
]


def _shorter(dimension: int) -> tuple[float, ...]:
    return tuple(n for n in (8, 16, 32, 64, 96, 128, 192, 256) if n < dimension)


_SIGMA = Strength(
    "Standard deviation of the noise", 0.05, (0.01, 0.02, 0.03, 0.05, 0.1, 0.2), "σ {:g}"
)
_DECIMALS = Strength("Digits kept", 1, (3, 2, 1, 0), "to {:g} decimals", "to {:g} decimal")
_DIMENSION = Strength("Numbers kept", 96, _shorter, "to {:g} dimensions")


@dataclass(frozen=True, kw_only=True)
class NoDefence:
    """Changes nothing."""

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder with its vectors as they are."""
        return _on_vectors(self, encoder, lambda v: v)


@dataclass(frozen=True, kw_only=True)
class GaussianNoise:
    """Adds independent normal noise to every number; released on a fixed grid (`release`)."""

    sigma: float = setting(
        0.03, "Standard deviation of the noise, a number", low=0, high=1e6, strength=_SIGMA
    )
    seed: int | None = None

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of noisy vectors; they are not normalised again."""
        rng = generator_of(self.seed)

        def change(vectors: Vectors) -> np.ndarray:
            noise = self.sigma * rng.standard_normal(vectors.shape)
            return release(vectors, noise, self.sigma)

        return _on_vectors(self, encoder, change)


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """Rounds every number to so many decimals."""

    decimals: int = setting(1, "Digits kept after the point", low=0, high=7, strength=_DECIMALS)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of rounded vectors."""
        return _on_vectors(self, encoder, lambda v: np.round(v, self.decimals))


@dataclass(frozen=True, kw_only=True)
class Int8:
    """Keeps 255 levels: each vector is divided by its greatest magnitude over 127 and rounded."""

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of quantised vectors, at their former scale."""
        return _on_vectors(self, encoder, _int8)


@dataclass(frozen=True, kw_only=True)
class Binary:
    """Keeps the sign of every number."""

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of vectors of ±1/√n."""
        return _on_vectors(self, encoder, lambda v: np.where(v >= 0, 1, -1) / np.sqrt(v.shape[1]))


@dataclass(frozen=True, kw_only=True)
class Truncation:
    """Keeps the first numbers of the vector."""

    dimension: int = setting(96, "Numbers kept", low=1, strength=_DIMENSION)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of shorter vectors; they are not normalised again."""
        _check_dimension(self.dimension, encoder)
        return _on_vectors(self, encoder, lambda v: v[:, : self.dimension], self.dimension)


@dataclass(frozen=True, kw_only=True)
class RandomProjection:
    """Multiplies by a random matrix of independent normal numbers, known to the attacker."""

    dimension: int = setting(96, "Numbers after the projection", low=1, strength=_DIMENSION)
    seed: int = setting(0, "Seed of the matrix", low=0)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of projected vectors; lengths are kept on average."""
        _check_dimension(self.dimension, encoder)
        rng = np.random.default_rng(self.seed)
        matrix = rng.standard_normal((encoder.dimension, self.dimension)) / np.sqrt(self.dimension)
        return _on_vectors(self, encoder, lambda v: v @ matrix, self.dimension)


def _on_vectors(
    defence: object,
    encoder: Encoder,
    change: Callable[[Vectors], np.ndarray],
    dimension: int | None = None,
) -> ProtectedEncoder:
    validate_settings(defence)

    def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
        vectors = encode_dense(encoder, texts, on_progress)
        return np.ascontiguousarray(change(vectors), np.float32)

    return ProtectedEncoder.of(encoder, defence, transform, dimension)


def _int8(vectors: Vectors) -> Vectors:
    step = np.maximum(np.abs(vectors).max(1, keepdims=True), 1e-30) / 127
    return np.round(vectors / step) * step


def _check_dimension(dimension: int, encoder: Encoder) -> None:
    if not 1 <= dimension <= encoder.dimension:
        raise InvalidInputError(
            f"dimension must lie in [1, {encoder.dimension}] for {encoder.name}, got {dimension}."
        )
