"""Where a defence moves the points of a map: by placing protected vectors, not by drawing anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.defences.registry import DEFENCES, make_defence
from core.errors import InvalidInputError
from core.intervals import percent_interval
from core.projection.layout import Layout
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.results import Score
from core.specs import DefenceSpec
from core.units import units_of

__all__ = ["Moves", "chosen_rows", "movable", "move_points", "protected_vectors"]


def movable() -> tuple[str, ...]:
    """Return the defences whose vectors can be placed on a map of undefended ones."""
    return tuple(n for n, entry in DEFENCES.items() if entry.keeps_space and not entry.is_baseline)


@dataclass(frozen=True, eq=False, kw_only=True)
class Moves:
    """Points of a map before and after a defence.

    Attributes
    ----------
    rows : int64 array (m,)
        Of the map.
    before, after : float32 arrays (m, n_components)
    vectors : float32 array (m, d)
        Protected.
    linked : Score
        Per cent of the protected vectors whose nearest vector of the map is their own original:
        what an attacker links who has the originals, beside what guessing links.
    """

    rows: NDArray[np.int64]
    before: NDArray[np.float32]
    after: NDArray[np.float32]
    vectors: Vectors
    linked: Score


def chosen_rows(n: int, n_moved: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Return which of n points are moved: n_moved of them at random, ascending, or all."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n, size=min(n, n_moved), replace=False)).astype(np.int64)


def move_points(
    layout: Layout,
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors,
    rows: NDArray[np.int64],
    defence: DefenceSpec,
    on_progress: OnProgress = no_progress,
) -> Moves:
    """Protect some points of a map and place them on it.

    Parameters
    ----------
    texts, vectors, rows, defence
        As for `protected_vectors`.

    Raises
    ------
    InvalidInputError
        As `protected_vectors`.
    """
    protected = protected_vectors(encoder, texts, vectors, rows, defence, on_progress)
    found, _ = layout.nearest(protected, 1)
    linked = 100.0 * (found[:, 0] == rows)
    chance = 100 / len(layout.coordinates)
    return Moves(
        rows=rows,
        before=layout.coordinates[rows],
        after=layout.transform(protected),
        vectors=protected,
        linked=Score(
            float(linked.mean()),
            percent_interval(linked, groups=units_of([texts[i] for i in rows])),
            len(rows),
            chance,
        ),
    )


def protected_vectors(
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors,
    rows: NDArray[np.int64],
    defence: DefenceSpec,
    on_progress: OnProgress = no_progress,
) -> Vectors:
    """Return the (m, d) float32 vectors of some points of a map under a defence.

    A defence that acts on the vector alone is applied to the vectors at hand; the others encode
    the texts anew. What truncation cuts is zero.

    Parameters
    ----------
    texts, vectors : n texts and float32 array (n, d)
        Of the map.
    rows : int64 array (m,)

    Raises
    ------
    InvalidInputError
        A defence that leaves the space of the vectors, or settings out of range.
    """
    if defence.name not in movable():
        raise InvalidInputError(
            f"{defence.name} cannot be shown on a map of undefended vectors. Take one of "
            f"{', '.join(movable())}."
        )
    asked = [texts[i] for i in rows]
    is_on_vector = not DEFENCES[defence.name].needs_white_box
    base = _KnownVectors(encoder, asked, vectors[rows]) if is_on_vector else encoder
    protected = make_defence(defence).protect(base).encode(asked, on_progress)
    missing = vectors.shape[1] - protected.shape[1]
    return np.pad(protected, ((0, 0), (0, missing))).astype(np.float32)


class _KnownVectors:
    """An encoder that looks up what it was given: no text is encoded twice."""

    def __init__(self, encoder: Encoder, texts: Sequence[str], vectors: Vectors) -> None:
        self.name, self.fingerprint = encoder.name, encoder.fingerprint
        self.dimension, self.base = encoder.dimension, encoder
        self._texts, self._vectors = list(texts), vectors

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the known vectors of the known texts, in their order."""
        if list(texts) != self._texts:
            raise InvalidInputError("Only the texts of the map are known. Encode others first.")
        return self._vectors
