"""Training by gensim with progress, cancellation and reproducible results."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from gensim.models.callbacks import CallbackAny2Vec

from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress


class EpochReport(CallbackAny2Vec):
    """A gensim callback that reports finished training epochs."""

    def __init__(self, on_progress: OnProgress, epochs: int) -> None:
        self.on_progress, self.epochs, self.done = on_progress, epochs, 0

    def on_epoch_end(self, model: Any) -> None:
        """Report an epoch's end; a StoppedError from `on_progress` ends the training."""
        self.done += 1
        self.on_progress(self.done / self.epochs, f"Epoch {self.done} of {self.epochs}")


def train_gensim(
    model: Any, sentences: Sequence[Any], epochs: int, on_progress: OnProgress
) -> None:
    """Build a gensim model's vocabulary from sentences and train the model in place on them.

    Raises
    ------
    InvalidInputError
        No word occurs as often as the model's `min_count` requires.
    StoppedError
        `on_progress` requested a stop.
    """
    model.build_vocab(sentences)
    if not len(model.wv):
        raise InvalidInputError(f"No word occurs {model.min_count} times. Provide more texts.")
    model.train(
        sentences,
        total_examples=len(sentences),
        epochs=epochs,
        callbacks=[EpochReport(on_progress, epochs)],
    )


def stable_hash(text: str) -> int:
    """Return an integer hash of a text that is the same in every process, unlike Python's own."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())
