"""What leaves the user's device: vectors of word pieces, under noise (Qu et al. 2021, §3.3).

The embedding is the user's and frozen: whoever trains on what it gives out sees nothing else, and
can change nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.defences.metric_dp.candidates import candidate_ids
from core.defences.metric_dp.nearest import NearestCandidate
from core.defences.metric_dp.noise import check_eta
from core.defences.metric_dp.noise_torch import draw_noise_there
from core.defences.metric_dp.release import release, release_under_noise
from core.encoders.white_box import token_table
from core.errors import InvalidInputError
from core.protocols import WhiteBoxEncoder
from core.training.devices import pick_device

__all__ = ["MECHANISMS", "TOKEN_MECHANISMS", "UserSide", "noise_device", "told_of_device"]

TOKEN_MECHANISMS = ("token_representation", "text_to_text")
"""Those under which a text leaves as its word pieces, one by one."""

MECHANISMS = ("none", "sequence_representation", *TOKEN_MECHANISMS)
"""Privacy constraints of Qu et al. (2021), Fig. 1, by the names that the defences have."""


def noise_device() -> str:
    """Return where the noise is drawn and the nearest token found: on a GPU where there is one."""
    return "cuda" if pick_device().type == "cuda" else "cpu"


def told_of_device() -> dict[str, str]:
    """Return what tells a run apart that draws its noise elsewhere: it cannot go on here."""
    device = noise_device()
    return {} if device == "cpu" else {"noise_device": device}


class UserSide:
    """The user's embedding layer and the mechanism behind it.

    Noise is drawn, and the nearest token found, on the GPU where there is one.

    Parameters
    ----------
    encoder : WhiteBoxEncoder
        Whose token vectors are looked up.
    mechanism : str
        `none` or one of TOKEN_MECHANISMS.
    eta : float
        Privacy parameter, 1/distance; not looked at where there is no mechanism.

    Raises
    ------
    InvalidInputError
        Another mechanism, or η is not positive and finite.
    """

    def __init__(self, encoder: WhiteBoxEncoder, mechanism: str, eta: float) -> None:
        if mechanism not in ("none", *TOKEN_MECHANISMS):
            raise InvalidInputError(
                f"mechanism must be none, {' or '.join(TOKEN_MECHANISMS)}, got {mechanism!r}."
            )
        self.mechanism = mechanism
        self.eta = eta if mechanism == "none" else check_eta(eta)
        self.table = token_table(encoder)
        self._candidates = candidate_ids(encoder)

    @property
    def dimension(self) -> int:
        """Of a token's vector."""
        return int(self.table.shape[1])

    @cached_property
    def _nearest(self) -> NearestCandidate:
        return NearestCandidate(self.table[self._candidates], device=self._device)

    @cached_property
    def _device(self) -> str:
        return noise_device()

    def _moved(self, ids: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float32]:
        """Return the vectors of tokens, each under noise of its own (Eq. 3)."""
        if self._device == "cpu":
            return release_under_noise(self.table[ids], self.eta, rng)
        noise = draw_noise_there(len(ids), self.dimension, self.eta, rng=rng, device=self._device)
        return release(self.table[ids], noise.cpu().numpy(), 1 / self.eta)

    def vectors(
        self, ids: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
        """Return the (m, n) vectors that stand for (m,) tokens, each under noise of its own.

        Returns
        -------
        vectors : float32 array (m, n)
            Noisy (Eq. 3), or those of the tokens that are put in their place (Eq. 4).
        changed : int64 array (m,) or None
            The tokens in their place; None where a token's vector leaves instead.
        """
        return self.vectors_of_texts([ids], [rng])

    def vectors_of_texts(
        self, texts: Sequence[NDArray[np.int64]], rngs: Sequence[np.random.Generator]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
        """Return what `vectors` does for the tokens of several texts, one text after the other.

        Parameters
        ----------
        texts : sequence of int64 array
            The tokens of each text.
        rngs : sequence of Generator
            One for each text, which draws its noise.
        """
        if self.mechanism == "none":
            ids = np.concatenate(texts)
            return self.table[ids], ids
        moved = np.concatenate(
            [self._moved(ids, rng) for ids, rng in zip(texts, rngs, strict=True)]
        )
        if self.mechanism == "token_representation":
            return moved, None
        changed = self.nearest(moved)
        return self.table[changed], changed

    def nearest(self, vectors: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the token that is nearest to each vector, exactly."""
        return self._candidates[self._nearest(vectors)]

    def perturbed(
        self, ids: NDArray[np.int64], n: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return what each of (m,) tokens becomes in n perturbations, as (m, n) tokens (Eq. 4)."""
        if self.mechanism == "none":
            return np.repeat(ids[:, None], n, axis=1)
        return self.nearest(self._moved(np.repeat(ids, n), rng)).reshape(len(ids), n)

    def any_tokens(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return n tokens drawn alike from those that a text can hold."""
        drawn: NDArray[np.int64] = rng.choice(self._candidates, n)
        return drawn
