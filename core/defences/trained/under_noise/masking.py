"""Masking of noisy texts: masked positions and their prediction targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.trained.under_noise.pieces import Batch, Marks
from leakscope.core.defences.trained.under_noise.user_side import UserSide


@dataclass(frozen=True, eq=False)
class Task:
    """A noisy batch with masked positions and their targets.

    Attributes
    ----------
    vectors : float32 array (texts, length, n)
        What the service reads: under noise, [MASK] in gaps.
    places : int64 array (m,)
        Of the tokens to predict, in the flattened batch.
    targets : int64 array (m, |C|)
        What is to be predicted at each; one token, or the set of Eq. 6.
    """

    vectors: NDArray[np.float32]
    places: NDArray[np.int64]
    targets: NDArray[np.int64]


@dataclass(frozen=True)
class Masking:
    """Chooses positions, masks them, and selects their prediction targets.

    Of the chosen ones `masked` become [MASK], `replaced` a random token under noise, and the rest
    stay as the noise left them (Devlin et al. 2019, §3.1; Qu et al. 2021 tell no shares).

    Attributes
    ----------
    objective : str
        `vanilla`: the token as the noise left it (Eq. 5); `probability`: `n_perturbations` of it
        (Eq. 6); `denoising`: the token itself (Eq. 7).
    """

    objective: str
    rate: float = 0.15
    masked: float = 0.8
    replaced: float = 0.1
    n_perturbations: int = 10

    def task(self, batch: Batch, side: UserSide, marks: Marks, rng: np.random.Generator) -> Task:
        """Mask positions of a batch and add fresh noise; return the Task to predict them."""
        places = np.flatnonzero(batch.is_user)
        chosen = rng.random(len(places)) < self.rate
        if not chosen.any():
            chosen[rng.integers(len(places))] = True
        share = rng.random(int(chosen.sum()))
        is_masked, is_kept = share < self.masked, share >= self.masked + self.replaced
        original = batch.ids.reshape(-1)[places]
        given = original.copy()
        given[chosen] = np.where(
            is_masked | is_kept, given[chosen], side.any_tokens(len(share), rng)
        )
        sent, changed = side.vectors(given, rng)
        targets = self._targets(original[chosen], side, rng)
        if self.objective == "vanilla" and is_kept.any():  # what stands there is to be told
            kept = np.flatnonzero(chosen)[is_kept]
            targets[is_kept, 0] = side.nearest(sent[kept]) if changed is None else changed[kept]
        sent[np.flatnonzero(chosen)[is_masked]] = side.table[marks.mask]
        vectors = side.table[batch.ids]
        vectors.reshape(-1, side.dimension)[places] = sent
        return Task(vectors, places[chosen], targets)

    def _targets(
        self, original: NDArray[np.int64], side: UserSide, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return the (m, |C|) target tokens of masked positions: original or noisy ones."""
        if self.objective == "denoising":
            return original[:, None].copy()
        n = 1 if self.objective == "vanilla" else self.n_perturbations
        return side.perturbed(original, n, rng)
