"""Shared code of mechanisms that release a text: every token is replaced on its own.

A mechanism is a defence whose `privatizer(encoder, rng)` changes tokens. Every word piece goes
through it: [UNK], and special tokens that somebody typed, are inputs like any other, for they have
vectors, and are never returned while the candidates are `regular`. What shows is the number of
word pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.protected import ProtectedEncoder, generator_of
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder


class TokenPrivatizer(Protocol):
    """Replaces tokens, each by an independent draw.

    An implementation may also have `token_batches`, which changes a stream of batches and draws
    from the next while one is changed.
    """

    encoder: WhiteBoxEncoder
    ids: NDArray[np.int64]
    """The candidates: what may come out, ascending."""

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw a replacement for each of (m,) token ids; return the new ids."""
        ...


class TextMechanism(Protocol):
    """A defence that releases a text: every token is replaced on its own."""

    @property
    def seed(self) -> int | None:
        """Seed of the draws; None for releases."""
        ...

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> TokenPrivatizer:
        """Build the object that replaces an encoder's tokens, with draws from `rng`."""
        ...

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder that privatises texts, then encodes them with the given encoder."""
        change = text_privatiser(self, encoder, is_whole=False)

        def transform(texts: Sequence[str], on_progress: OnProgress) -> Vectors:
            return encoder.encode(change(texts), on_progress)

        return ProtectedEncoder.of(encoder, self, transform)


def privatise_texts(
    privatizer: TokenPrivatizer, texts: Sequence[str], *, is_whole: bool = True
) -> list[str]:
    """Privatise texts and return the new ones; `is_whole=False` cuts overlong texts.

    A text in which the tokenizer finds nothing becomes the empty text.
    """
    (found,) = privatise_batches(privatizer, [texts], is_whole=is_whole)
    return found


def privatise_batches(
    privatizer: TokenPrivatizer, batches: Iterable[Sequence[str]], *, is_whole: bool = True
) -> Iterator[list[str]]:
    """Privatise a stream of batches of texts; yield a list of new texts for each batch."""
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


def text_privatiser(
    mechanism: TextMechanism, encoder: Encoder, *, is_whole: bool = True
) -> Callable[[Sequence[str]], list[str]]:
    """Return a function from a list of texts to privatised texts, with fresh noise at every call.

    Raises
    ------
    InvalidInputError
        The encoder is a black box: it has no tokens to exchange.
    """
    change = batch_privatiser(mechanism, encoder, is_whole=is_whole)

    def changed(texts: Sequence[str]) -> list[str]:
        (found,) = change([texts])
        return found

    return changed


def batch_privatiser(
    mechanism: TextMechanism, encoder: Encoder, *, is_whole: bool = True
) -> Callable[[Iterable[Sequence[str]]], Iterator[list[str]]]:
    """Return a function from a stream of batches to privatised batches, with fresh noise.

    Raises
    ------
    InvalidInputError
        The encoder is a black box: it has no tokens to exchange.
    """
    known = require_white_box(encoder, type(mechanism).__name__)
    privatizer = mechanism.privatizer(known, generator_of(mechanism.seed))
    return partial(privatise_batches, privatizer, is_whole=is_whole)
