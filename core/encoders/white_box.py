"""Whether an encoder lets an attacker see its weights, and how much of a text it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidInputError
from core.protocols import Encoder, WhiteBoxEncoder
from core.text import mark_words, word_set, words

__all__ = ["parts_read", "read_and_unread", "require_white_box", "token_table", "words_read"]


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


def token_table(encoder: WhiteBoxEncoder) -> NDArray[np.float32]:
    """Return the encoder's token vectors, float32 (V, n), in memory; not to be written to."""
    table: NDArray[np.float32] = encoder.token_vectors.detach().float().cpu().numpy()
    return table


def parts_read(encoder: Encoder, texts: Sequence[str]) -> list[str]:
    """Return the part of each text that its vector is of: encoders cut long texts off.

    Whole words from the start, of the text's NFKC form where it is cut. All of a text where neither
    the encoder nor the one that it wraps (`base`) has `token_ids`.
    """
    reader: Any = encoder
    while not hasattr(reader, "token_ids"):
        if not hasattr(reader, "base"):
            return list(texts)
        reader = reader.base
    limits = [len(ids) for ids in reader.token_ids(texts)] if len(texts) else []
    wholes = [len(ids) for ids in reader.token_ids(texts, is_whole=True)] if len(texts) else []
    return [
        text if whole <= limit else _cut(reader, text, limit)
        for text, limit, whole in zip(texts, limits, wholes, strict=True)
    ]


def _cut(reader: Any, text: str, limit: int) -> str:
    """Return as many pieces of a text as fit into so many tokens."""
    pieces = [piece for piece, _ in mark_words(text)]
    low, high = 0, len(pieces)  # pieces[:low] fits, pieces[:high] does not
    while high - low > 1:
        middle = (low + high) // 2
        n_tokens = len(reader.token_ids(["".join(pieces[:middle])], is_whole=True)[0])
        low, high = (middle, high) if n_tokens <= limit else (low, middle)
    return "".join(pieces[:low])


def read_and_unread(encoder: Encoder, text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a text that its vector is of, and those that stand only beyond them.

    An attack cannot find the second in the vector: they are neither found nor missed.
    """
    (part,) = parts_read(encoder, [text])
    read = word_set(part)
    return read, word_set(text) - read


def words_read(encoder: Encoder, text: str) -> tuple[int, int]:
    """Return how many words of a text its vector is of, and how many there are.

    Repetitions count each: this is how far the encoder reads, not what it may give away.
    """
    (part,) = parts_read(encoder, [text])
    return len(words(part)), len(words(text))
