"""Show where a defence moves the points of a map, by placing the protected vectors on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.registry import DEFENCES, make_defence
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import percent_interval
from leakscope.core.projection.layout import Layout
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.specs import DefenceSpec
from leakscope.core.units import units_of


def placeable_defences() -> tuple[str, ...]:
    """Return the names of the defences whose vectors a map of undefended vectors can show."""
    return tuple(n for n, entry in DEFENCES.items() if entry.keeps_space and not entry.is_baseline)


@dataclass(frozen=True, eq=False, kw_only=True)
class Displacement:
    """Points of a map before and after a defence, and how many remain linkable.

    Attributes
    ----------
    rows : int64 array (m,)
        Rows of the map.
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


def move_points(
    layout: Layout,
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors,
    rows: NDArray[np.int64],
    defence: DefenceSpec,
    on_progress: OnProgress = no_progress,
) -> Displacement:
    """Protect the given rows of a map by a defence and place their new vectors on the map.

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
    return Displacement(
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
    """Apply a defence to the given rows of a map; return their protected vectors (m, d).

    A defence that acts only on vectors is applied to the given vectors; the others encode the texts
    again. Dimensions that truncation removes are zero.

    Parameters
    ----------
    texts, vectors : n texts and float32 array (n, d)
        Texts and vectors of the map.
    rows : int64 array (m,)

    Raises
    ------
    InvalidInputError
        A defence that leaves the space of the vectors, or settings out of range.
    """
    if defence.name not in placeable_defences():
        raise InvalidInputError(
            f"{defence.name} cannot be shown on a map of undefended vectors. Choose one of "
            f"{', '.join(placeable_defences())}."
        )
    asked = [texts[i] for i in rows]
    is_on_vector = not DEFENCES[defence.name].needs_white_box
    base = _PrecomputedEncoder(encoder, asked, vectors[rows]) if is_on_vector else encoder
    protected = make_defence(defence).protect(base).encode(asked, on_progress)
    missing = vectors.shape[1] - protected.shape[1]
    return np.pad(protected, ((0, 0), (0, missing))).astype(np.float32)


class _PrecomputedEncoder:
    """An encoder that returns precomputed vectors of a fixed list of texts."""

    def __init__(self, encoder: Encoder, texts: Sequence[str], vectors: Vectors) -> None:
        self.name, self.fingerprint = encoder.name, encoder.fingerprint
        self.dimension, self.base = encoder.dimension, encoder
        self._texts, self._vectors = list(texts), vectors

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the precomputed vectors of the fixed texts; raise for any other texts."""
        if list(texts) != self._texts:
            raise InvalidInputError(
                "Only the texts of the map are known. Encode other texts first."
            )
        return self._vectors
