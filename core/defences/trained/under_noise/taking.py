"""Which texts a pretraining takes: those after its neighbours', and others that are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.defences.trained.under_noise.pieces import Pieces, lay_out
from core.errors import InvalidInputError
from core.protocols import WhiteBoxEncoder

__all__ = ["Taken"]

_N_HELD_OUT = 300
_CHUNK = 5_000
_ORDER = 12
"""Which draws a seed is of."""


@dataclass(frozen=True, eq=False)
class Taken:
    """Texts to train on, as many as hold the tokens to see, and texts that are held out.

    Attributes
    ----------
    pieces, held : Pieces
        The latter are the same for all neighbours.
    is_new : bool array (n,)
        Which of the former no neighbour has taken before.
    passed : int
        Texts that this one and its neighbours have taken: the next takes those after them.
    """

    pieces: Pieces
    held: Pieces
    is_new: NDArray[np.bool_]
    passed: int

    @classmethod
    def of(
        cls,
        encoder: WhiteBoxEncoder,
        texts: Sequence[str],
        *,
        tokens: int,
        max_length: int,
        seed: int,
        passed: int = 0,
    ) -> Self:
        """Take texts in a drawn order; after the last of them it begins again with the first.

        Parameters
        ----------
        passed : int
            Texts that neighbours have taken.

        Raises
        ------
        InvalidInputError
            Too few texts.
        """
        order = np.random.default_rng([seed, _ORDER]).permutation(len(texts))
        n_held = min(_N_HELD_OUT, len(order) // 10)
        if n_held < 1:
            raise InvalidInputError(f"Pretraining needs at least 10 texts, got {len(texts)}.")
        held, _ = _laid_out(encoder, [texts[i] for i in order[:n_held]], max_length)
        rest = order[n_held:]
        n_new, rest = max(0, len(rest) - passed), np.roll(rest, -passed)
        parts, is_new, n_tokens, n_taken = [], [], 0, 0
        while n_taken < len(rest) and n_tokens < tokens:
            chunk = [texts[i] for i in rest[n_taken : n_taken + _CHUNK]]
            part, kept = _laid_out(encoder, chunk, max_length)
            parts.append(part)
            is_new.append(n_taken + kept < n_new)
            n_tokens += int(part.lengths.sum())
            n_taken += len(chunk)
        return cls(_joined(parts), held, np.concatenate(is_new), passed + n_taken)

    def new_tokens(self, batches: Sequence[NDArray[np.int64]]) -> int:
        """Return the tokens of batches that neither came before nor in one of the neighbours."""
        rows = np.unique(np.concatenate(batches))
        return int(self.pieces.lengths[rows][self.is_new[rows]].sum())


def _laid_out(
    encoder: WhiteBoxEncoder, texts: Sequence[str], max_length: int
) -> tuple[Pieces, NDArray[np.intp]]:
    """Return texts that hold a word piece, and their places."""
    whole = lay_out(encoder, texts, max_length=max_length)
    kept = np.flatnonzero(whole.n_first > 0)
    rows = [whole.rows[i] for i in kept]
    return Pieces(rows, whole.n_first[kept], whole.lengths[kept], whole.marks), kept


def _joined(parts: Sequence[Pieces]) -> Pieces:
    n_first, lengths = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("n_first", "lengths")
    )
    return Pieces([row for part in parts for row in part.rows], n_first, lengths, parts[0].marks)
