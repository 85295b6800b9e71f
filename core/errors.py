"""The errors of the engine: each says which value is wrong, what is allowed and what to do.

The dashboard and the command line show the message of a :class:`CoreError` to the user as it
is; any other exception is a fault of ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

__all__ = [
    "ArtifactError",
    "CoreError",
    "DivergedError",
    "EncoderMismatchError",
    "InvalidInputError",
    "MissingDependencyError",
    "ModelUnavailableError",
    "NotFittedError",
    "StoppedError",
    "StoppedSearch",
    "StorageError",
    "similar",
]


class CoreError(Exception):
    """A problem that the user can act on."""


class InvalidInputError(CoreError, ValueError):
    """A text, array, file or setting that cannot be used."""


class ArtifactError(CoreError):
    """A stored file that is missing, truncated, altered or of another format."""


class EncoderMismatchError(CoreError):
    """A trained attack met vectors of another encoder than the one it was trained on."""


class NotFittedError(CoreError):
    """An attack was asked to answer before it was trained or loaded."""


class MissingDependencyError(CoreError):
    """An optional package is needed and not installed."""


class ModelUnavailableError(CoreError):
    """Model weights are neither on this machine nor reachable."""


class StorageError(CoreError):
    """Writing to disk failed: full, read-only or not permitted."""


class DivergedError(CoreError):
    """Training went astray and was stopped; nothing of it is kept."""


class StoppedError(CoreError):
    """The user stopped the work; everything finished before is kept."""


class StoppedSearch(StoppedError):
    """A search was stopped; what it had by then is in `answers`, one a vector."""

    def __init__(self, message: str, answers: list[Any]) -> None:
        super().__init__(message)
        self.answers = answers


def similar(word: str, known: Iterable[str]) -> str:
    """Return a sentence that asks whether a known word was meant, or nothing.

    Examples
    --------
    >>> similar("epocs", ["epochs", "seed"])
    " Did you mean 'epochs'?"
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
