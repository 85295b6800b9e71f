"""The start that the encoder itself offers: each vocabulary word, encoded alone."""

from __future__ import annotations

import numpy as np

from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.text import Vocabulary
from core.vectors import is_sparse

__all__ = ["encode_words"]


def encode_words(
    encoder: Encoder,
    vocabulary: Vocabulary,
    on_progress: OnProgress = no_progress,
    *,
    centre: Vectors | None = None,
) -> Vectors:
    """Return Φ(w) − μ of every vocabulary word, shape (|V|, d) float32.

    A zero-shot attacker needs nothing else, and a learned one starts from it. μ is `centre`, or
    the mean Φ(w): a direction that is common to all short texts and says nothing about the word.
    Sparse encodings have none, and stay as they are.
    """
    vectors = encoder.encode(list(vocabulary.words), on_progress)
    if is_sparse(vectors):
        return vectors
    centred: Vectors = np.asarray(
        vectors - (vectors.mean(0) if centre is None else centre), dtype=np.float32
    )
    return centred
