"""Deliberately flawed mechanisms, for testing the audits.

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

from leakscope.core.defences.metric_dp.audit.choices import choice_factory
from leakscope.core.defences.metric_dp.neighbours.nearest import NearestCandidate
from leakscope.core.defences.metric_dp.noise import draw_noise
from leakscope.core.defences.metric_dp.release import release
from leakscope.core.defences.metric_dp.texts import TextMechanism, TokenPrivatizer
from leakscope.core.defences.protected import ProtectedEncoder, generator_of
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.protocols import Encoder, OnProgress, Vectors

Noise = NDArray[np.float64]

_SAME_SEED = "the same seed in every process"


@dataclass
class _Source:
    """A random generator, and state that a flawed mechanism keeps between calls."""

    rng: np.random.Generator
    kept: dict[str, Any] = field(default_factory=dict)


def _correct(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Control: draw noise as the correct mechanism does."""
    return draw_noise(len(inputs), inputs.shape[1], eta, rng=source.rng, dtype=np.float64)


def _too_little(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: noise that is too short by a factor of 1.2."""
    return _correct(inputs, eta, source) / 1.2


def _directions(inputs: Noise, source: _Source) -> Noise:
    """Draw a uniform direction on the sphere for each row of the inputs."""
    ways = source.rng.standard_normal(inputs.shape)
    found: Noise = ways / np.linalg.norm(ways, axis=1, keepdims=True)
    return found


def _wrong_shape(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: noise whose norm has Gamma shape n − 1 instead of n."""
    return _gamma_norm(inputs.shape[1] - 1, inputs, eta, source)


def _gamma_norm(shape: int, inputs: Noise, eta: float, source: _Source) -> Noise:
    """Draw noise of uniform direction whose norm has the given Gamma shape."""
    norms = source.rng.gamma(shape, 1 / eta, (len(inputs), 1))
    return _directions(inputs, source) * norms


def _gaussian(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: Gaussian noise with the mean squared norm of correct noise."""
    spread = np.sqrt(inputs.shape[1] + 1) / eta
    return source.rng.normal(0, spread, inputs.shape)


def _normal_norm(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: noise whose norms are normal instead of Gamma, with the correct mean and variance."""
    n = inputs.shape[1]
    norms = source.rng.normal(n / eta, np.sqrt(n) / eta, (len(inputs), 1))
    return _directions(inputs, source) * norms


def _by_input(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: correct noise scaled by up to ±10 %, depending on the input's norm."""
    lengths = np.linalg.norm(inputs, axis=1, keepdims=True)
    return _correct(inputs, eta, source) * (1 + 0.1 * np.sin(eta * lengths))


def _stale_in_call(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: all noise of a call has the same direction, with new norms."""
    norms = source.rng.gamma(inputs.shape[1], 1 / eta, (len(inputs), 1))
    return _directions(inputs[:1], source) * norms


def _stale_between_calls(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: every call reuses the directions of the first call, with new norms."""
    ways = source.kept.setdefault("ways", _directions(inputs, source))
    again = np.resize(ways, inputs.shape)
    norms = source.rng.gamma(inputs.shape[1], 1 / eta, (len(inputs), 1))
    return again * norms


def _some_without_noise(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: about one of 200 inputs gets no noise."""
    is_moved = source.rng.random((len(inputs), 1)) >= 0.005
    return _correct(inputs, eta, source) * is_moved


def _little_less(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: noise that is too short by 2 %."""
    return _correct(inputs, eta, source) / 1.02


def _little_more(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: noise that is too long by 2 %."""
    return _correct(inputs, eta, source) * 1.02


def _capped_shape(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: noise whose norm has Gamma shape min(n, 100) instead of n."""
    return _gamma_norm(min(inputs.shape[1], 100), inputs, eta, source)


def _half_precision(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: correct noise rounded to float16."""
    return _correct(inputs, eta, source).astype(np.float16).astype(np.float64)


def _clipped(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: correct noise whose norms are clipped at their 99 % quantile."""
    noise = _correct(inputs, eta, source)
    norms = np.linalg.norm(noise, axis=1, keepdims=True)
    return noise * np.minimum(1, stats.gamma.ppf(0.99, inputs.shape[1]) / eta / norms)


def _reused_draws(inputs: Noise, eta: float, source: _Source) -> Noise:
    """Flaw: the noise of the first 1,000 calls is reused from then on."""
    pool = source.kept.setdefault("pool", [])
    call = source.kept["call"] = source.kept.get("call", -1) + 1
    if call < 1000:
        pool.append(_correct(inputs, eta, source))
    return np.resize(pool[call % 1000], inputs.shape)


def _correlated(lag: int) -> Callable[[Noise, float, _Source], Noise]:
    """Return a flawed sampler: directions correlate by 0.2 with those `lag` draws before."""

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
    """Flaw: each draw is followed by its negative, across calls."""
    left = source.kept.get("left", np.empty((0, inputs.shape[1])))
    fresh = _correct(inputs[: (len(inputs) - len(left) + 1) // 2], eta, source)
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
    _SAME_SEED: _correct,
    "0.5 % without noise": _some_without_noise,
}
"""What is wrong, and the noise that is then drawn."""

_FLOATING_POINT = "floating-point release"

NUMBER_FLAWS: dict[str, Callable[[Noise, float, _Source], Noise]] = FLAWS | {
    _FLOATING_POINT: _correct,
    "noise in float16": _half_precision,
    "norms clipped at the 99 % quantile": _clipped,
    "draws reused after 1,000 calls": _reused_draws,
    "correlation 0.2 at lag 2": _correlated(2),
    "correlation 0.2 at lag 3": _correlated(3),
    "antithetic pairs": _antithetic,
    "Gamma of shape min(n, 100)": _capped_shape,
    "noise ÷ 1.02": _little_less,
    "noise × 1.02": _little_more,
}
"""Those and more, of mechanisms whose output is numbers."""


def _flawed_generator(flaw: str, seed: int | None) -> np.random.Generator:
    """Return the generator of a flawed mechanism; fixed instead of fresh if that is its flaw."""
    return generator_of(0 if flaw == _SAME_SEED and seed is None else seed)


@dataclass(frozen=True, kw_only=True)
class BrokenMechanism:
    """A d_χ mechanism with one of FLAWS or, if it releases numbers, of NUMBER_FLAWS.

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
        """Return an encoder that adds noise with the deliberate flaw."""
        known = require_white_box(encoder, "A mechanism")
        source = _Source(_flawed_generator(self.flaw, self.seed))
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


Tokens = NDArray[np.int64]
Make = Callable[[np.random.Generator], TokenPrivatizer]


def _unflawed(ids: Tokens, make: Make, rng: np.random.Generator) -> Tokens:
    """Control: replace tokens as the correct mechanism does."""
    return make(rng).tokens(ids)


def _tenth_unchanged(ids: Tokens, make: Make, rng: np.random.Generator) -> Tokens:
    """Flaw: tokens are replaced, but 10 % are left unchanged."""
    return np.where(rng.random(len(ids)) < 0.1, ids, _unflawed(ids, make, rng))


def _one_draw_per_token(ids: Tokens, make: Make, rng: np.random.Generator) -> Tokens:
    """Flaw: all occurrences of a token in a call get the same replacement."""
    distinct, which = np.unique(ids, return_inverse=True)
    return _unflawed(distinct, make, rng)[which]


def _same_every_call(ids: Tokens, make: Make, rng: np.random.Generator) -> Tokens:
    """Flaw: every call replaces tokens with the same seed."""
    return _unflawed(ids, make, np.random.default_rng(7))


_STRONGER = "ε half as much again"

FLAWED_CHOICES: dict[str, Callable[[Tokens, Make, np.random.Generator], Tokens]] = {
    _STRONGER: _unflawed,
    "10 % left as they are": _tenth_unchanged,
    "one draw a token and call": _one_draw_per_token,
    "the same draws in every call": _same_every_call,
    _SAME_SEED: _unflawed,
}
"""What is wrong, and what tokens then become."""


@dataclass(frozen=True, kw_only=True)
class FlawedChoice:
    """A mechanism of CHOICES with one of the flaws of FLAWED_CHOICES."""

    name: str
    flaw: str
    strength: float
    seed: int | None = None

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder that replaces tokens with the deliberate flaw."""
        known = require_white_box(encoder, "A mechanism")
        rng = _flawed_generator(self.flaw, self.seed)
        strength = self.strength * (1.5 if self.flaw == _STRONGER else 1)
        mechanism: TextMechanism = choice_factory(self.name, strength)(0)  # type: ignore[assignment]

        def make(own: np.random.Generator) -> TokenPrivatizer:
            return mechanism.privatizer(known, own)

        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
            rows = known.token_ids(texts)
            flat = np.array([i for row in rows for i in row], np.int64)
            changed = FLAWED_CHOICES[self.flaw](flat, make, rng).reshape(len(rows), -1)
            return encoder.encode([known.text_of(row.tolist()) for row in changed])

        return ProtectedEncoder.of(encoder, self, transform)
