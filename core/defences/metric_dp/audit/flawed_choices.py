"""Mechanisms that choose tokens, broken on purpose: what their audit has to catch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.defences.metric_dp.audit.choices import shipped_choice
from core.defences.metric_dp.texts import TextMechanism, TokenPrivatizer
from core.defences.protected import ProtectedEncoder, generator_of
from core.encoders.white_box import require_white_box
from core.protocols import Encoder, OnProgress, Vectors

__all__ = ["FLAWED_CHOICES", "FlawedChoice"]

Tokens = NDArray[np.int64]
Make = Callable[[np.random.Generator], TokenPrivatizer]


def _true(ids: Tokens, make: Make, rng: np.random.Generator) -> Tokens:
    return make(rng).tokens(ids)


def _passing(ids: Tokens, make: Make, rng: np.random.Generator) -> Tokens:
    return np.where(rng.random(len(ids)) < 0.1, ids, _true(ids, make, rng))


def _once_a_call(ids: Tokens, make: Make, rng: np.random.Generator) -> Tokens:
    """Change a token alike wherever it stands in the texts of a call."""
    distinct, which = np.unique(ids, return_inverse=True)
    return _true(distinct, make, rng)[which]


def _same_every_call(ids: Tokens, make: Make, rng: np.random.Generator) -> Tokens:
    return _true(ids, make, np.random.default_rng(7))


_STRONGER = "ε half as much again"
_SAME_SEED = "the same seed in every process"

FLAWED_CHOICES: dict[str, Callable[[Tokens, Make, np.random.Generator], Tokens]] = {
    _STRONGER: _true,
    "10 % left as they are": _passing,
    "one draw a token and call": _once_a_call,
    "the same draws in every call": _same_every_call,
    _SAME_SEED: _true,
}
"""What is wrong, and what tokens then become."""


@dataclass(frozen=True, kw_only=True)
class FlawedChoice:
    """A mechanism of CHOICES with one of FLAWED_CHOICES."""

    name: str
    flaw: str
    strength: float
    seed: int | None = None

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder under the flawed mechanism."""
        known = require_white_box(encoder, "A mechanism")
        is_stuck = self.flaw == _SAME_SEED and self.seed is None
        rng = generator_of(0 if is_stuck else self.seed)
        strength = self.strength * (1.5 if self.flaw == _STRONGER else 1)
        mechanism: TextMechanism = shipped_choice(self.name, strength)(0)  # type: ignore[assignment]

        def make(own: np.random.Generator) -> TokenPrivatizer:
            return mechanism.privatizer(known, own)

        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
            rows = known.token_ids(texts)
            flat = np.array([i for row in rows for i in row], np.int64)
            changed = FLAWED_CHOICES[self.flaw](flat, make, rng).reshape(len(rows), -1)
            return encoder.encode([known.text_of(row.tolist()) for row in changed])

        return ProtectedEncoder.of(encoder, self, transform)
