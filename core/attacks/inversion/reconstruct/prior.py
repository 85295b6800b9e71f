"""What the search believes of a sentence before it encodes it: likely words, and about so many."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Prior"]

_GIVEN_BACK = 3.0
"""Nats that a token is worth by being there, up to the length expected."""


@dataclass(frozen=True)
class Prior:
    """log P(sentence) + what its length is worth, both as cosines.

    Each token makes a sentence unlikelier, by about five nats, so that log P alone asks for short
    ones. Up to the length that is expected a token is given most of that back.
    """

    weight: float
    """What a nat counts beside the cosine."""
    n_expected: float
    """Tokens."""

    def of(self, log_probability: float, n: int) -> float:
        """Return what a sentence of n tokens is worth before it is encoded."""
        return self.weight * (log_probability + self._length(n))

    def more(self, n: int, k: int) -> float:
        """Return by how much a sentence of n tokens is worth more with k more, log P aside."""
        return self.weight * (self._length(n + k) - self._length(n))

    def _length(self, n: int) -> float:
        return _GIVEN_BACK * min(n, self.n_expected)
