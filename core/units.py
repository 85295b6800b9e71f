"""What samples come from: users, books, documents, texts; samples of one are not independent."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidInputError

__all__ = [
    "TextUnit",
    "effective_size",
    "resampled_rows",
    "unit_rows",
    "units_of",
    "units_of_vectors",
    "units_or_none",
]


class TextUnit(str):
    """A text as the unit of its samples: these are copies of each other.

    Samples of a document differ; copies of a text say nothing new. Intervals of documents are
    widened for their small number, as those of single samples are not, so the two are kept apart.
    """

    __slots__ = ()


def units_of(texts: Sequence[str], documents: Sequence[Hashable] | None = None) -> list[Hashable]:
    """Return the unit of each text: its document or, without documents, the distinct text.

    Every interval over texts is drawn over these units, so that copies do not narrow it. Texts are
    copies where they differ only in case, white space or Unicode form; documents are copies where
    they hold the same distinct texts. Where each document
    is one distinct text, the texts are the units.

    Parameters
    ----------
    texts : sequence of n str
    documents : sequence of n, optional
        The document, user or other group that each text comes from.

    Returns
    -------
    list of n
        `TextUnit` for texts.

    Raises
    ------
    InvalidInputError
        Another number of documents than of texts.

    Examples
    --------
    >>> units_of(["The dog.", "the  dog.", "A cat."])
    ['the dog.', 'the dog.', 'a cat.']
    >>> units_of(["One.", "Two.", "One.", "Two.", "Two."], ["a", "a", "b", "b", "c"])
    ['a', 'a', 'a', 'a', 'c']
    """
    distinct = [TextUnit(" ".join(normalize("NFKC", t).casefold().split())) for t in texts]
    if documents is None:
        return list(distinct)
    if len(documents) != len(distinct):
        raise InvalidInputError(
            f"{len(documents)} documents for {len(distinct)} texts. Name one document for each."
        )
    held: dict[Hashable, set[str]] = {}
    for document, text in zip(documents, distinct, strict=True):
        held.setdefault(document, set()).add(text)
    if all(len(own) == 1 for own in held.values()):
        return list(distinct)
    first: dict[frozenset[str], Hashable] = {}
    same = {document: first.setdefault(frozenset(own), document) for document, own in held.items()}
    return [same[document] for document in documents]


def units_or_none(
    texts: Sequence[str], documents: Sequence[Hashable] | None = None
) -> tuple[Hashable, ...] | None:
    """Return `units_of`; None where no documents are given and no text is a copy of another.

    Examples
    --------
    >>> units_or_none(["One.", "Two."]), units_or_none(["One.", "one."])
    (None, ('one.', 'one.'))
    """
    units = units_of(texts, documents)
    return None if documents is None and len(set(units)) == len(units) else tuple(units)


def units_of_vectors(vectors: NDArray[np.float32]) -> list[Hashable]:
    """Return the unit of each of n vectors, shape (n, d): equal ones are of copies of a text.

    Examples
    --------
    >>> first, second, third = units_of_vectors(np.float32([[1, 2], [3, 4], [1, 2]]))
    >>> first == third, first == second
    (True, False)
    """
    rows = np.ascontiguousarray(vectors)
    return [TextUnit(hashlib.sha256(row.tobytes()).hexdigest()) for row in rows]


def effective_size(units: Sequence[Hashable]) -> float:
    """Return how many independent samples say as much as samples of these units.

    Implements Kish (1965, §8.2): (Σ m)² / Σ m² for units of m samples each, all of a unit alike.
    Differs from the book: nothing.

    Examples
    --------
    >>> effective_size(["a", "b", "a", "b"]), effective_size(["a", "a", "a", "b"])
    (2.0, 1.6)
    """
    sizes = np.bincount(unit_rows(units, len(units))).astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def resampled_rows(
    units: Sequence[Hashable] | None, n: int, n_resamples: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Yield the samples of each resample of n: units are drawn whole, as many as there are."""
    rows = unit_rows(units, n)
    n_units = int(rows.max()) + 1
    drawn = rng.integers(0, n_units, (n_resamples, n_units))
    if n_units == n:
        yield from drawn
        return
    members = [np.flatnonzero(rows == unit) for unit in range(n_units)]
    for draw in drawn:
        yield np.concatenate([members[unit] for unit in draw])


def unit_rows(units: Iterable[Hashable] | None, n: int) -> NDArray[np.int64]:
    """Return the number of the unit of each of n samples, in the order in which they come.

    Parameters
    ----------
    units : iterable or None
        The unit of each; None where each sample is one by itself.

    Examples
    --------
    >>> unit_rows(["b", "a", "b"], 3).tolist(), unit_rows(None, 2).tolist()
    ([0, 1, 0], [0, 1])
    """
    if units is None:
        return np.arange(n, dtype=np.int64)
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(unit, len(numbers)) for unit in units], dtype=np.int64)
