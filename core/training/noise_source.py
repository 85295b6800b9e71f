"""A random generator for DP noise, seeded with as many bits as the seed has."""

from __future__ import annotations

import hashlib
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.errors import ArtifactError, MissingDependencyError


def seed_for(seed: int, purpose: str) -> int:
    """Derive a 63-bit seed for one purpose from a seed of any size.

    Seeds for different purposes reveal nothing about each other.

    Examples
    --------
    >>> seed_for(1, "weights") == seed_for(1, "weights") != seed_for(1, "order")
    True
    """
    return int.from_bytes(_derive_bytes(seed, purpose, 8)) >> 1


def seed_digest(seed: int) -> str:
    """Return a hash of a seed that identifies the seed without revealing it."""
    return _derive_bytes(seed, "digest", 32).hex()


def _derive_bytes(seed: int, purpose: str, n_bytes: int) -> bytes:
    """Return n_bytes derived from a seed and a purpose (SHAKE-256)."""
    return hashlib.shake_256(f"leakscope {purpose} {seed}".encode()).digest(n_bytes)


class NoiseSource:
    """A torch generator seeded with all bits of a seed; its state can be checkpointed.

    torch uses 32 bits of a seed, which can all be tried, and everything else that draws from the
    process's generator shares them. Here SHAKE-256 fills the 624 words of MT19937.

    Parameters
    ----------
    seed : int
        At least 0, of any size; anyone who knows it can remove the noise.

    Raises
    ------
    MissingDependencyError
        This version of torch stores the words elsewhere.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator()
        state = self.generator.manual_seed(0).get_state()
        words = state[_WORDS].view(torch.int64) if len(state) == _SIZE else torch.zeros(0)
        if words[:2].tolist() != [0, 1]:  # as MT19937 begins with a seed of 0
            raise MissingDependencyError(
                f"torch {torch.__version__} stores the state of its generator in another form. "
                "Install the version that constraints.txt pins."
            )
        filled = np.frombuffer(_derive_bytes(seed, "noise", 4 * 624), "<u4").astype(np.int64)
        words.copy_(torch.from_numpy(filled))
        self.generator.set_state(state)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the generator's state as (arrays, metadata); it is as secret as the seed."""
        return {"noise": self.generator.get_state().numpy()}, {}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the generator's state from what `state` returned.

        Raises
        ------
        ArtifactError
            The state is missing: the checkpoint is from an older release.
        """
        if "noise" not in arrays:
            raise ArtifactError(
                "The checkpoint does not contain the state of its noise, because an older release "
                "wrote it. Move it away and train again."
            )
        self.generator.set_state(torch.from_numpy(arrays["noise"].copy()))
        return self


_SIZE = 5056
_WORDS = slice(24, 24 + 8 * 624)
"""Byte range of the generator's words in torch's state (8 bytes each)."""
