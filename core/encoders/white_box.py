"""Whether an encoder lets an attacker see its weights, and how much of a text it reads."""

from __future__ import annotations

from typing import cast

from core.errors import InvalidInputError
from core.protocols import Encoder, WhiteBoxEncoder
from core.text import mark_words, words

__all__ = ["part_read", "require_white_box", "words_read"]


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


def part_read(encoder: Encoder, text: str) -> str:
    """Return how much of a text its vector is of: encoders cut long texts off.

    Whole words from the start, of the text's NFKC form; all of the text where the encoder does not
    tell its tokens.
    """
    if not hasattr(encoder, "token_ids"):
        return text
    limit = len(encoder.token_ids([text])[0])
    if len(encoder.token_ids([text], is_whole=True)[0]) <= limit:
        return text
    pieces = [piece for piece, _ in mark_words(text)]
    low, high = 0, len(pieces)  # pieces[:low] fits, pieces[:high] does not
    while high - low > 1:
        middle = (low + high) // 2
        n_tokens = len(encoder.token_ids(["".join(pieces[:middle])], is_whole=True)[0])
        low, high = (middle, high) if n_tokens <= limit else (low, middle)
    return "".join(pieces[:low])


def words_read(encoder: Encoder, text: str) -> tuple[int, int]:
    """Return how many words of a text its vector is of, and how many there are.

    Repetitions count each: this is how far the encoder reads, not what it may give away.
    """
    return len(words(part_read(encoder, text))), len(words(text))
