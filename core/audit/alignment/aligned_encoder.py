"""A foreign encoder whose vectors are mapped into a known encoder's space."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from leakscope.core.audit.alignment.linear import LinearAlignment
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress


class AlignedEncoder:
    """Encode texts with `foreign` and map the vectors into the space of `known`.

    Attacks that were fitted on `known` run on its vectors, and `known` is the encoder
    that an attack may ask.

    Parameters
    ----------
    foreign : Encoder
        Where the vectors come from.
    known : Encoder
        Whose space they are mapped into.
    alignment : LinearAlignment

    Raises
    ------
    InvalidInputError
        The alignment maps between other dimensions.
    """

    def __init__(self, foreign: Encoder, known: Encoder, alignment: LinearAlignment) -> None:
        widths = alignment.weights.shape
        if widths != (foreign.dimension, known.dimension):
            raise InvalidInputError(
                f"alignment must map {foreign.dimension} to {known.dimension} dimensions, got "
                f"{widths[0]} to {widths[1]}. Fit it on vectors of the two encoders."
            )
        self.foreign, self.alignment = foreign, alignment
        self.name = f"{foreign.name} in the space of {known.name}"
        self.dimension = known.dimension
        own = hashlib.sha256(alignment.weights.tobytes() + alignment.mean.tobytes()).hexdigest()
        self.fingerprint = f"{foreign.fingerprint}|{own[:16]}"

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the mapped vectors of texts, shape (n, d), float32, of norm 1."""
        return self.alignment.apply(self.foreign.encode(texts, on_progress))
