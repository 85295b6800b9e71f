"""What a learned black-box attack trains on: vectors and the words of their texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.attacks.fitted import check_vectors
from core.attacks.inversion.augmentation import substitute_words
from core.errors import InvalidInputError
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.text import STOP_WORDS, Vocabulary, check_texts
from core.vectors import stack

__all__ = ["TrainingPairs", "collect_pairs"]

_Rows = list[NDArray[np.int32]]


@dataclass(frozen=True)
class TrainingPairs:
    """Vectors with the vocabulary positions of their texts' words, split for validation."""

    vocabulary: Vocabulary
    vectors: Vectors
    rows: _Rows
    validation_vectors: Vectors
    validation_rows: _Rows
    digest: str
    """SHA-256 of the texts in order: the identity of a checkpoint."""

    @property
    def mean_words(self) -> float:
        """Mean |W(x) ∩ V| of the training texts."""
        return float(np.mean([len(r) for r in self.rows]))


def collect_pairs(
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors | None,
    *,
    vocabulary_size: int,
    keep_stop_words: bool,
    validation_share: float,
    max_validation: int = 5_000,
    substitutions: int = 0,
    seed: int = 0,
    reads_sparse: bool = False,
    on_progress: OnProgress = no_progress,
) -> TrainingPairs:
    """Encode the auxiliary texts and set a validation split aside.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n, d), optional
        The embeddings of `texts` where they exist already.
    validation_share : float
        Share of the texts set aside, `max_validation` texts at most.
    substitutions : int
        Copies of every training text with words exchanged, encoded as well.
    reads_sparse : bool
        Whether the attack can read sparse vectors; else they are refused.

    Raises
    ------
    InvalidInputError
        Fewer than 20 texts hold a word of the vocabulary.
    """
    texts = check_texts(texts)
    stop_words: frozenset[str] = frozenset() if keep_stop_words else STOP_WORDS
    vocabulary = Vocabulary.count(texts, size=vocabulary_size, stop_words=stop_words)
    order = np.random.default_rng(seed).permutation(len(texts))
    n_validation = min(max_validation, round(validation_share * len(texts)))
    held, kept = order[:n_validation], order[n_validation:]
    share = 1 / (1 + substitutions)
    if vectors is None:
        vectors = encoder.encode(texts, lambda f, m: on_progress(f * share, m))
    vectors = check_vectors(vectors, encoder.dimension, len(texts), reads_sparse=reads_sparse)
    all_rows = vocabulary.rows(texts)
    train_vectors, train_rows = [vectors[kept]], [all_rows[i] for i in kept]
    for copy in range(substitutions):
        changed = substitute_words([texts[i] for i in kept], vocabulary, seed=seed + 1 + copy)
        train_vectors.append(encoder.encode(changed, _later(on_progress, 1 + copy, share)))
        train_rows += vocabulary.rows(changed)
    stacked, found = _with_words(stack(train_vectors), train_rows)
    held_vectors, held_rows = _with_words(vectors[held], [all_rows[i] for i in held])
    if len(found) < 20 or not held_rows:
        raise InvalidInputError(
            f"Only {len(found)} training and {len(held_rows)} validation texts hold a word of "
            "the vocabulary; give more texts or a larger validation share."
        )
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    return TrainingPairs(vocabulary, stacked, found, held_vectors, held_rows, digest)


def _later(on_progress: OnProgress, number: int, share: float) -> OnProgress:
    """Report the progress of one of several parts of equal share."""
    return lambda fraction, message: on_progress((number + fraction) * share, message)


def _with_words(vectors: Vectors, rows: _Rows) -> tuple[Vectors, _Rows]:
    """Leave out texts that hold no word of the vocabulary."""
    keep = [i for i, r in enumerate(rows) if len(r)]
    return vectors[keep], [rows[i] for i in keep]
