"""What all mechanisms have in common that release a text: token by token, nothing left as it is.

A mechanism is a defence whose `privatizer(encoder, rng)` changes tokens. Every word piece goes
through it: [UNK], and special tokens that somebody typed, are inputs like any other, for they have
vectors, and are never returned while the candidates are `regular`. What shows is the number of
word pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.defences.protected import ProtectedEncoder, generator_of
from core.encoders.white_box import require_white_box
from core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder

__all__ = [
    "TextMechanism",
    "TokenPrivatizer",
    "batches_of",
    "change_of",
    "privatised_batches",
    "privatised_texts",
    "protect_texts",
]


class TokenPrivatizer(Protocol):
    """Changes tokens, each by a draw of its own.

    One may have `token_batches` besides, which gives what each of several batches becomes, and
    draws from the next while one is changed.
    """

    encoder: WhiteBoxEncoder
    ids: NDArray[np.int64]
    """The candidates: what may come out, ascending."""

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what each of (m,) tokens becomes."""
        ...


class TextMechanism(Protocol):
    """A defence that releases a text."""

    @property
    def seed(self) -> int | None:
        """Of its draws; None for what is released."""
        ...

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> TokenPrivatizer:
        """Return what changes the tokens of an encoder."""
        ...


def privatised_texts(
    privatizer: TokenPrivatizer, texts: Sequence[str], *, is_whole: bool = True
) -> list[str]:
    """Return each text privatised; `is_whole=False` reads it as far as the encoder does.

    A text in which the tokenizer finds nothing becomes the empty text.
    """
    (found,) = privatised_batches(privatizer, [texts], is_whole=is_whole)
    return found


def privatised_batches(
    privatizer: TokenPrivatizer, batches: Iterable[Sequence[str]], *, is_whole: bool = True
) -> Iterator[list[str]]:
    """Give each batch of texts privatised; the next may be read while one is compared."""
    encoder, lengths = privatizer.encoder, deque[list[int]]()

    def tokens() -> Iterator[NDArray[np.int64]]:
        for texts in batches:
            ids = encoder.token_ids(texts, is_whole=is_whole) if texts else []
            lengths.append([len(row) for row in ids])
            yield np.array([i for row in ids for i in row], dtype=np.int64)

    change = getattr(privatizer, "token_batches", partial(map, privatizer.tokens))
    for changed in change(tokens()):
        ends = np.cumsum(lengths.popleft())
        parts = np.split(changed, ends[:-1]) if len(ends) else []
        yield [encoder.text_of(part.tolist()) for part in parts]


def change_of(
    mechanism: TextMechanism, encoder: Encoder, *, is_whole: bool = True
) -> Callable[[Sequence[str]], list[str]]:
    """Return what turns texts into privatised ones, noise drawn anew at every call.

    Raises
    ------
    InvalidInputError
        The encoder is a black box: it has no tokens to exchange.
    """
    change = batches_of(mechanism, encoder, is_whole=is_whole)

    def changed(texts: Sequence[str]) -> list[str]:
        (found,) = change([texts])
        return found

    return changed


def batches_of(
    mechanism: TextMechanism, encoder: Encoder, *, is_whole: bool = True
) -> Callable[[Iterable[Sequence[str]]], Iterator[list[str]]]:
    """Return the same for batches of texts, of which the next may be read while one is changed.

    Raises
    ------
    InvalidInputError
        The encoder is a black box: it has no tokens to exchange.
    """
    known = require_white_box(encoder, type(mechanism).__name__)
    privatizer = mechanism.privatizer(known, generator_of(mechanism.seed))
    return partial(privatised_batches, privatizer, is_whole=is_whole)


def protect_texts(mechanism: Any, encoder: Encoder) -> ProtectedEncoder:
    """Return the encoder of privatised texts: what is released is a text."""
    change = change_of(mechanism, encoder, is_whole=False)

    def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
        return encoder.encode(change(texts), on_progress)

    return ProtectedEncoder.of(encoder, mechanism, transform)
