"""The protocol of vector sources, and checks that all sources share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import CoreError, InvalidInputError

ROWS = 4096
"""Vectors in a batch, unless the caller says otherwise."""


@dataclass(frozen=True)
class Batch:
    """Some consecutive vectors of a source, with their row names and texts.

    Attributes
    ----------
    vectors : ndarray of float16, float32 or float64, shape (n, d)
        Bit-equal to what the source holds.
    ids : sequence of str
        How the source names its rows: its keys, or their numbers from 0.
    texts : sequence of (str or None), or None
        What the vectors were made from, where the source holds texts.
    """

    vectors: NDArray[Any]
    ids: Sequence[str]
    texts: Sequence[str | None] | None = None


class VectorSource(Protocol):
    """The vectors of one file or collection.

    Attributes
    ----------
    label : str
        How messages and reports call it; holds no credentials.
    """

    label: str

    def opened(self) -> AbstractContextManager[Iterator[Batch]]:
        """Open the source and yield an iterator over its batches in stored order.

        Raises
        ------
        InvalidInputError
            It cannot be read; the message names the place and a remedy.
        MissingDependencyError
            The library that reads it is not installed.
        """
        ...


class ChangedSource:
    """A source whose batches are changed, or refused, while they are read.

    Parameters
    ----------
    source : VectorSource
    change : callable
        Takes and returns an iterator over batches.
    """

    def __init__(
        self, source: VectorSource, change: Callable[[Iterator[Batch]], Iterator[Batch]]
    ) -> None:
        self.label, self._source, self._change = source.label, source, change

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Open the source and yield an iterator over the changed batches."""
        with self._source.opened() as batches:
            yield self._change(batches)


def refusal(label: str, problem: str) -> InvalidInputError:
    """Build, without raising it, the error for a problem with a source."""
    return InvalidInputError(f"{label}: {problem}")


@contextmanager
def parser_errors(label: str, kind: str) -> Iterator[None]:
    """Turn any error of a parser within the block into an InvalidInputError."""
    try:
        yield
    except CoreError:
        raise
    except Exception as error:
        raise refusal(
            label, f"is truncated, damaged or not {kind}. Copy or save it again."
        ) from error


def widths_differ(label: str, row: str, width: int, usual: int) -> InvalidInputError:
    """Build, without raising it, the error for a vector of another width than the first."""
    return refusal(
        label,
        f"the vector of row {row} has {width} dimensions, but the first has {usual}. All vectors "
        "of an encoder have the same dimension: put the others in a separate file or collection.",
    )


def vector_of(label: str, row: str, cell: Any, kind: Any = np.float32) -> NDArray[Any]:
    """Parse a cell, a list of numbers or text such as `[0.1, 0.2]`, into a vector.

    Parameters
    ----------
    row : str
        The row's name, for messages.
    kind : dtype
        Of the vector; numbers in text are the nearest of this kind.

    Raises
    ------
    InvalidInputError
        It holds something else.
    """
    try:
        if isinstance(cell, str):
            inner = cell.strip().strip("[](){}").replace(",", " ").replace(";", " ")
            return np.array(inner.split(), dtype=kind)
        found = np.asarray(cell, dtype=kind)
    except (TypeError, ValueError, OverflowError):
        found = np.zeros((0, 0))
    if found.ndim != 1:
        raise refusal(label, f"row {row} does not contain a vector. Write each as [0.1, 0.2, …].")
    return found


def stack_vectors(
    label: str, rows: Sequence[str], cells: Sequence[Any], kind: Any = np.float32
) -> NDArray[Any]:
    """Parse a vector from each cell and stack them to a matrix, shape (n, d).

    Raises
    ------
    InvalidInputError
        A cell holds no vector, or one of another width than the first.
    """
    vectors: list[NDArray[Any]] = []
    for row, cell in zip(rows, cells, strict=True):
        vector = vector_of(label, row, cell, kind)
        if vectors and len(vector) != len(vectors[0]):
            raise widths_differ(label, row, len(vector), len(vectors[0]))
        vectors.append(vector)
    return np.stack(vectors)
