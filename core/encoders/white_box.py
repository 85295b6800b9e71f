"""Whether an encoder lets an attacker see its weights."""

from __future__ import annotations

from typing import cast

from core.errors import InvalidInputError
from core.protocols import Encoder, WhiteBoxEncoder

__all__ = ["require_white_box"]


def require_white_box(encoder: Encoder, attack: str) -> WhiteBoxEncoder:
    """Return the encoder if its weights are open to the attacker.

    Raises
    ------
    InvalidInputError
        It answers queries alone; the message names attack and encoder.
    """
    if not hasattr(encoder, "embed_token_vectors"):
        raise InvalidInputError(
            f"{attack} needs a white-box encoder: token vectors and gradients. {encoder.name!r} "
            "is a black box. Choose `minilm` or an `mlm:ID` encoder, or a black-box attack."
        )
    return cast(WhiteBoxEncoder, encoder)
