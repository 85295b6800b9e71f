"""Attack released tokens literally: answer the released words, without inverting a vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.fitted import bind, check_fitted
from leakscope.core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.text import Vocabulary, word_set

_NONE = -1
"""Padding after a text's last token."""


class ReleasedTokens:
    """An encoder whose rows are a text's released token ids.

    Being an encoder, it lets the reader of tokens be scored as every attack is. A row is as long as
    the longest text may be, padded with -1.

    Parameters
    ----------
    encoder : WhiteBoxEncoder
        Whose tokens they are.
    change : callable
        Returns what (m,) tokens become.
    identity : str
        Distinguishes this change from others.
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
        """Release each text's tokens; return their ids, one padded row per text."""
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
    """An attack that answers the vocabulary words among the released tokens.

    Where a text is released it is that text's words; where noisy token vectors are, those of the
    token nearest to each, which is the likeliest one under the noise of d_χ-privacy.
    """

    vocabulary_: Vocabulary

    def fit(self, encoder: Encoder, *_: Any, **__: Any) -> TokenReader:
        """Bind the attack to the encoder of released tokens; nothing is trained."""
        bind(self, encoder, self.vocabulary_)
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return an answer for each row of released token ids: the words that they spell."""
        source: Any = encoder
        rows = rows_of_tokens(check_fitted(self, encoder, vectors))
        return [words_of_tokens(source.encoder, row, self.vocabulary_) for row in rows]


def rows_of_tokens(vectors: Vectors) -> list[NDArray[np.int64]]:
    """Unpack vectors of `ReleasedTokens` into each text's token ids, without padding."""
    return [row[row != _NONE] for row in vectors.astype(np.int64)]


def words_of_tokens(
    encoder: WhiteBoxEncoder, row: NDArray[np.int64], vocabulary: Vocabulary
) -> Recovery:
    """Return an answer of the vocabulary words in the text that token ids spell."""
    words = sorted(word_set(encoder.text_of(row.tolist())) & vocabulary.index.keys())
    return Recovery(tuple(RecoveredWord(word, 1.0) for word in words))
