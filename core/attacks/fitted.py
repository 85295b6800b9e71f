"""State shared by fitted inversion attacks (encoder, vocabulary), and checks of their input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.errors import EncoderMismatchError, InvalidInputError, NotFittedError
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.text import Vocabulary
from leakscope.core.vectors import is_sparse, n_rows


def bind(attack: Any, encoder: Encoder, vocabulary: Vocabulary | None = None) -> None:
    """Record the encoder's identity and the vocabulary on the attack that was fitted for them."""
    attack.encoder_name_ = encoder.name
    attack.encoder_fingerprint_ = encoder.fingerprint
    attack.encoder_dimension_ = encoder.dimension
    attack.vocabulary_ = vocabulary


def bound_meta(attack: Any) -> dict[str, Any]:
    """Return the encoder and vocabulary that `bind` recorded, as JSON-able metadata."""
    vocabulary = attack.vocabulary_
    return {
        "encoder_name": attack.encoder_name_,
        "encoder_fingerprint": attack.encoder_fingerprint_,
        "encoder_dimension": attack.encoder_dimension_,
        "vocabulary": None if vocabulary is None else vocabulary.to_dict(),
    }


def rebind(attack: Any, meta: dict[str, Any]) -> None:
    """Restore an attack's encoder identity and vocabulary from the metadata of `bound_meta`.

    Raises
    ------
    KeyError, TypeError
        The name or the fingerprint of the encoder is missing, or no text.
    """
    named = {key: meta[key] for key in ("encoder_name", "encoder_fingerprint")}
    if not all(isinstance(value, str) for value in named.values()):
        raise TypeError(f"an encoder has a name and a fingerprint of letters, not {named}")
    attack.encoder_name_ = named["encoder_name"]
    attack.encoder_fingerprint_ = named["encoder_fingerprint"]
    attack.encoder_dimension_ = meta.get("encoder_dimension")  # older files do not tell it
    words = meta["vocabulary"]
    attack.vocabulary_ = None if words is None else Vocabulary.from_dict(words)


def arrays_of_part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return a dict of the arrays whose names begin with a prefix, by the rest of each name."""
    return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}


def check_shapes(attack: Any, arrays: Mapping[str, NDArray[Any]], axes: Mapping[str, str]) -> None:
    """Raise unless stored weights fit each other, the vocabulary and the encoder in shape.

    Parameters
    ----------
    axes : mapping of str to str
        The axes of each array: `V` has the length of the vocabulary, `d` that of the encoder's
        vectors; any other name has one length in all arrays.

    Raises
    ------
    InvalidInputError
        An array of another shape or of whole numbers; it is named.
    """
    words = attack.vocabulary_
    known = {"V": None if words is None else len(words), "d": attack.encoder_dimension_}
    for name, letters_of_axes in axes.items():
        if name not in arrays:
            continue
        if arrays[name].dtype.kind != "f":
            raise InvalidInputError(
                f"{name!r} holds {arrays[name].dtype}, not floating-point numbers. Restore the "
                "file or train the attack again."
            )
        shape, letters = arrays[name].shape, letters_of_axes.split()
        wanted = [known.get(letter) for letter in letters]
        pairs = zip(shape, wanted, strict=False)
        if len(shape) != len(letters) or any(n != m for n, m in pairs if m is not None):
            expected = ", ".join(
                letter if n is None else f"{n}" for letter, n in zip(letters, wanted, strict=True)
            )
            raise InvalidInputError(
                f"{name!r} has the shape {shape}, not ({expected}). Restore the file or train the "
                "attack again."
            )
        known |= dict(zip(letters, shape, strict=True))


def check_vectors(
    vectors: Vectors, dimension: int, n_texts: int | None = None, *, reads_sparse: bool = False
) -> Vectors:
    """Convert vectors to float32 after checking their shape (n, dimension) and that all are finite.

    Sparse vectors stay sparse, as a csr_array.

    Raises
    ------
    InvalidInputError
        Another shape, not numbers, NaN or infinite values, or sparse where that cannot be read.
    """
    if is_sparse(vectors) and not reads_sparse:
        raise InvalidInputError(
            "This attack reads dense vectors; those of a bag of words are sparse. "
            "Use prior, retrieval, probe, mlc or msp."
        )
    try:
        array: Any = vectors if is_sparse(vectors) else np.asarray(vectors, dtype=np.float32)
        if is_sparse(vectors):
            array = sparse.csr_array(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("vectors must be an array of numbers.") from error
    if array.ndim != 2 or array.shape[1] != dimension:
        raise InvalidInputError(
            f"vectors must have shape (n, {dimension}), got {array.shape}. "
            "Encode the texts with the encoder under attack."
        )
    if n_texts is not None and n_rows(array) != n_texts:
        raise InvalidInputError(
            "vectors must be the embeddings of the texts, one each: got "
            f"{n_rows(array)} vectors for {n_texts} texts."
        )
    values = array.data if is_sparse(array) else array
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        if is_sparse(array):
            row = int(np.searchsorted(array.indptr, row, "right")) - 1
        raise InvalidInputError(
            f"vectors hold NaN or infinity, first in row {row}. Remove that row."
        )
    checked: Vectors = array
    return checked


def check_fitted(attack: Any, encoder: Encoder, vectors: Vectors) -> Vectors:
    """Raise unless an attack was fitted on this encoder; return its vectors, checked, as float32.

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
    reads_sparse = bool(getattr(attack, "reads_sparse", False))
    return check_vectors(vectors, encoder.dimension, reads_sparse=reads_sparse)
