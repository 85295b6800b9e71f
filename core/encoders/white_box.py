"""White-box access to an encoder, and the part of a text that an encoder uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, WhiteBoxEncoder
from leakscope.core.text import mark_words, word_set, words


def require_white_box(encoder: Encoder, attack: str) -> WhiteBoxEncoder:
    """Return the encoder unchanged if it is a white box, else raise InvalidInputError.

    Raises
    ------
    InvalidInputError
        It is a black box; the message names attack and encoder.
    """
    if not hasattr(encoder, "embed_token_vectors"):
        raise InvalidInputError(
            f"{attack} needs a white-box encoder, with token vectors and gradients. "
            f"{encoder.name!r} is a black box. Choose `minilm` or an `mlm:ID` encoder, or a "
            "black-box attack."
        )
    return cast(WhiteBoxEncoder, encoder)


def token_table(encoder: WhiteBoxEncoder) -> NDArray[np.float32]:
    """Return the encoder's token vectors as a (V, n) float32 array, which must not be modified."""
    table: NDArray[np.float32] = encoder.token_vectors.detach().float().cpu().numpy()
    return table


def parts_read(encoder: Encoder, texts: Sequence[str]) -> list[str]:
    """Return each text up to where the encoder truncates it, in whole words.

    Whole words from the start, in NFKC form if truncated. The whole text if neither the encoder nor
    the one that it wraps (`base`) has `token_ids`.
    """
    reader: Any = encoder
    while not hasattr(reader, "token_ids"):
        if not hasattr(reader, "base"):
            return list(texts)
        reader = reader.base
    limits = [len(ids) for ids in reader.token_ids(texts)] if len(texts) else []
    wholes = [len(ids) for ids in reader.token_ids(texts, is_whole=True)] if len(texts) else []
    return [
        text if whole <= limit else _truncate(reader, text, limit)
        for text, limit, whole in zip(texts, limits, wholes, strict=True)
    ]


def _truncate(reader: Any, text: str, limit: int) -> str:
    """Cut a text to its longest prefix of whole words within a number of tokens."""
    pieces = [piece for piece, _ in mark_words(text)]
    low, high = 0, len(pieces)  # pieces[:low] fits, pieces[:high] does not
    while high - low > 1:
        middle = (low + high) // 2
        n_tokens = len(reader.token_ids(["".join(pieces[:middle])], is_whole=True)[0])
        low, high = (middle, high) if n_tokens <= limit else (low, middle)
    return "".join(pieces[:low])


def read_and_unread(encoder: Encoder, text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the set of words of a text before the encoder's truncation, and those only after it.

    The vector does not contain the second, so attacks are not scored on them.
    """
    (part,) = parts_read(encoder, [text])
    read = word_set(part)
    return read, word_set(text) - read


def words_read(encoder: Encoder, text: str) -> tuple[int, int]:
    """Return the number of words of a text before the encoder's truncation, and of all its words.

    Repeated words count each time: this is the encoder's limit, not its leakage.
    """
    (part,) = parts_read(encoder, [text])
    return len(words(part)), len(words(text))
