"""Mechanisms broken on purpose: what the audit has to catch.

Those of FLAWS show in the tokens that text to text returns, too; those of NUMBER_FLAWS only in
released numbers. All but one release as the true mechanisms do, on a fixed grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats

from core.defences.metric_dp.nearest import NearestCandidate
from core.defences.metric_dp.noise import draw_noise
from core.defences.metric_dp.release import release
from core.defences.protected import ProtectedEncoder, generator_of
from core.encoders.white_box import require_white_box
from core.protocols import Encoder, OnProgress, Vectors

__all__ = ["FLAWS", "NUMBER_FLAWS", "BrokenMechanism"]

Noise = NDArray[np.float64]


@dataclass
class _Source:
    """Where flawed noise comes from: a generator, and what is wrongly kept between calls."""

    rng: np.random.Generator
    kept: dict[str, Any] = field(default_factory=dict)


def _true(inputs: Noise, eta: float, source: _Source) -> Noise:
    return draw_noise(len(inputs), inputs.shape[1], eta, rng=source.rng, dtype=np.float64)


def _too_little(inputs: Noise, eta: float, source: _Source) -> Noise:
    return _true(inputs, eta, source) / 1.2


def _ways(inputs: Noise, source: _Source) -> Noise:
    ways = source.rng.standard_normal(inputs.shape)
    found: Noise = ways / np.linalg.norm(ways, axis=1, keepdims=True)
    return found


def _wrong_shape(inputs: Noise, eta: float, source: _Source) -> Noise:
    return _of_shape(inputs.shape[1] - 1, inputs, eta, source)


def _of_shape(shape: int, inputs: Noise, eta: float, source: _Source) -> Noise:
    norms = source.rng.gamma(shape, 1 / eta, (len(inputs), 1))
    return _ways(inputs, source) * norms


def _gaussian(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Draw normal noise whose mean squared length is that of the true noise."""
    spread = np.sqrt(inputs.shape[1] + 1) / eta
    return source.rng.normal(0, spread, inputs.shape)


def _normal_norm(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Draw lengths from the normal law that has the true mean and the true variance."""
    n = inputs.shape[1]
    norms = source.rng.normal(n / eta, np.sqrt(n) / eta, (len(inputs), 1))
    return _ways(inputs, source) * norms


def _by_input(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Scale by up to a tenth more or less, by the input's own length."""
    lengths = np.linalg.norm(inputs, axis=1, keepdims=True)
    return _true(inputs, eta, source) * (1 + 0.1 * np.sin(eta * lengths))


def _stale_in_call(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Draw one direction a call, and lengths anew."""
    norms = source.rng.gamma(inputs.shape[1], 1 / eta, (len(inputs), 1))
    return _ways(inputs[:1], source) * norms


def _stale_between_calls(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Keep the directions of the first call, and draw lengths anew."""
    ways = source.kept.setdefault("ways", _ways(inputs, source))
    again = np.resize(ways, inputs.shape)
    norms = source.rng.gamma(inputs.shape[1], 1 / eta, (len(inputs), 1))
    return again * norms


def _bare(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Leave one of 200 inputs without any noise."""
    is_moved = source.rng.random((len(inputs), 1)) >= 0.005
    return _true(inputs, eta, source) * is_moved


def _little_less(inputs: Noise, eta: float, source: _Source) -> Noise:
    return _true(inputs, eta, source) / 1.02


def _little_more(inputs: Noise, eta: float, source: _Source) -> Noise:
    return _true(inputs, eta, source) * 1.02


def _capped_shape(inputs: Noise, eta: float, source: _Source) -> Noise:
    return _of_shape(min(inputs.shape[1], 100), inputs, eta, source)


def _half_precision(inputs: Noise, eta: float, source: _Source) -> Noise:
    return _true(inputs, eta, source).astype(np.float16).astype(np.float64)


def _clipped(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Shorten the longest 1 % of draws to the 99 % quantile of norms."""
    noise = _true(inputs, eta, source)
    norms = np.linalg.norm(noise, axis=1, keepdims=True)
    return noise * np.minimum(1, stats.gamma.ppf(0.99, inputs.shape[1]) / eta / norms)


def _pooled(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Keep the noise of the first 1,000 calls, and go through it again from then on."""
    pool = source.kept.setdefault("pool", [])
    call = source.kept["call"] = source.kept.get("call", -1) + 1
    if call < 1000:
        pool.append(_true(inputs, eta, source))
    return np.resize(pool[call % 1000], inputs.shape)


def _correlated(lag: int) -> Callable[[Noise, float, _Source], Noise]:
    """Draw directions that correlate by 0.2 with those of the draw `lag` before; norms afresh."""

    def draw(inputs: Noise, eta: float, source: _Source) -> Noise:
        fresh = source.rng.standard_normal(inputs.shape) * np.sqrt(1 - 0.2**2)
        before = source.kept.get("before")
        if before is None:
            before = 0.2 * source.rng.standard_normal((lag, inputs.shape[1]))
        drawn, source.kept["before"] = signal.lfilter(
            [1.0], [1.0, *[0.0] * (lag - 1), -0.2], fresh, axis=0, zi=before
        )
        norms = source.rng.gamma(inputs.shape[1], 1 / eta, (len(inputs), 1))
        scaled: Noise = drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * norms
        return scaled

    return draw


def _antithetic(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Give each draw and then its opposite, over all calls."""
    left = source.kept.get("left", np.empty((0, inputs.shape[1])))
    fresh = _true(inputs[: (len(inputs) - len(left) + 1) // 2], eta, source)
    drawn = np.concatenate([left, np.stack([fresh, -fresh], axis=1).reshape(-1, inputs.shape[1])])
    source.kept["left"] = drawn[len(inputs) :]
    return drawn[: len(inputs)]


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
_FLOATING_POINT = "floating-point release"

NUMBER_FLAWS: dict[str, Callable[[Noise, float, _Source], Noise]] = FLAWS | {
    _FLOATING_POINT: _true,
    "noise in float16": _half_precision,
    "norms clipped at the 99 % quantile": _clipped,
    "draws reused after 1,000 calls": _pooled,
    "correlation 0.2 at lag 2": _correlated(2),
    "correlation 0.2 at lag 3": _correlated(3),
    "antithetic pairs": _antithetic,
    "Gamma of shape min(n, 100)": _capped_shape,
    "noise ÷ 1.02": _little_less,
    "noise × 1.02": _little_more,
}
"""Those and more, of mechanisms whose output is numbers."""


@dataclass(frozen=True, kw_only=True)
class BrokenMechanism:
    """A mechanism of d_χ-privacy with one of FLAWS or, where it releases numbers, NUMBER_FLAWS.

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
            plain = encoder.encode(texts).reshape(-1, n).astype(np.float64)
            noise = NUMBER_FLAWS[self.flaw](plain, self.eta, source)
            if self.kind == "text":
                moved = table[nearest((plain + noise).astype(np.float32))]
            elif self.flaw == _FLOATING_POINT:
                moved = plain.astype(np.float32) + noise.astype(np.float32)
            else:
                moved = release(plain, noise, 1 / self.eta)
            return np.ascontiguousarray(moved, np.float32).reshape(len(texts), -1)

        return ProtectedEncoder.of(encoder, self, transform)
