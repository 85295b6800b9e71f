"""A transparent probe encoder: its vectors show what a mechanism did to the tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.protocols import OnProgress, Vectors, no_progress


class ProbeEncoder:
    """Encodes a text of `length` tokens as its concatenated token vectors.

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
        """Return the token ids of each text."""
        return [[int(word[1:]) for word in text.split()] for text in texts]

    def text_of(self, token_ids: Sequence[int]) -> str:
        """Return the text of a sequence of tokens."""
        return " ".join(f"t{i}" for i in token_ids)

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the concatenated token vectors of each text, (texts, length·n)."""
        return self.table[np.array(self.token_ids(texts))].reshape(len(texts), -1)

    def encode_layer(
        self, texts: Sequence[str], layer: int, on_progress: OnProgress = no_progress
    ) -> Vectors:
        """Return the same as `encode`: there is one layer."""
        return self.encode(texts, on_progress)

    def embed_token_vectors(self, vectors: torch.Tensor, layer: int | None = None) -> torch.Tensor:
        """Concatenate the token vectors of each text."""
        return vectors.reshape(len(vectors), -1)

    def tokens_in(self, vectors: Vectors) -> NDArray[np.int64]:
        """Decode noiseless vectors to the token ids of their texts, (texts, length)."""
        rows = np.asarray(vectors, np.float32).reshape(-1, self.table.shape[1])
        known = {row.tobytes(): i for i, row in enumerate(self.table)}
        found = [known[row.tobytes()] for row in np.ascontiguousarray(rows)]
        return np.array(found, np.int64).reshape(-1, self.length)


def token_texts(ids: NDArray[np.int64]) -> list[str]:
    """Return the texts of rows of token ids."""
    return [" ".join(f"t{i}" for i in row) for row in ids]
