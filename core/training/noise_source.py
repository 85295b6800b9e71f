"""Where noise comes from: a generator of its own, that a seed of any length fills."""

from __future__ import annotations

import hashlib
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from core.errors import ArtifactError, MissingDependencyError

__all__ = ["NoiseSource", "digest_of_seed", "seed_for"]


def seed_for(seed: int, purpose: str) -> int:
    """Return a seed of 63 bits, which torch takes, of a seed of any size.

    What one purpose draws says nothing of what another draws.

    Examples
    --------
    >>> seed_for(1, "weights") == seed_for(1, "weights") != seed_for(1, "order")
    True
    """
    return int.from_bytes(_stretched(seed, purpose, 8)) >> 1


def digest_of_seed(seed: int) -> str:
    """Return what tells seeds apart and does not give them away."""
    return _stretched(seed, "digest", 32).hex()


def _stretched(seed: int, purpose: str, n_bytes: int) -> bytes:
    return hashlib.shake_256(f"leakscope {purpose} {seed}".encode()).digest(n_bytes)


class NoiseSource:
    """A generator whose whole state follows from a seed, all of its bits, and is stored.

    torch reads 32 bits of a seed, which can be tried through, and what else draws from the
    generator of the process shares them. Here SHAKE-256 fills the 624 words of MT19937.

    Parameters
    ----------
    seed : int
        From 0, of any size; who knows it can take the noise off again.

    Raises
    ------
    MissingDependencyError
        This torch keeps the words elsewhere.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator()
        state = self.generator.manual_seed(0).get_state()
        words = state[_WORDS].view(torch.int64) if len(state) == _SIZE else torch.zeros(0)
        if words[:2].tolist() != [0, 1]:  # as MT19937 begins with a seed of 0
            raise MissingDependencyError(
                f"torch {torch.__version__} keeps the state of its generator in another form: "
                "install the release that requirements.txt names."
            )
        filled = np.frombuffer(_stretched(seed, "noise", 4 * 624), "<u4").astype(np.int64)
        words.copy_(torch.from_numpy(filled))
        self.generator.set_state(state)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return where it stands: as secret as the seed."""
        return {"noise": self.generator.get_state().numpy()}, {}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned.

        Raises
        ------
        ArtifactError
            There is none: the checkpoint is of an older release.
        """
        if "noise" not in arrays:
            raise ArtifactError(
                "The checkpoint does not hold where its noise stands, as older releases wrote it. "
                "Move it aside and train again."
            )
        self.generator.set_state(torch.from_numpy(arrays["noise"].copy()))
        return self


_SIZE = 5056
_WORDS = slice(24, 24 + 8 * 624)
"""Of torch's state, in bytes: a seed, two numbers, a place, and then the words, 8 bytes each."""
