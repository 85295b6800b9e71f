"""Mechanisms broken on purpose: what the audit has to catch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.defences.metric_dp.nearest import NearestCandidate
from core.defences.metric_dp.noise import draw_noise
from core.defences.protected import ProtectedEncoder, generator_of
from core.encoders.white_box import require_white_box
from core.protocols import Encoder, OnProgress, Vectors

__all__ = ["FLAWS", "BrokenMechanism"]

Noise = NDArray[np.float32]


@dataclass
class _Source:
    """Where flawed noise comes from: a generator, and what is wrongly kept between calls."""

    rng: np.random.Generator
    kept: dict[str, Any] = field(default_factory=dict)


def _true(inputs: Noise, eta: float, source: _Source) -> Noise:
    return draw_noise(len(inputs), inputs.shape[1], eta, rng=source.rng)


def _too_little(inputs: Noise, eta: float, source: _Source) -> Noise:
    return _true(inputs, eta, source) / np.float32(1.2)


def _ways(inputs: Noise, source: _Source) -> NDArray[np.float64]:
    ways = source.rng.standard_normal(inputs.shape)
    found: NDArray[np.float64] = ways / np.linalg.norm(ways, axis=1, keepdims=True)
    return found


def _wrong_shape(inputs: Noise, eta: float, source: _Source) -> Noise:
    norms = source.rng.gamma(inputs.shape[1] - 1, 1 / eta, (len(inputs), 1))
    return (_ways(inputs, source) * norms).astype(np.float32)


def _gaussian(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Draw normal noise whose mean squared length is that of the true noise."""
    spread = np.sqrt(inputs.shape[1] + 1) / eta
    return source.rng.normal(0, spread, inputs.shape).astype(np.float32)


def _normal_norm(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Draw lengths from the normal law that has the true mean and the true variance."""
    n = inputs.shape[1]
    norms = source.rng.normal(n / eta, np.sqrt(n) / eta, (len(inputs), 1))
    return (_ways(inputs, source) * norms).astype(np.float32)


def _by_input(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Scale by up to a tenth more or less, by the input's own length."""
    lengths = np.linalg.norm(inputs, axis=1, keepdims=True)
    return (_true(inputs, eta, source) * (1 + 0.1 * np.sin(eta * lengths))).astype(np.float32)


def _stale_in_call(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Draw one direction a call, and lengths anew."""
    norms = source.rng.gamma(inputs.shape[1], 1 / eta, (len(inputs), 1))
    return (_ways(inputs[:1], source) * norms).astype(np.float32)


def _stale_between_calls(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Keep the directions of the first call, and draw lengths anew."""
    ways = source.kept.setdefault("ways", _ways(inputs, source))
    again = np.resize(ways, inputs.shape)
    norms = source.rng.gamma(inputs.shape[1], 1 / eta, (len(inputs), 1))
    return (again * norms).astype(np.float32)


def _bare(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Leave one of 200 inputs without any noise."""
    is_moved = source.rng.random((len(inputs), 1)) >= 0.005
    return (_true(inputs, eta, source) * is_moved).astype(np.float32)


FLAWS: dict[str, Callable[[Noise, float, _Source], Noise]] = {
    "noise ÷ 1.2": _too_little,
    "Gamma of shape n − 1": _wrong_shape,
    "Gaussian noise of the same length": _gaussian,
    "normal norm, true mean and variance": _normal_norm,
    "scale depends on the input, ± 10 %": _by_input,
    "one direction a call": _stale_in_call,
    "directions kept between calls": _stale_between_calls,
    "the same seed in every process": _true,
    "0.5 % without noise": _bare,
}
"""What is wrong, and the noise that is then drawn."""

_SAME_SEED = "the same seed in every process"


@dataclass(frozen=True, kw_only=True)
class BrokenMechanism:
    """A mechanism of d_χ-privacy with one of FLAWS.

    Parameters
    ----------
    kind : str
        What it acts on: text, tokens or vector.
    """

    kind: str
    flaw: str
    eta: float
    seed: int | None = None

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder under flawed noise."""
        known = require_white_box(encoder, "A mechanism")
        is_stuck = self.flaw == _SAME_SEED and self.seed is None
        source = _Source(generator_of(0 if is_stuck else self.seed))
        table = known.token_vectors.numpy()
        n = encoder.dimension if self.kind == "vector" else table.shape[1]
        nearest = NearestCandidate(table)

        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
            plain = encoder.encode(texts).reshape(-1, n)
            moved = plain + FLAWS[self.flaw](plain, self.eta, source)
            if self.kind == "text":
                moved = table[nearest(moved)]
            return np.ascontiguousarray(moved, np.float32).reshape(len(texts), -1)

        return ProtectedEncoder.of(encoder, self, transform)
