"""Fine-tune a trained word classifier on changed vectors, such as those behind a defence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from leakscope.core.attacks.inversion.classifiers.network import Teacher
from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.pairs import TrainingPairs, drop_wordless
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.specs import setting_values
from leakscope.core.text import Vocabulary

WORD_RATE = 0.1
"""Factor on the learning rate of the word weights, which were learned from far more texts."""


def pairs_in_vocabulary(
    vocabulary: Vocabulary,
    known: tuple[Sequence[str], Sequence[Vectors]],
    held: tuple[Sequence[str], Vectors],
) -> TrainingPairs:
    """Pair vectors with their texts' words in a given vocabulary, to train and validate on.

    Parameters
    ----------
    known : (texts, vectors)
        Each array holds one vector for each text; several arrays where noise was drawn repeatedly.
    held : (texts, vectors)
        Validation texts to choose the best epoch by; none is among the known.

    Raises
    ------
    InvalidInputError
        A text is on both sides, or a side holds no word of the vocabulary.
    """
    texts, copies = known
    both = set(texts) & set(held[0])
    if both:
        raise InvalidInputError(
            f"{len(both)} texts are in both the training and the validation set. Hold out other "
            "texts."
        )
    rows = [vocabulary.rows(texts)] * len(copies)
    vectors, found = drop_wordless(np.concatenate(copies), [row for each in rows for row in each])
    held_vectors, held_rows = drop_wordless(held[1], vocabulary.rows(held[0]))
    if not found or not held_rows:
        raise InvalidInputError("No text contains a word of the vocabulary. Give other texts.")
    digest = hashlib.sha256("\0".join([*texts, *held[0]]).encode()).hexdigest()
    return TrainingPairs(vocabulary, vectors, found, held_vectors, held_rows, digest)


def teacher_for(attack: ProbeMLCAttack, texts: Sequence[str], vectors: Vectors) -> Teacher:
    """Build the soft targets for fine-tuning: a trained classifier's on texts' unchanged vectors.

    Parameters
    ----------
    texts, vectors : sequence of str, ndarray of float32, shape (n, d)
        The known texts of `pairs_in_vocabulary`, and their unchanged vectors.
    """
    unchanged, _ = drop_wordless(vectors, attack.vocabulary_.rows(texts))
    return Teacher(attack.model_, unchanged)


def fine_tune(
    attack: ProbeMLCAttack,
    encoder: Encoder,
    pairs: TrainingPairs,
    *,
    epochs: int,
    learning_rate: float,
    teacher: Teacher | None = None,
    on_progress: OnProgress = no_progress,
) -> ProbeMLCAttack:
    """Return a copy of a trained classifier, fine-tuned on other pairs.

    The validation texts choose the best epoch, the start included: where fine-tuning only makes
    it worse, the weights stay as they were.

    Parameters
    ----------
    encoder : Encoder
        That `attack` was fitted on; its vocabulary is that of the pairs.
    teacher : Teacher, optional
        Of the same texts in the same order (`teacher_for`).

    Raises
    ------
    InvalidInputError
        The teacher answers for another number of texts.
    """
    if teacher is not None and len(pairs.rows) % len(teacher):
        raise InvalidInputError(
            f"The teacher has answers for {len(teacher):,} texts, but there are "
            f"{len(pairs.rows):,} training texts. Give it the vectors of the same texts."
        )
    settings = setting_values(attack) | {"epochs": epochs, "learning_rate": learning_rate}
    tuned = ProbeMLCAttack(**settings).load_state(*attack.state())
    tuned._word_rate = WORD_RATE
    model = tuned.model_
    if model.residual is not None:
        model.residual.dropout.p = tuned.dropout
    tuned.log_ = tuned._train(pairs, encoder, on_progress, None, counts_start=True, teacher=teacher)
    return tuned
