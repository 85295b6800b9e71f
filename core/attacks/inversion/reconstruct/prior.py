"""The search's prior over sentences: language-model probability and expected length."""

from __future__ import annotations

from dataclasses import dataclass

_GIVEN_BACK = 3.0
"""The length bonus of a token in nats, up to the expected length."""


@dataclass(frozen=True)
class Prior:
    """The prior value of a sentence: log P plus a length bonus, scaled to cosines.

    Each token costs about five nats, so log P alone favours short sentences. Up to the expected
    length, the bonus gives most of that back.
    """

    weight: float
    """The value of a nat relative to the cosine."""
    n_expected: float
    """Tokens."""

    def of(self, log_probability: float, n: int) -> float:
        """Return the prior value of a sentence of n tokens."""
        return self.weight * (log_probability + self._length_bonus(n))

    def length_gain(self, n: int, k: int) -> float:
        """Return the change of the length bonus when a sentence of n tokens gets k more."""
        return self.weight * (self._length_bonus(n + k) - self._length_bonus(n))

    def _length_bonus(self, n: int) -> float:
        """Return the length bonus of n tokens in nats."""
        return _GIVEN_BACK * min(n, self.n_expected)
