"""Draw a random sample of a source while reading and checking every vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.audit.sources.protocol import Batch, VectorSource, refusal, widths_differ
from leakscope.core.protocols import OnProgress, Vectors, no_progress


@dataclass(frozen=True)
class Sample:
    """Rows of a source, drawn at random without replacement, in their stored order.

    Attributes
    ----------
    vectors : ndarray of float32, shape (n, d)
    ids : tuple of str
        The rows' names; with their numbers from 0, where several have one name.
    texts : tuple of (str or None), or None
        What the vectors were made from; None where the source holds no texts.
    n_rows : int
        Vectors in the source. All were read and checked.
    n_zero : int
        Vectors of zeros among them, which hold nothing and are not drawn.
    stored_as : str
        The type of number in the source, such as float16.
    norms : tuple of (float, float)
        The least and the greatest Euclidean norm in the source, vectors of zeros aside.
    seed : int
        Of the draw.
    """

    vectors: Vectors
    ids: tuple[str, ...]
    texts: tuple[str | None, ...] | None
    n_rows: int
    n_zero: int
    stored_as: str
    norms: tuple[float, float]
    seed: int

    @property
    def is_whole(self) -> bool:
        """Whether the sample holds every vector that is not zero."""
        return len(self.ids) == self.n_rows - self.n_zero

    def take(self, rows: Sequence[int]) -> Self:
        """Return a sample of the rows at the given indices, in that order."""
        texts = None if self.texts is None else tuple(self.texts[i] for i in rows)
        ids = tuple(self.ids[i] for i in rows)
        return replace(self, vectors=self.vectors[list(rows)], ids=ids, texts=texts)

    @property
    def known_texts(self) -> list[str]:
        """The text of each row; empty strings for rows without one."""
        return [text or "" for text in self.texts or [None] * len(self.ids)]


def read_sample(
    source: VectorSource,
    n: int | None = None,
    *,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> Sample:
    """Read and check every vector of a source; return a sample of `n`, by default of all.

    Each row gets a random number, and the rows with the `n` smallest are drawn: every set of `n`
    rows is equally likely, whatever the batches, and memory holds `n` vectors and one batch.

    Parameters
    ----------
    n : int, optional
        Rows to keep.
    seed : int
        Of the draw: one source and seed give one sample.

    Raises
    ------
    InvalidInputError
        No vector, a vector with NaN or infinity, vectors of different widths, or all zeros.
    """
    rng = np.random.default_rng(seed)
    kept = _Reservoir(n)
    n_rows = n_zero = 0
    width: int | None = None
    low, high = np.inf, 0.0
    stored_as = ""
    with source.opened() as batches:
        for batch in _check_finite(source.label, batches):
            if width is not None and batch.vectors.shape[1] != width:
                raise widths_differ(source.label, batch.ids[0], batch.vectors.shape[1], width)
            width, stored_as = batch.vectors.shape[1], batch.vectors.dtype.name
            norms = np.linalg.norm(batch.vectors.astype(np.float64, copy=False), axis=1)
            full = np.flatnonzero(norms > 0)
            kept.add(batch, full, rng.random(len(batch.ids))[full], n_rows)
            n_rows, n_zero = n_rows + len(batch.ids), n_zero + len(batch.ids) - len(full)
            if len(full):
                low, high = min(low, norms[full].min()), max(high, norms[full].max())
            on_progress(0.0, f"Read {n_rows:,} vectors")
    if not n_rows:
        raise refusal(source.label, "contains no vector. Name a file or collection with vectors.")
    if n_rows == n_zero:
        raise refusal(
            source.label,
            "contains only zeros, which are not vectors of texts. Export the vectors again.",
        )
    vectors, ids, texts = kept.taken()
    return Sample(vectors, ids, texts, n_rows, n_zero, stored_as, (float(low), float(high)), seed)


def _check_finite(label: str, batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield the batches that are not empty; raise InvalidInputError for NaN or infinity."""
    for batch in batches:
        if not len(batch.ids):
            continue
        with np.errstate(over="ignore"):  # beyond float32, a float64 counts as infinite
            bad = np.flatnonzero(~np.isfinite(batch.vectors.astype(np.float32)).all(axis=1))
        if len(bad):
            raise refusal(
                label,
                f"the vector of row {batch.ids[bad[0]]} contains NaN or infinity. Leave these rows "
                "out, or encode their texts again.",
            )
        if batch.vectors.shape[1] < 2:
            raise refusal(label, "its vectors have fewer than 2 dimensions. Name another column.")
        yield batch


class _Reservoir:
    """The rows with the smallest random keys so far (reservoir sampling)."""

    def __init__(self, n: int | None) -> None:
        self.n = n
        self.parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[Any], list[Any]]] = []
        self.has_texts = False
        self.n_held = 0

    def add(self, batch: Batch, rows: NDArray[Any], keys: NDArray[Any], first: int) -> None:
        """Add rows of a batch with their random keys; `first` is the number of its first row."""
        self.has_texts |= batch.texts is not None
        texts = [None] * len(batch.ids) if batch.texts is None else batch.texts
        ids = batch.ids
        self.parts.append(
            (
                keys,
                first + rows,
                batch.vectors[rows].astype(np.float32),
                [ids[i] for i in rows],
                [texts[i] for i in rows],
            )
        )
        self.n_held += len(rows)
        if self.n is not None and self.n_held > 2 * self.n + 10_000:
            self._shrink()

    def _shrink(self) -> None:
        """Drop all rows except the `n` with the smallest random keys."""
        keys, rows, vectors, ids, texts = self._concatenated()
        chosen = np.sort(np.argsort(keys, kind="stable")[: self.n])
        self.parts = [
            (
                keys[chosen],
                rows[chosen],
                vectors[chosen],
                [ids[i] for i in chosen],
                [texts[i] for i in chosen],
            )
        ]
        self.n_held = len(chosen)

    def _concatenated(self) -> tuple[Any, Any, Any, list[Any], list[Any]]:
        """Return the keys, numbers, vectors, names and texts of all rows added so far."""
        keys, rows, vectors, ids, texts = zip(*self.parts, strict=True)
        return (
            np.concatenate(keys),
            np.concatenate(rows),
            np.concatenate(vectors),
            [i for part in ids for i in part],
            [t for part in texts for t in part],
        )

    def taken(self) -> tuple[Vectors, tuple[str, ...], tuple[str | None, ...] | None]:
        """Return the vectors, unique names and texts of the drawn rows, in the source's order."""
        if self.n is not None:
            self._shrink()
        _, rows, vectors, ids, texts = self._concatenated()
        times = Counter(ids)
        named = (
            i if times[i] == 1 else f"{i} (row {row})" for i, row in zip(ids, rows, strict=True)
        )
        return vectors, tuple(named), tuple(texts) if self.has_texts else None
