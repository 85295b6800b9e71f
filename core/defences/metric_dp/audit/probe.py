"""An encoder that hides nothing: what a mechanism does to it can be read from what it returns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from core.protocols import OnProgress, Vectors, no_progress

__all__ = ["ProbeEncoder", "texts_of"]


class ProbeEncoder:
    """Encodes a text of `length` tokens as its token vectors, one after the other.

    The tokens are `t0`, `t1`, …; no text is cut, so every mechanism runs on it as on any other
    white-box encoder, through `protect` and `encode` alone.

    Parameters
    ----------
    table : float32 array (V, n)
        The token vectors.
    length : int
        Tokens that every text has.
    """

    n_layers = 1
    special_token_ids: Sequence[int] = ()

    def __init__(self, table: NDArray[np.float32], length: int) -> None:
        self.table, self.length = np.ascontiguousarray(table, np.float32), length
        self.name, self.fingerprint = "probe", f"probe-{table.shape}-{length}"
        self.dimension = length * self.table.shape[1]
        self.tokens: Sequence[str] = [f"t{i}" for i in range(len(table))]
        self.token_vectors = torch.from_numpy(self.table)

    def token_ids(self, texts: Sequence[str], *, is_whole: bool = False) -> list[list[int]]:
        """Return the tokens of each text."""
        return [[int(word[1:]) for word in text.split()] for text in texts]

    def text_of(self, token_ids: Sequence[int]) -> str:
        """Return the text that tokens make."""
        return " ".join(f"t{i}" for i in token_ids)

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the token vectors of each text, (texts, length·n)."""
        return self.table[np.array(self.token_ids(texts))].reshape(len(texts), -1)

    def encode_layer(
        self, texts: Sequence[str], layer: int, on_progress: OnProgress = no_progress
    ) -> Vectors:
        """Return the same: there is one layer."""
        return self.encode(texts, on_progress)

    def embed_token_vectors(self, vectors: torch.Tensor, layer: int | None = None) -> torch.Tensor:
        """Return the token vectors as they come, one after the other."""
        return vectors.reshape(len(vectors), -1)

    def tokens_in(self, vectors: Vectors) -> NDArray[np.int64]:
        """Return which tokens encoded texts hold, (texts, length): exact, as none is noisy."""
        rows = np.asarray(vectors, np.float32).reshape(-1, self.table.shape[1])
        known = {row.tobytes(): i for i, row in enumerate(self.table)}
        found = [known[row.tobytes()] for row in np.ascontiguousarray(rows)]
        return np.array(found, np.int64).reshape(-1, self.length)


def texts_of(ids: NDArray[np.int64]) -> list[str]:
    """Return texts of tokens, a row each."""
    return [" ".join(f"t{i}" for i in row) for row in ids]
