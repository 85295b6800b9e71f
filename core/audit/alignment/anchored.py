"""Alignment of a rotated encoder from few pairs and many vectors of unknown texts.

k pairs determine a rotation in the k directions that they span, but not in the others. Given the
coordinates in this span, the other coordinates have the same expectation on both sides: one
regression per side identifies the directions. From there the likelihood of the rotation is
maximised as without pairs, with the pairs as a constraint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.audit.alignment.confidence import Confidence, measure_confidence
from leakscope.core.audit.alignment.linear import Floats, LinearAlignment, orthogonal_factor
from leakscope.core.audit.alignment.unpaired import (
    LEAST_VECTORS,
    KnownCloud,
    mismatch,
    refine,
    split_held_out,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.vectors import unit

METHOD = "anchored"

MOST_MISMATCH = 0.03
"""Maximum mismatch of pairs under a rotation; other encoders differ by more."""

_N_FEATURES = 800
_N_STARTING = 12_000
_N_COMPARED = 3_000
"""Number of vectors, half from each side, at which the two regressions are compared."""

_PENALTY = 0.01
_LINEAR = 5.0
"""Scale of the plain coordinates relative to the random features."""

_MOST_SCALED = 128


@dataclass(frozen=True, eq=False)
class AnchoredAlignment:
    """A rotation found from few pairs and many vectors, with its confidence.

    Attributes
    ----------
    map : LinearAlignment
    confidence : Confidence
        Measured on foreign vectors that did not choose the map.
    n_pairs : int
    """

    map: LinearAlignment
    confidence: Confidence
    n_pairs: int


def is_rotation(known: Vectors, theirs: Vectors) -> bool:
    """Return whether paired vectors have the same cosines among themselves in both spaces."""
    return known.shape[1] == theirs.shape[1] and mismatch(known, theirs) <= MOST_MISMATCH


def fit_anchored(
    known: Vectors,
    theirs: Vectors,
    pairs: tuple[Vectors, Vectors],
    *,
    n_rounds: int = 6,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> AnchoredAlignment:
    """Estimate a known encoder's rotation from a few paired vectors and many unpaired ones.

    Parameters
    ----------
    known : ndarray of float32, shape (n, d)
        The known encoder's vectors of any texts, as similar as possible.
    theirs : ndarray of float32, shape (m, d)
        Foreign vectors of unknown texts.
    pairs : tuple of ndarray of float32, shape (k, d) each
        The known and the foreign vectors of the same texts.
    n_rounds : int
        Of the refinement.
    seed : int
        Of the random features, and of the vectors held out for the confidence.

    Raises
    ------
    InvalidInputError
        Unequal shapes of pairs, or fewer than 1,000 vectors on either side.
    """
    own_pairs, their_pairs = (unit(part.astype(np.float32)) for part in pairs)
    if own_pairs.shape != their_pairs.shape or known.shape[1] != theirs.shape[1]:
        raise InvalidInputError(
            f"A rotation needs pairs of equal shape, got {pairs[0].shape} and {pairs[1].shape}. "
            "Use fit_paired for another encoder."
        )
    if min(len(known), len(theirs)) < LEAST_VECTORS:
        raise InvalidInputError(
            f"At least {LEAST_VECTORS:,} vectors are needed on both sides, got {len(known):,} and "
            f"{len(theirs):,}. Encode more texts, or use the pairs alone."
        )
    rng = np.random.default_rng(seed)
    ours, own = split_held_out(np.unique(unit(known.astype(np.float32)), axis=0), rng)
    rows, unseen = split_held_out(np.unique(unit(theirs.astype(np.float32)), axis=0), rng)
    cloud = KnownCloud.of(ours)
    on_progress(0.1, "Comparing rotations along the pairs' directions")
    rotation = initial_rotation_from_pairs(ours, rows, (own_pairs, their_pairs), rng)
    rotation = refine(
        cloud,
        rows,
        rotation,
        pairs=(own_pairs, their_pairs),
        n_rounds=n_rounds,
        on_progress=on_progress,
    )
    confidence = measure_confidence(cloud.rows, own, unseen @ rotation)
    zero = np.zeros(len(rotation))
    found = LinearAlignment(rotation.astype(np.float64), zero, zero, METHOD)
    return AnchoredAlignment(found, confidence, len(own_pairs))


def initial_rotation_from_pairs(
    known: Vectors, theirs: Vectors, pairs: tuple[Vectors, Vectors], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Estimate an initial rotation (d, d) from paired vectors, and regressions on their span.

    In the span of the pairs it is Procrustes'. Outside, E[rest | span] is fitted on either side by
    ridge regression on coordinates and random features (Rahimi & Recht 2007), and Procrustes
    matches the two functions at the same points.
    """
    d = known.shape[1]
    u, s, vt = np.linalg.svd(pairs[1].T.astype(np.float64) @ pairs[0])
    rank = int((s > 1e-5 * s[0]).sum())
    span, own_span, rest, own_rest = u[:, :rank], vt[:rank].T, u[:, rank:], vt[rank:].T
    rotation = span @ own_span.T
    if rank == d:
        return np.asarray(rotation, dtype=np.float32)
    ours = known[rng.permutation(len(known))[:_N_STARTING]]
    rows = theirs[rng.permutation(len(theirs))[:_N_STARTING]]
    sides = ours @ own_span, rows @ span
    mean = sides[0].mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov(sides[0].T, dtype=np.float64).reshape(rank, rank))
    whitener = (axes / np.sqrt(np.maximum(variances, 1e-5)))[:, -_MOST_SCALED:]
    width = whitener.shape[1]
    waves = rng.standard_normal((width, _N_FEATURES)) / np.sqrt(2 * width)
    phases = rng.uniform(0, 2 * np.pi, _N_FEATURES)

    def features(side: Floats) -> Floats:
        """Return a matrix of a constant, the coordinates and random features of rows."""
        z = side - mean
        found = np.cos(z @ (whitener @ waves) + phases) * np.sqrt(2 * rank / _N_FEATURES)
        return np.column_stack([np.ones(len(z)), _LINEAR * z, found])

    both = [features(side) for side in sides]
    points = np.concatenate([side[: _N_COMPARED // 2] for side in both])
    expected = []
    for side, hidden in zip(both, (ours @ own_rest, rows @ rest), strict=True):
        gram = side.T @ side / len(side) + _PENALTY * np.eye(side.shape[1])
        values = points @ np.linalg.solve(gram, side.T @ hidden / len(side))
        expected.append(values - values.mean(axis=0))
    turn = orthogonal_factor(expected[1].T @ expected[0])
    return np.asarray(rotation + rest @ turn @ own_rest.T, dtype=np.float32)
