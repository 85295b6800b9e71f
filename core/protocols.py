"""Protocols of encoders, attacks and defences: structural types, no base classes.

An encoder turns texts into vectors. An attack is fitted against an encoder and turns vectors
back into words. A defence wraps an encoder and *is* an encoder, so every attack runs on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

    from leakscope.core.results import Recovery

Vectors = NDArray[np.float32]
"""A float32 array of shape (n, dimension): one embedding a row.

Bags of words are too wide for that: they are a scipy `csr_array` of the same shape, and stay sparse
in cache and attacks (`leakscope.core.vectors`).
"""

OnProgress = Callable[[float, str], None]
"""Called with a fraction in [0, 1] and a sentence; may raise StoppedError to stop the work."""


def no_progress(fraction: float, message: str) -> None:
    """Do nothing: the default of every `on_progress` argument."""


def part_progress(on_progress: OnProgress, low: float, high: float) -> OnProgress:
    """Return a callback that maps progress in [0, 1] of one step to [low, high] of the whole.

    Examples
    --------
    >>> second_half = part_progress(lambda fraction, message: print(fraction), 0.5, 1.0)
    >>> second_half(0.5, "Working")
    0.75
    """

    def report(fraction: float, message: str) -> None:
        """Report the fraction of this step as a fraction of the whole."""
        on_progress(low + (high - low) * min(fraction, 1.0), message)

    return report


def monotonic_progress(on_progress: OnProgress) -> OnProgress:
    """Wrap a progress callback so that the fraction it reports never decreases.

    Examples
    --------
    >>> seen = []
    >>> report = monotonic_progress(lambda fraction, message: seen.append(fraction))
    >>> for fraction in (0.2, 0.1, 0.4):
    ...     report(fraction, "Working")
    >>> seen
    [0.2, 0.2, 0.4]
    """
    reached = 0.0

    def report(fraction: float, message: str) -> None:
        """Report the largest fraction so far with the latest message."""
        nonlocal reached
        reached = max(reached, min(fraction, 1.0))
        on_progress(reached, message)

    return report


class Access(StrEnum):
    """What an attacker needs besides the vector under attack."""

    NOTHING = "nothing: never looks at the vector"
    PAIRS = "black box: pairs of texts and their vectors to train on"
    QUERIES = "black box: may encode texts of their choice while attacking"
    WHITE_BOX = "white box: the encoder's weights"

    @property
    def needs(self) -> str:
        """What the attacker needs, in a few words."""
        return {
            Access.NOTHING: "nothing",
            Access.PAIRS: "example texts with their vectors",
            Access.QUERIES: "the use of the encoder as a service",
            Access.WHITE_BOX: "the encoder's weights",
        }[self]


@runtime_checkable
class Restorable(Protocol):
    """An object whose state can be saved without pickle, and restored."""

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the object's arrays, and its other data for JSON."""
        ...

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        ...


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors."""

    name: str
    dimension: int
    fingerprint: str

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode n texts as (n, dimension) float32 vectors, in their order."""
        ...


@runtime_checkable
class FittedEncoder(Encoder, Restorable, Protocol):
    """An encoder that is trained on a corpus; its settings are dataclass fields.

    `dimension` and `fingerprint` exist after `fit` or `load_state`.
    """

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train the encoder on texts, in document order where that matters; return it."""
        ...


@runtime_checkable
class WhiteBoxEncoder(Encoder, Protocol):
    """An encoder whose token vectors, hidden states and gradients the attacker can use."""

    n_layers: int

    @property
    def tokens(self) -> Sequence[str]:
        """The |V| token strings, in the order of the rows of `token_vectors`."""
        ...

    @property
    def token_vectors(self) -> torch.Tensor:
        """The token-embedding matrix, shape (|V|, hidden size)."""
        ...

    @property
    def special_token_ids(self) -> Sequence[int]:
        """Positions of special tokens such as [PAD], [CLS] and [SEP]."""
        ...

    def token_ids(self, texts: Sequence[str], *, is_whole: bool = False) -> list[list[int]]:
        """Tokenise texts; return each one's ids without special tokens, cut unless `is_whole`.

        Truncation is at the encoder's maximum length.

        As far as the encoder reads, or of the whole text.
        """
        ...

    def text_of(self, token_ids: Sequence[int]) -> str:
        """Convert token ids to a text, word pieces joined."""
        ...

    def encode_layer(
        self, texts: Sequence[str], layer: int, on_progress: OnProgress = no_progress
    ) -> Vectors:
        """Encode texts as mean hidden states of a layer; layer 0 is the mean of token vectors."""
        ...

    def embed_token_vectors(self, vectors: torch.Tensor, layer: int | None = None) -> torch.Tensor:
        """Map (batch, length, hidden) token vectors to (batch, d) embeddings, with gradients."""
        ...


@runtime_checkable
class InversionAttack(Protocol):
    """Recovers words from vectors (Song & Raghunathan 2020, §3)."""

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on auxiliary texts and their vectors, encoding the texts if vectors are None."""
        ...

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Recover words from each vector; return one Recovery (ranked words) per vector."""
        ...


@runtime_checkable
class TrainedAttack(InversionAttack, Restorable, Protocol):
    """An attack whose fitted state can be saved without pickle."""


@runtime_checkable
class Defence(Protocol):
    """Wraps an encoder and is an encoder, so that every attack and every task runs on it."""

    def protect(self, encoder: Encoder) -> Encoder:
        """Wrap an encoder; return the encoder whose vectors are defended."""
        ...


@runtime_checkable
class TrainedDefence(Defence, Restorable, Protocol):
    """A defence that learns from texts what to hide; its settings are dataclass fields.

    `leakscope.core.defences.stored` writes and reads it as attacks are. `protect` refuses until it
    is fitted or loaded (NotFittedError), and refuses an encoder other than the one that it was
    fitted for (EncoderMismatchError).
    """

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on texts and their (n, dimension) vectors, encoding the texts if vectors are None.

        With `checkpoint_dir`, a killed run resumes and gives the same result.
        """
        ...
