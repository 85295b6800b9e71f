"""Splits texts into those that a pretraining takes and those held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.trained.under_noise.pieces import Pieces, tokenise_texts
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import WhiteBoxEncoder

_N_HELD_OUT = 300
_CHUNK = 5_000
_ORDER = 12
"""Streams of random numbers under one seed."""


@dataclass(frozen=True, eq=False)
class TrainHeldOut:
    """Texts to train on, enough for the tokens to see, and held-out texts.

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
        """Split shuffled texts, skipping those that earlier runs took; it wraps around at the end.

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
        held, _ = _tokenise_nonempty(encoder, [texts[i] for i in order[:n_held]], max_length)
        rest = order[n_held:]
        n_new, rest = max(0, len(rest) - passed), np.roll(rest, -passed)
        parts, is_new, n_tokens, n_taken = [], [], 0, 0
        while n_taken < len(rest) and n_tokens < tokens:
            chunk = [texts[i] for i in rest[n_taken : n_taken + _CHUNK]]
            part, kept = _tokenise_nonempty(encoder, chunk, max_length)
            parts.append(part)
            is_new.append(n_taken + kept < n_new)
            n_tokens += int(part.lengths.sum())
            n_taken += len(chunk)
        return cls(_concatenate(parts), held, np.concatenate(is_new), passed + n_taken)

    def new_tokens(self, batches: Sequence[NDArray[np.int64]]) -> int:
        """Return the number of tokens in batches that neither run before has seen."""
        rows = np.unique(np.concatenate(batches))
        return int(self.pieces.lengths[rows][self.is_new[rows]].sum())


def _tokenise_nonempty(
    encoder: WhiteBoxEncoder, texts: Sequence[str], max_length: int
) -> tuple[Pieces, NDArray[np.intp]]:
    """Tokenise texts and drop those without a word piece; return the rest and their indices."""
    whole = tokenise_texts(encoder, texts, max_length=max_length)
    kept = np.flatnonzero(whole.n_first > 0)
    rows = [whole.rows[i] for i in kept]
    return Pieces(rows, whole.n_first[kept], whole.lengths[kept], whole.marks), kept


def _concatenate(parts: Sequence[Pieces]) -> Pieces:
    """Concatenate tokenised texts."""
    n_first, lengths = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("n_first", "lengths")
    )
    return Pieces([row for part in parts for row in part.rows], n_first, lengths, parts[0].marks)
