"""Training data of learned black-box attacks: vectors and the words of their texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.fitted import check_vectors
from leakscope.core.attacks.inversion.augmentation import substitute_words
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress, part_progress
from leakscope.core.specs import setting_values
from leakscope.core.text import STOP_WORDS, Vocabulary, check_texts
from leakscope.core.training.loop import Loop
from leakscope.core.vectors import stack

_MOST_VALIDATION = 5_000
_Rows = list[NDArray[np.int32]]


@dataclass(frozen=True)
class TrainingPairs:
    """Training and validation pairs: vectors, and vocabulary positions of their texts' words."""

    vocabulary: Vocabulary
    vectors: Vectors
    rows: _Rows
    validation_vectors: Vectors
    validation_rows: _Rows
    digest: str
    """SHA-256 of the texts in order: the identity of a checkpoint."""

    @property
    def mean_words(self) -> float:
        """The mean number of vocabulary words per training text, |W(x) ∩ V|."""
        return float(np.mean([len(r) for r in self.rows]))


def collect_pairs(
    attack: Any,
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors | None = None,
    on_progress: OnProgress = no_progress,
) -> TrainingPairs:
    """Encode auxiliary texts and pair them with their words, with a validation split set aside.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n, d), optional
        The embeddings of `texts` where they exist already.

    Raises
    ------
    InvalidInputError
        Fewer than 20 texts hold a word of the vocabulary.
    """
    texts = check_texts(texts)
    stop_words: frozenset[str] = frozenset() if attack.keep_stop_words else STOP_WORDS
    vocabulary = Vocabulary.count(texts, size=attack.vocabulary_size, stop_words=stop_words)
    order = np.random.default_rng(attack.seed).permutation(len(texts))
    n_validation = min(_MOST_VALIDATION, round(attack.validation_share * len(texts)))
    held, kept = order[:n_validation], order[n_validation:]
    share = 1 / (1 + attack.substitutions)
    if vectors is None:
        vectors = encoder.encode(texts, part_progress(on_progress, 0.0, share))
    is_sparse = attack.reads_sparse
    vectors = check_vectors(vectors, encoder.dimension, len(texts), reads_sparse=is_sparse)
    all_rows = vocabulary.rows(texts)
    train_vectors, train_rows = [vectors[kept]], [all_rows[i] for i in kept]
    for copy in range(attack.substitutions):
        seed = attack.seed + 1 + copy
        changed = substitute_words([texts[i] for i in kept], vocabulary, seed=seed)
        ends = ((1 + copy) * share, (2 + copy) * share)
        train_vectors.append(encoder.encode(changed, part_progress(on_progress, *ends)))
        train_rows += vocabulary.rows(changed)
    stacked, found = drop_wordless(stack(train_vectors), train_rows)
    held_vectors, held_rows = drop_wordless(vectors[held], [all_rows[i] for i in held])
    if len(found) < 20 or not held_rows:
        raise InvalidInputError(
            f"Only {len(found)} training and {len(held_rows)} validation texts contain a word of "
            "the vocabulary. Give more texts or a larger validation share."
        )
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    return TrainingPairs(vocabulary, stacked, found, held_vectors, held_rows, digest)


def drop_wordless(vectors: Vectors, rows: _Rows) -> tuple[Vectors, _Rows]:
    """Return vectors and word rows without the texts that hold no word of the vocabulary."""
    keep = [i for i, r in enumerate(rows) if len(r)]
    return vectors[keep], [rows[i] for i in keep]


def mean_f1(answers: Iterable[NDArray[np.integer]], rows: Iterable[NDArray[np.integer]]) -> float:
    """Return the mean F1 (×100) of n answers against the words of n texts, as vocabulary positions.

    Parameters
    ----------
    answers, rows : iterables of n int arrays
        Positions in the vocabulary, each at most once in an array.
    """
    pairs = zip(answers, rows, strict=True)
    return 100 * float(np.mean([2 * np.isin(a, r).sum() / (len(a) + len(r)) for a, r in pairs]))


def training_loop(
    attack: Any,
    name: str,
    encoder: Encoder,
    pairs: TrainingPairs,
    checkpoint_dir: str | None,
    *,
    counts_start: bool = False,
) -> Loop:
    """Build the training loop from an attack's settings; `name` distinguishes its checkpoints."""
    return Loop(
        n=len(pairs.rows),
        epochs=attack.epochs,
        batch_size=attack.batch_size,
        seed=attack.seed,
        identity={
            "attack": name,
            "settings": setting_values(attack),
            "encoder": encoder.fingerprint,
            "texts": pairs.digest,
        },
        decay=attack.decay,
        patience=attack.patience,
        counts_start=counts_start,
        checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir),
    )
