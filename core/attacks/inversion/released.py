"""Reading what is released as tokens: no vector has to be inverted there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.fitted import bind, check_fitted
from core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from core.results import RecoveredWord, Recovery
from core.text import Vocabulary, word_set

__all__ = ["ReleasedTokens", "TokenReader", "rows_of_tokens", "words_of_tokens"]

_NONE = -1
"""Stands where a text has no token left."""


class ReleasedTokens:
    """What an attacker holds of texts whose tokens are released: a row of token ids a text.

    It is an encoder, so that the reader of tokens is scored as every attack is. A row is as long
    as the longest text may be, and ends in -1.

    Parameters
    ----------
    encoder : WhiteBoxEncoder
        Whose tokens they are.
    change : callable
        Returns what (m,) tokens become.
    identity : str
        What tells this change from others.
    """

    def __init__(
        self,
        encoder: WhiteBoxEncoder,
        change: Callable[[NDArray[np.int64]], NDArray[np.int64]],
        *,
        identity: str,
        dimension: int = 1024,
    ) -> None:
        self.encoder = self.base = encoder
        self.change, self.dimension = change, dimension
        self.name = f"{encoder.name}, tokens"
        self.fingerprint = f"{encoder.fingerprint}|tokens|{identity}"

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the (n, dimension) released token ids of n texts."""
        rows = [row[: self.dimension] for row in self.encoder.token_ids(texts)]
        changed = self.change(np.array([i for row in rows for i in row], np.int64))
        out = np.full((len(rows), self.dimension), _NONE, np.float32)
        ends = np.cumsum([len(row) for row in rows])
        for target, own in zip(out, np.split(changed, ends[:-1]), strict=True):
            target[: len(own)] = own  # ids below 2^24 are exact in float32
        on_progress(1.0, f"Read the tokens of {len(rows):,} texts")
        return out


@dataclass
class TokenReader:
    """Answers the words of the released tokens, as far as the vocabulary holds them.

    Where a text is released it is that text's words; where noisy token vectors are, those of the
    token nearest to each, which is the likeliest one under the noise of d_χ-privacy.
    """

    vocabulary_: Vocabulary

    def fit(self, encoder: Encoder, *_: Any, **__: Any) -> TokenReader:
        """Remember whose tokens are read; nothing is trained."""
        bind(self, encoder, self.vocabulary_)
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return the words of each row of token ids."""
        source: Any = encoder
        rows = rows_of_tokens(check_fitted(self, encoder, vectors))
        return [words_of_tokens(source.encoder, row, self.vocabulary_) for row in rows]


def rows_of_tokens(vectors: Vectors) -> list[NDArray[np.int64]]:
    """Return the token ids of each row that `ReleasedTokens` returned."""
    return [row[row != _NONE] for row in vectors.astype(np.int64)]


def words_of_tokens(
    encoder: WhiteBoxEncoder, row: NDArray[np.int64], vocabulary: Vocabulary
) -> Recovery:
    """Return the words of a text's tokens, as far as the vocabulary holds them."""
    words = sorted(word_set(encoder.text_of(row.tolist())) & vocabulary.index.keys())
    return Recovery(tuple(RecoveredWord(word, 1.0) for word in words))
