"""Token and bigram frequencies of an attacker's own texts: the prior for decoding tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.errors import InvalidInputError

FLOOR = 0.1
"""The count of a token that does not occur in the attacker's texts."""


@dataclass(frozen=True)
class TokenPrior:
    """An attacker's prior over tokens: unigram and bigram counts.

    Attributes
    ----------
    counts : float64 array (T,)
        Of each of the encoder's tokens.
    follows : csr array (T, T)
        How often the second token follows the first.
    weight : float
        The weight of the bigram probability against the unigram probability.
    """

    counts: NDArray[np.float64]
    follows: sparse.csr_array
    weight: float = 0.7

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], n_tokens: int) -> TokenPrior:
        """Count the tokens and bigrams of texts, given as rows of token ids.

        Raises
        ------
        InvalidInputError
            There is no token to count.
        """
        flat = np.array([i for row in rows for i in row], np.int64)
        if not len(flat):
            raise InvalidInputError("The attacker's texts contain no token. Give other texts.")
        counts = np.bincount(flat, minlength=n_tokens).astype(np.float64)
        pairs = [(a, b) for row in rows for a, b in pairwise(row)]
        first, second = np.array(pairs, np.int64).reshape(-1, 2).T
        ones = np.ones(len(first))
        follows = sparse.csr_array((ones, (first, second)), shape=(n_tokens, n_tokens))
        follows.sum_duplicates()
        return cls(counts, follows)

    def without(self, rows: Sequence[Sequence[int]]) -> TokenPrior:
        """Return the prior without some of the counted texts."""
        if not any(rows):
            return self
        own = TokenPrior.of(rows, len(self.counts))
        follows = sparse.csr_array(self.follows - own.follows)
        return TokenPrior(self.counts - own.counts, follows, self.weight)

    @property
    def log(self) -> NDArray[np.float64]:
        """The log-probability of each token, floored for unseen tokens."""
        shares = np.maximum(self.counts, FLOOR)
        return np.asarray(np.log(shares / shares.sum()))

    def log_after(self, before: NDArray[np.int64], tokens: NDArray[np.int64]) -> Any:
        """Return log P[token | previous token], an (a, b) array for a previous and b tokens."""
        share = np.exp(self.log[tokens])[None, :]
        seen = self.follows[before][:, tokens].toarray()
        total = np.maximum(self.counts[before], 1.0)[:, None]
        return np.log(self.weight * seen / total + (1 - self.weight) * share)
