"""How tokens are used in an attacker's own texts: what is known before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.errors import InvalidInputError

__all__ = ["FLOOR", "TokenPrior"]

FLOOR = 0.1
"""How often a token counts that the attacker's texts do not hold."""


@dataclass(frozen=True)
class TokenPrior:
    """How often tokens are used, and after which: what an attacker knows before reading.

    Attributes
    ----------
    counts : float64 array (T,)
        Of each of the encoder's tokens.
    follows : csr array (T, T)
        How often the second stands right after the first.
    weight : float
        What a follower's share counts for beside how often it is used at all.
    """

    counts: NDArray[np.float64]
    follows: sparse.csr_array
    weight: float = 0.7

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], n_tokens: int) -> TokenPrior:
        """Count the tokens of texts, rows of token ids.

        Raises
        ------
        InvalidInputError
            There is no token to count.
        """
        flat = np.array([i for row in rows for i in row], np.int64)
        if not len(flat):
            raise InvalidInputError("The attacker's texts hold no token. Give it texts to know.")
        counts = np.bincount(flat, minlength=n_tokens).astype(np.float64)
        pairs = [(a, b) for row in rows for a, b in pairwise(row)]
        first, second = np.array(pairs, np.int64).reshape(-1, 2).T
        ones = np.ones(len(first))
        follows = sparse.csr_array((ones, (first, second)), shape=(n_tokens, n_tokens))
        follows.sum_duplicates()
        return cls(counts, follows)

    def without(self, rows: Sequence[Sequence[int]]) -> TokenPrior:
        """Return what is known without some of the texts that were counted."""
        if not any(rows):
            return self
        own = TokenPrior.of(rows, len(self.counts))
        follows = sparse.csr_array(self.follows - own.follows)
        return TokenPrior(self.counts - own.counts, follows, self.weight)

    @property
    def log(self) -> NDArray[np.float64]:
        """The logarithm of each token's share; one never seen has a little."""
        shares = np.maximum(self.counts, FLOOR)
        return np.asarray(np.log(shares / shares.sum()))

    def log_after(self, before: NDArray[np.int64], tokens: NDArray[np.int64]) -> Any:
        """Return log P[token | the one before], an (a, b) array of a before and b tokens."""
        share = np.exp(self.log[tokens])[None, :]
        seen = self.follows[before][:, tokens].toarray()
        total = np.maximum(self.counts[before], 1.0)[:, None]
        return np.log(self.weight * seen / total + (1 - self.weight) * share)
