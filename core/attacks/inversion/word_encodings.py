"""The encodings of single vocabulary words, from which learned attacks can start."""

from __future__ import annotations

import numpy as np

from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.text import Vocabulary
from leakscope.core.vectors import is_sparse


def encode_words(
    encoder: Encoder,
    vocabulary: Vocabulary,
    on_progress: OnProgress = no_progress,
    *,
    centre: Vectors | None = None,
) -> Vectors:
    """Encode every vocabulary word alone and subtract the mean: Φ(w) − μ, float32 (|V|, d).

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
