"""What noisy vectors of tokens tell whoever knows the noise and how tokens are used."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.defences.metric_dp.noise import check_eta, draw_noise
from core.protocols import WhiteBoxEncoder

__all__ = ["LikeliestTokens"]

_BLOCK = 256


class LikeliestTokens:
    """Turns tokens into the likeliest under their noisy vectors, where vectors are released.

    The density of the noise of d_χ-privacy is known (Qu et al. 2021, §3): the likeliest token x
    under z is that of the greatest log P[x] − η·‖z − φ(x)‖. The nearest is what is left of it
    where all tokens are used alike.

    Parameters
    ----------
    encoder : WhiteBoxEncoder
        Whose tokens and token vectors are used.
    eta : float
        Privacy parameter, 1/distance.
    log_prior : float64 array (T,)
        The logarithm of how often each token is used, as an attacker knows it.
    rng : Generator
        Source of the noise.
    """

    def __init__(
        self,
        encoder: WhiteBoxEncoder,
        eta: float,
        log_prior: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> None:
        self.ids = np.arange(len(encoder.tokens))
        self._eta, self._log, self._rng = check_eta(eta), log_prior, rng
        self._vectors = encoder.token_vectors.detach().float().cpu().numpy()
        self._squares = np.square(self._vectors).sum(1)

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what each of (m,) tokens is read as, each under noise of its own."""
        read = np.empty(len(token_ids), np.int64)
        for start in range(0, len(token_ids), _BLOCK):
            block = np.asarray(token_ids[start : start + _BLOCK], np.int64)
            noise = draw_noise(len(block), self._vectors.shape[1], self._eta, rng=self._rng)
            read[start : start + _BLOCK] = self.likeliest(self._vectors[block] + noise)
        return read

    def likeliest(self, noisy: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the likeliest token of each of (m, dimension) noisy vectors."""
        squares = np.square(noisy).sum(1)[:, None] - 2 * noisy @ self._vectors.T + self._squares
        distances = np.sqrt(np.maximum(squares, 0, dtype=np.float64))
        return np.asarray((self._log - self._eta * distances).argmax(1))
