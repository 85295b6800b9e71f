"""Lower envelopes: which candidate each draw returns for a token, at every η."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.noise import check_eta
from leakscope.core.errors import InvalidInputError


@dataclass(frozen=True)
class Envelopes:
    """Which candidate each draw returns for each token, as a function of η ≥ `eta_min`, exactly.

    Attributes
    ----------
    tokens, starts : int64 array (T,)
        Each token's own place among the candidates (−1 where it is none), and the place of the
        candidate nearest to it.
    rates, ids, counts : float32 (T, S, C), int32 (T, S, C), int32 (T, S)
        For each token and draw, η/2 at the crossings, descending, and the place of the candidate
        that is returned below each.
    candidates : int64 array (U,)
        The encoder's token at each place.
    eta_min : float
        Smallest η that the envelopes reach.
    """

    tokens: NDArray[np.int64]
    starts: NDArray[np.int64]
    rates: NDArray[np.float32]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    candidates: NDArray[np.int64]
    eta_min: float

    @property
    def n_draws(self) -> int:
        """S, the number of draws."""
        return self.counts.shape[1]

    @property
    def eta_star(self) -> NDArray[np.float32]:
        """The smallest η from which each draw returns the token itself, (T, S); at least `eta_min`.

        For a token that is no candidate, the η from which on its nearest candidate is returned.
        """
        first = np.where(self.counts > 0, self.rates[:, :, 0], np.float32(self.eta_min / 2))
        doubled: NDArray[np.float32] = 2 * first
        return doubled

    def places(self, eta: float) -> NDArray[np.int64]:
        """Return the candidate index that each draw returns at η, (T, S)."""
        if check_eta(eta) < self.eta_min:
            raise InvalidInputError(f"eta must be at least {self.eta_min:g}, got {eta:g}.")
        exists = np.arange(self.rates.shape[2]) < self.counts[:, :, None]
        passed = ((self.rates > np.float32(eta / 2)) & exists).sum(2)
        last = np.take_along_axis(self.ids, np.maximum(passed - 1, 0)[:, :, None], 2)[:, :, 0]
        return np.where(passed > 0, last, self.starts[:, None])

    def returned(self, eta: float) -> NDArray[np.int64]:
        """Return the encoder's token id that each draw returns at η, (T, S)."""
        return self.candidates[self.places(eta)]

    def n_w(self, eta: float) -> NDArray[np.int64]:
        """Return N_w(η), the number of draws that return the token itself, (T,)."""
        return (self.places(eta) == self.tokens[:, None]).sum(1)

    def s_w(self, eta: float) -> NDArray[np.int64]:
        """Return S_w(η), the number of distinct tokens that the draws return, (T,)."""
        ordered = np.sort(self.places(eta), axis=1)
        return 1 + (np.diff(ordered, axis=1) != 0).sum(1)

    def replacements(self, eta: float, n_most: int = 10) -> list[list[tuple[int, int]]]:
        """Return each token's most frequent replacements at η, with their counts.

        The token itself is among them if it is returned. Ties go to the smaller token id.
        """
        answer = []
        for row in self.returned(eta):
            tokens, counts = np.unique(row, return_counts=True)
            most = np.lexsort((tokens, -counts))[:n_most]
            answer.append([(int(tokens[i]), int(counts[i])) for i in most])
        return answer
