"""Deniability of each token of a sentence, at every η."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.deniability.engine import DeniabilityEngine, Envelopes
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import constant_interval
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.results import Interval, Score
from leakscope.core.text import check_text

MAX_TOKENS = 254
"""Most tokens of a sentence that are analysed; encoders read fewer."""


@dataclass(frozen=True, slots=True)
class TokenDeniability:
    """Deniability statistics of one token at one η.

    Attributes
    ----------
    n_w, s_w : int
        Of the draws, how many return the token; how many distinct tokens are returned.
    eta_star_median : float
        The η at which half of the draws return the token; at least the smallest η analysed.
    replacements : tuple of (str, int)
        What the token turns into most often, itself included, with the number of draws.
    """

    token: str
    n_w: int
    s_w: int
    eta_star_median: float
    replacements: tuple[tuple[str, int], ...]


class DeniableSentence:
    """The tokens of a text with their envelopes, computed once and evaluated at any η.

    Parameters
    ----------
    encoder : WhiteBoxEncoder
        The encoder of the tokens.
    engine : DeniabilityEngine
        The draws.
    text : str
        Read to `MAX_TOKENS` word pieces.

    Raises
    ------
    InvalidInputError
        The text cannot be encoded, or has no token.
    """

    def __init__(self, encoder: WhiteBoxEncoder, engine: DeniabilityEngine, text: str) -> None:
        (ids,) = encoder.token_ids([check_text(text)])
        if not ids:
            raise InvalidInputError(
                "The text contains nothing that this encoder can read. Type some words."
            )
        self.ids: NDArray[np.int64] = np.array(ids[:MAX_TOKENS], dtype=np.int64)
        self._tokens, self.n_draws = encoder.tokens, engine.n_draws
        distinct, self._which = np.unique(self.ids, return_inverse=True)
        self.envelopes: Envelopes = engine.envelopes(distinct)
        self._medians = np.median(self.envelopes.eta_star, axis=1)

    @property
    def tokens(self) -> list[str]:
        """The word pieces of the sentence, in order."""
        return [self._tokens[i] for i in self.ids]

    def at(self, eta: float, *, n_replacements: int = 10) -> list[TokenDeniability]:
        """Return the TokenDeniability of every token of the sentence at η, in order.

        Raises
        ------
        InvalidInputError
            An η below the engine's smallest.
        """
        n_w, s_w = self.envelopes.n_w(eta), self.envelopes.s_w(eta)
        most = self.envelopes.replacements(eta, n_replacements)
        return [
            TokenDeniability(
                self._tokens[token],
                int(n_w[i]),
                int(s_w[i]),
                float(self._medians[i]),
                tuple((self._tokens[other], count) for other, count in most[i]),
            )
            for token, i in zip(self.ids, self._which, strict=True)
        ]

    def privatised(self, engine: DeniabilityEngine, eta: float, seed: int) -> list[str]:
        """Replace the sentence's tokens under one draw of noise at η; return the word pieces.

        Parameters
        ----------
        seed : int
            Of the unit-scale noise: the same seed at another η scales the same draw.
        """
        rng = np.random.Generator(np.random.Philox(seed))
        return [self._tokens[i] for i in engine.perturbed(self.ids, eta, rng)]

    def unchanged(self, eta: float) -> Score:
        """Return the mean percentage of tokens that stay unchanged at η, as a Score.

        The draws are the sample: the tokens of a draw share it, so each draw counts once (normal
        limits of the mean over draws, cut to [0, 100]; `constant_interval` where all agree).
        """
        shares = 100 * (self.envelopes.eta_star[self._which] <= np.float32(eta)).mean(0)
        if shares.min() == shares.max():
            n, value = len(shares), float(shares[0])
            return Score(value, constant_interval(value, n, 0.0, 100.0), n)
        mean, half = shares.mean(), 1.96 * shares.std(ddof=1) / np.sqrt(len(shares))
        interval = Interval(float(max(mean - half, 0)), float(min(mean + half, 100)))
        return Score(float(mean), interval, len(shares))

    def curves(self, etas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how many draws return each token (N_w) at each η, (tokens, len(etas))."""
        star = np.sort(self.envelopes.eta_star, axis=1)
        passed = np.array([np.searchsorted(row, etas, side="right") for row in star])
        return passed[self._which].astype(np.float64)
