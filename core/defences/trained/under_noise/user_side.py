"""The user's side: vectors of word pieces under noise (Qu et al. 2021, §3.3).

The embedding is the user's and frozen: a service that trains on its noisy output sees nothing else
and cannot change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.neighbours.nearest import NearestCandidate
from leakscope.core.defences.metric_dp.noise import check_eta
from leakscope.core.defences.metric_dp.release import release, release_under_noise
from leakscope.core.encoders.white_box import token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.training.devices import pick_device


def draw_noise_on_device(
    n_draws: int,
    dimension: int,
    eta: float = 1.0,
    *,
    rng: np.random.Generator,
    device: torch.device | str,
) -> torch.Tensor:
    """Draw (n_draws, dimension) float64 noise vectors at `eta` on a torch device.

    Norms come from `rng`, directions from a generator on the device that is seeded with 63 bits of
    `rng` at each call: equal states of `rng` give equal draws on devices of one kind. For training
    and measurements, not for releases (see `secure_generator`).
    """
    check_eta(eta)
    norms = rng.gamma(dimension, 1.0 / eta, size=(n_draws, 1))
    there = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
    directions = torch.randn(
        n_draws, dimension, generator=there, device=device, dtype=torch.float64
    )
    directions /= directions.norm(dim=1, keepdim=True)
    return directions * torch.from_numpy(norms).to(device)


TOKEN_MECHANISMS = ("token_representation", "text_to_text")
"""Mechanisms that release a text as its word pieces, one by one."""

MECHANISMS = ("none", "sequence_representation", *TOKEN_MECHANISMS)
"""Privacy constraints of Qu et al. (2021), Fig. 1, by the names of the defences."""


def noise_device() -> str:
    """Return the device for noise and nearest tokens: "cuda" if there is one, else "cpu"."""
    return "cuda" if pick_device().type == "cuda" else "cpu"


def device_identity() -> dict[str, str]:
    """Return the noise device as an entry for a run's identity; empty on a CPU."""
    device = noise_device()
    return {} if device == "cpu" else {"noise_device": device}


class UserSide:
    """The user's embedding layer and the mechanism applied to it.

    Noise is drawn, and the nearest token found, on the GPU where there is one.

    Parameters
    ----------
    encoder : WhiteBoxEncoder
        Whose token vectors are looked up.
    mechanism : str
        `none` or one of TOKEN_MECHANISMS.
    eta : float
        Privacy parameter, 1/distance; ignored if there is no mechanism.

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
        """Dimension of a token's vector."""
        return int(self.table.shape[1])

    @cached_property
    def _nearest_search(self) -> NearestCandidate:
        """The exact nearest-token search on the noise device."""
        return NearestCandidate(self.table[self._candidates], device=self._device)

    @cached_property
    def _device(self) -> str:
        """The noise device."""
        return noise_device()

    def _noisy_vectors(
        self, ids: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float32]:
        """Look up the vectors of tokens and add independent noise to each (Eq. 3)."""
        if self._device == "cpu":
            return release_under_noise(self.table[ids], self.eta, rng)
        noise = draw_noise_on_device(
            len(ids), self.dimension, self.eta, rng=rng, device=self._device
        )
        return release(self.table[ids], noise.cpu().numpy(), 1 / self.eta)

    def vectors(
        self, ids: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
        """Apply the mechanism to (m,) tokens; return the vectors (m, n), and the new ids or None.

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
        """Apply the mechanism to several texts' tokens; return what `vectors` does, concatenated.

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
            [self._noisy_vectors(ids, rng) for ids, rng in zip(texts, rngs, strict=True)]
        )
        if self.mechanism == "token_representation":
            return moved, None
        changed = self.nearest(moved)
        return self.table[changed], changed

    def nearest(self, vectors: NDArray[np.float32]) -> NDArray[np.int64]:
        """Find the exact nearest token of each vector; return the (m,) ids."""
        return self._candidates[self._nearest_search(vectors)]

    def perturbed(
        self, ids: NDArray[np.int64], n: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw n replacements of each of (m,) tokens; return their ids, (m, n) (Eq. 4)."""
        if self.mechanism == "none":
            return np.repeat(ids[:, None], n, axis=1)
        return self.nearest(self._noisy_vectors(np.repeat(ids, n), rng)).reshape(len(ids), n)

    def any_tokens(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw the ids of n tokens uniformly from those that a text can hold."""
        drawn: NDArray[np.int64] = rng.choice(self._candidates, n)
        return drawn
