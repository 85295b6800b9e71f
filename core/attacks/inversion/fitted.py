"""What every fitted inversion attack shares: which encoder and words it knows, and the checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.errors import EncoderMismatchError, InvalidInputError, NotFittedError
from core.protocols import Encoder, Vectors
from core.text import Vocabulary

__all__ = ["bind", "bound_meta", "check_fitted", "check_vectors", "rebind"]


def bind(attack: Any, encoder: Encoder, vocabulary: Vocabulary | None = None) -> None:
    """Record on the attack which encoder, and which words, it was fitted for."""
    attack.encoder_name_ = encoder.name
    attack.encoder_fingerprint_ = encoder.fingerprint
    attack.vocabulary_ = vocabulary


def bound_meta(attack: Any) -> dict[str, Any]:
    """Return what `bind` recorded in a JSON-able form."""
    vocabulary = attack.vocabulary_
    return {
        "encoder_name": attack.encoder_name_,
        "encoder_fingerprint": attack.encoder_fingerprint_,
        "vocabulary": None if vocabulary is None else vocabulary.to_dict(),
    }


def rebind(attack: Any, meta: dict[str, Any]) -> None:
    """Restore what `bound_meta` returned."""
    attack.encoder_name_ = meta["encoder_name"]
    attack.encoder_fingerprint_ = meta["encoder_fingerprint"]
    words = meta["vocabulary"]
    attack.vocabulary_ = None if words is None else Vocabulary.from_dict(words)


def check_vectors(vectors: Vectors, dimension: int, n_texts: int | None = None) -> Vectors:
    """Return the vectors as float32 of shape (n, dimension), n being n_texts where it is given.

    Raises
    ------
    InvalidInputError
        Another shape, not numbers, or NaN or infinite values.
    """
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("vectors must be an array of numbers.") from error
    if array.ndim != 2 or array.shape[1] != dimension:
        raise InvalidInputError(
            f"vectors must have shape (n, {dimension}), got {array.shape}. "
            "Encode the texts with the encoder under attack."
        )
    if n_texts is not None and len(array) != n_texts:
        raise InvalidInputError(
            f"vectors must be the embeddings of the texts, one each: got {len(array)} vectors for "
            f"{n_texts} texts."
        )
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise InvalidInputError(
            f"vectors hold NaN or infinity, first in row {row}. Remove that row."
        )
    return array


def check_fitted(attack: Any, encoder: Encoder, vectors: Vectors) -> Vectors:
    """Check that `attack` was fitted on `encoder` and that the vectors are usable.

    Raises
    ------
    NotFittedError
        The attack was neither trained nor loaded.
    EncoderMismatchError
        It was trained on another encoder; both are named.
    """
    name = type(attack).__name__
    known = getattr(attack, "encoder_fingerprint_", None)
    if known is None:
        raise NotFittedError(f"{name} is not trained: call fit, or load trained weights.")
    if known != encoder.fingerprint:
        raise EncoderMismatchError(
            f"{name} was trained on encoder {attack.encoder_name_!r} "
            f"(fingerprint {known[:12]}) and cannot read vectors of {encoder.name!r} "
            f"({encoder.fingerprint[:12]}). Train it on that encoder."
        )
    return check_vectors(vectors, encoder.dimension)
