"""A trained classifier, trained on: for vectors that are no longer those that it was trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.classifiers.network import Teacher
from core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from core.attacks.inversion.pairs import TrainingPairs
from core.errors import InvalidInputError
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.specs import settings_of
from core.text import Vocabulary

__all__ = ["paired", "taught", "tune"]

WORD_RATE = 0.1
"""Of the learning rate, for the word vectors: they know their words from far more texts."""


def paired(
    vocabulary: Vocabulary,
    known: tuple[Sequence[str], Sequence[Vectors]],
    held: tuple[Sequence[str], Vectors],
) -> TrainingPairs:
    """Return pairs to train on in a vocabulary that stands already.

    Parameters
    ----------
    known : (texts, vectors)
        Of each text a vector in every one of the arrays: several where noise was drawn anew.
    held : (texts, vectors)
        To choose the best epoch by; none of them is among the known.

    Raises
    ------
    InvalidInputError
        A text is on both sides, or a side holds no word of the vocabulary.
    """
    texts, copies = known
    both = set(texts) & set(held[0])
    if both:
        raise InvalidInputError(
            f"{len(both)} texts are to be trained on and to choose by. Hold other texts out."
        )
    rows, vectors = _with_words(vocabulary.rows(texts), copies)
    held_rows, held_vectors = _with_words(vocabulary.rows(held[0]), [held[1]])
    if not rows or not held_rows:
        raise InvalidInputError("No text holds a word of the vocabulary: give other texts.")
    digest = hashlib.sha256("\0".join([*texts, *held[0]]).encode()).hexdigest()
    return TrainingPairs(vocabulary, vectors, rows, held_vectors, held_rows, digest)


def _with_words(
    rows: Sequence[NDArray[np.int32]], copies: Sequence[Vectors]
) -> tuple[list[NDArray[np.int32]], Vectors]:
    """Leave out texts that hold no word, in each of the copies, and join these."""
    kept = [i for i, row in enumerate(rows) if len(row)]
    return [rows[i] for i in kept] * len(copies), np.concatenate([c[kept] for c in copies])


def taught(attack: ProbeMLCAttack, texts: Sequence[str], vectors: Vectors) -> Teacher:
    """Return the answers of a trained classifier to vectors as they were, to tune by.

    Parameters
    ----------
    texts, vectors : sequence of str, ndarray of float32, shape (n, d)
        The known texts of `paired`, and their vectors without what changes these.
    """
    _, unchanged = _with_words(attack.vocabulary_.rows(texts), [vectors])
    return Teacher(attack.model_, unchanged)


def tune(
    attack: ProbeMLCAttack,
    encoder: Encoder,
    pairs: TrainingPairs,
    *,
    epochs: int,
    learning_rate: float,
    teacher: Teacher | None = None,
    on_progress: OnProgress = no_progress,
) -> ProbeMLCAttack:
    """Return a copy of a trained classifier that was trained on with other pairs.

    The texts held out choose among its epochs, and the weights that it started with: where more
    training only forgets, it stays as it was.

    Parameters
    ----------
    encoder : Encoder
        That `attack` was fitted on; its vocabulary is that of the pairs.
    teacher : Teacher, optional
        Of the same texts in the same order (`taught`).

    Raises
    ------
    InvalidInputError
        The teacher answers for another number of texts.
    """
    if teacher is not None and len(pairs.rows) % len(teacher):
        raise InvalidInputError(
            f"The teacher answers for {len(teacher):,} texts, and {len(pairs.rows):,} are to be "
            "trained on. Give it the vectors of the same texts."
        )
    settings = {name: getattr(attack, name) for name in settings_of(type(attack))}
    settings |= {"epochs": epochs, "learning_rate": learning_rate}
    tuned = ProbeMLCAttack(**settings).load_state(*attack.state())
    tuned._word_rate = WORD_RATE
    model = tuned.model_
    if model.residual is not None:
        model.residual.dropout.p = tuned.dropout
    tuned.log_ = tuned._train(pairs, encoder, on_progress, None, counts_start=True, teacher=teacher)
    return tuned
