"""Training by gensim: told how far it is, stopped, and the same in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from gensim.models.callbacks import CallbackAny2Vec

from core.errors import InvalidInputError
from core.protocols import OnProgress

__all__ = ["EpochReport", "stable_hash", "train_gensim"]


class EpochReport(CallbackAny2Vec):
    """Tells how many of gensim's training epochs are done."""

    def __init__(self, on_progress: OnProgress, epochs: int) -> None:
        self.on_progress, self.epochs, self.done = on_progress, epochs, 0

    def on_epoch_end(self, model: Any) -> None:
        """Report; StoppedError ends the training."""
        self.done += 1
        self.on_progress(self.done / self.epochs, f"Epoch {self.done} of {self.epochs}")


def train_gensim(
    model: Any, sentences: Sequence[Any], epochs: int, on_progress: OnProgress
) -> None:
    """Count the words of sentences and train a model on them.

    Raises
    ------
    InvalidInputError
        No word stands as often as the model's `min_count` asks.
    StoppedError
        `on_progress` asked to stop.
    """
    model.build_vocab(sentences)
    if not len(model.wv):
        raise InvalidInputError(f"No word stands {model.min_count} times. Give more texts.")
    model.train(
        sentences,
        total_examples=len(sentences),
        epochs=epochs,
        callbacks=[EpochReport(on_progress, epochs)],
    )


def stable_hash(text: str) -> int:
    """Return the same number for a text in every process, unlike Python's own hash."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())
