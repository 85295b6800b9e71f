"""Sampling units (users, documents, distinct texts): samples within a unit are dependent."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError


class TextUnit(str):
    """A distinct text as a sampling unit: its samples are copies of each other.

    Samples of a document differ; copies of a text say nothing new. Intervals over documents are
    widened for small numbers of documents, unlike those over single samples, so the two differ.
    """

    __slots__ = ()


def units_of(texts: Sequence[str], documents: Sequence[Hashable] | None = None) -> list[Hashable]:
    """Return each text's sampling unit: its document or, without documents, its normalised text.

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
    """Return `units_of` as a tuple; None if no documents are given and all texts are distinct.

    Examples
    --------
    >>> units_or_none(["One.", "Two."]), units_or_none(["One.", "one."])
    (None, ('one.', 'one.'))
    """
    units = units_of(texts, documents)
    return None if documents is None and len(set(units)) == len(units) else tuple(units)


def units_of_vectors(vectors: NDArray[np.float32]) -> list[Hashable]:
    """Return the sampling unit of each vector (a hash): equal vectors share a unit.

    Examples
    --------
    >>> first, second, third = units_of_vectors(np.float32([[1, 2], [3, 4], [1, 2]]))
    >>> first == third, first == second
    (True, False)
    """
    rows = np.ascontiguousarray(vectors)
    return [TextUnit(hashlib.sha256(row.tobytes()).hexdigest()) for row in rows]


def effective_size(units: Sequence[Hashable]) -> float:
    """Return Kish's effective sample size, given each sample's unit.

    Implements Kish (1965, §8.2): (Σ m)² / Σ m² for units of m samples each, all of a unit alike.
    Differs from the book: nothing.

    Examples
    --------
    >>> effective_size(["a", "b", "a", "b"]), effective_size(["a", "a", "a", "b"])
    (2.0, 1.6)
    """
    sizes = np.bincount(cluster_ids(units, len(units))).astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def resampled_rows(
    units: Sequence[Hashable] | None, n: int, n_resamples: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Draw bootstrap resamples of whole units; yield the row numbers of each resample."""
    rows = cluster_ids(units, n)
    n_units = int(rows.max()) + 1
    drawn = rng.integers(0, n_units, (n_resamples, n_units))
    if n_units == n:
        yield from drawn
        return
    members = [np.flatnonzero(rows == unit) for unit in range(n_units)]
    for draw in drawn:
        yield np.concatenate([members[unit] for unit in draw])


def cluster_ids(units: Iterable[Hashable] | None, n: int) -> NDArray[np.int64]:
    """Assign numbers to units in order of first appearance; return each sample's unit number.

    Parameters
    ----------
    units : iterable or None
        The unit of each; None where each sample is one by itself.

    Examples
    --------
    >>> cluster_ids(["b", "a", "b"], 3).tolist(), cluster_ids(None, 2).tolist()
    ([0, 1, 0], [0, 1])
    """
    if units is None:
        return np.arange(n, dtype=np.int64)
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(unit, len(numbers)) for unit in units], dtype=np.int64)


def next_distinct_row(units: Sequence[Hashable], row: int) -> int:
    """Return the next row, wrapping around, of another unit than this row's; else the row itself.

    Examples
    --------
    >>> (
    ...     next_distinct_row(["a", "a", "b"], 0),
    ...     next_distinct_row(["a", "b"], 1),
    ...     next_distinct_row(["a"], 0),
    ... )
    (2, 0, 0)
    """
    n = len(units)
    later = ((row + step) % n for step in range(1, n))
    return next((other for other in later if units[other] != units[row]), row)
