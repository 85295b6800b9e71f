"""Alignment without pairs: undoing an unknown rotation of a known encoder's vectors.

A secret rotation preserves every statistic of the vectors except their axes. The attacker encodes
other texts with the known encoder and finds the rotation that makes both sets similar: first by
moments, then by mutual nearest neighbours, finally by maximum likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.audit.alignment.confidence import Confidence, measure_confidence
from leakscope.core.audit.alignment.linear import Floats, LinearAlignment, orthogonal_factor
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.vectors import unit

LEAST_VECTORS = 1_000
"""Fewer vectors on either side do not determine the axes."""

N_LEADING = 124
"""Principal axes for the neighbour search: the others contribute little to a distance."""

_N_CANDIDATES = 24
_N_NEIGHBOURS = 16
_SHARPNESS = 10.0
"""Weights of neighbours are exp(10 · cosine): they explain most of vectors left out."""

_BINS = (0.0, 0.2, 0.4, 0.6, 0.75, 0.87, 0.94, 0.98, 1.0)
"""Quantiles of the cosine with the nearest neighbour: near-duplicates are far more informative than
others."""

LEAST_RESIDUAL = 0.02
"""Squared length by which a pair may differ from its map: 0 would stop Newton's steps."""

_N_OWN = 12_000
_N_HELD_OUT = 2_000

_N_SQUARED = 32
"""Leading axes whose squares enter the moments of a start."""

_FLIPS: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (0, 1), (2,), (0, 2), (1, 2), (0, 1, 2))
"""Starts: which of the three leading axes of least certain sign are flipped."""


@dataclass(frozen=True, eq=False)
class UnpairedAlignment:
    """A rotation found without pairs, with its confidence.

    Attributes
    ----------
    map : LinearAlignment
    confidence : Confidence
        Measured on foreign vectors that did not choose the map.
    n_known, n_theirs : int
        Vectors that chose the map.
    """

    map: LinearAlignment
    confidence: Confidence
    n_known: int
    n_theirs: int


@dataclass(frozen=True, eq=False)
class KnownCloud:
    """Unit vectors of a known encoder with their principal axes.

    Attributes
    ----------
    rows : ndarray of float32, shape (n, d)
    mean : ndarray of float32, shape (d,)
    axes : ndarray of float32, shape (d, d)
        A column each, largest variance first.
    variances : ndarray of float64, shape (d,)
    """

    rows: Vectors
    mean: NDArray[np.float32]
    axes: NDArray[np.float32]
    variances: Floats

    @classmethod
    def of(cls, rows: Vectors) -> KnownCloud:
        """Compute the mean and principal axes of unit vectors, and build the cloud."""
        variances, axes = np.linalg.eigh(np.cov(rows.T, dtype=np.float64))
        least = 1e-6 * variances[-1]
        return cls(
            rows,
            rows.mean(axis=0),
            np.ascontiguousarray(axes[:, ::-1], dtype=np.float32),
            np.maximum(variances[::-1], least),
        )


def fit_unpaired(
    known: Vectors, theirs: Vectors, *, seed: int = 0, on_progress: OnProgress = no_progress
) -> UnpairedAlignment:
    """Estimate an unknown rotation of a known encoder's vectors from vectors of other texts.

    Parameters
    ----------
    known : ndarray of float32, shape (n, d)
        The known encoder's vectors of texts that resemble the unknown ones; the more, the better.
    theirs : ndarray of float32, shape (m, d'), d' at least d
        The foreign vectors, an orthogonal map of the known encoder's. Where d' > d, as where
        zeros were appended before the rotation, the d directions that they fill are used.
    seed : int
        Of the samples of vectors that early rounds use, and of those held out for the confidence.

    Returns
    -------
    UnpairedAlignment

    Raises
    ------
    InvalidInputError
        Fewer than 1,000 vectors on either side, foreign vectors that are narrower, or vectors that
        are not finite.
    """
    _check_vectors(known, theirs)
    rng = np.random.default_rng(seed)
    # Duplicates leave bins of equal cosines empty.
    rows, span = _project_to_span(
        np.unique(unit(theirs.astype(np.float32)), axis=0), known.shape[1]
    )
    ours, own_held_out = split_held_out(np.unique(unit(known.astype(np.float32)), axis=0), rng)
    rows, unseen = split_held_out(rows, rng)
    choosing, unseen = unseen[::2], unseen[1::2]  # one half selects the start
    cloud = KnownCloud.of(ours)

    best: tuple[Confidence, NDArray[np.float32]] | None = None
    for i, flips in enumerate(_FLIPS):
        on_progress(0.05 * i, "Comparing moments and nearest neighbours")
        rotation = improve_rotation(cloud, rows, initial_rotation(cloud, rows, flips), rng)
        confidence = measure_confidence(cloud.rows, own_held_out, choosing @ rotation)
        if best is None or confidence.share > best[0].share:
            best = confidence, rotation
        if confidence.can_be_refined:
            break
    assert best is not None
    refined = refine(cloud, rows, best[1], on_progress=on_progress)
    confidence = measure_confidence(cloud.rows, own_held_out, unseen @ refined)
    weights = span.astype(np.float64) @ refined.astype(np.float64)
    zeros = np.zeros(len(weights)), np.zeros(weights.shape[1])
    return UnpairedAlignment(
        LinearAlignment(weights, *zeros, "unpaired"), confidence, len(ours), len(rows)
    )


def _check_vectors(known: Vectors, theirs: Vectors) -> None:
    """Raise InvalidInputError unless there are enough finite vectors of matching widths."""
    if known.ndim != 2 or theirs.ndim != 2 or theirs.shape[1] < known.shape[1]:
        raise InvalidInputError(
            f"theirs must have at least as many dimensions as known, got shapes {theirs.shape} and "
            f"{known.shape}. An orthogonal map preserves every dimension; pairs allow fewer."
        )
    if min(len(known), len(theirs)) < LEAST_VECTORS:
        raise InvalidInputError(
            f"Alignment without pairs needs at least {LEAST_VECTORS:,} vectors on both sides, "
            f"got {len(known):,} and {len(theirs):,}. Encode more texts, or use pairs."
        )
    if not (np.isfinite(known).all() and np.isfinite(theirs).all()):
        raise InvalidInputError("known and theirs must be finite. Leave out rows with NaN or ∞.")


def _project_to_span(rows: Vectors, d: int) -> tuple[Vectors, NDArray[np.float32]]:
    """Project unit vectors onto the d directions that they fill; return them and the directions."""
    if rows.shape[1] == d:
        return rows, np.eye(d, dtype=np.float32)
    _, axes = np.linalg.eigh(rows.T.astype(np.float64) @ rows.astype(np.float64))
    span = np.ascontiguousarray(axes[:, ::-1][:, :d], dtype=np.float32)
    return rows @ span, span


def split_held_out(rows: Vectors, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
    """Split rows at random; return those to choose a map with, and up to 2,000 held-out ones."""
    order = rng.permutation(len(rows))
    n = min(_N_HELD_OUT, len(rows) // 5)
    return rows[order[n:]], rows[order[:n]]


def initial_rotation(
    cloud: KnownCloud, rows: Vectors, flips: Sequence[int] = (), *, n_leading: int = 16
) -> NDArray[np.float32]:
    """Estimate a rotation (d, d) of rows to a cloud: axes matched by variance, signs by moments.

    The axes of both sides are compared by E[z_k] over the origin and E[z_k z_j²] for the leading
    j, which do not depend on the sign of j. The moments of an axis agree or disagree; of the
    `n_leading` axes those that do least, the places `flips` in that order, are flipped.
    Shape (d, d): rows @ rotation is in the known space.
    """
    theirs = KnownCloud.of(rows)
    moments = []
    for side in (cloud, theirs):
        scale = np.sqrt(side.variances).astype(np.float32)
        z = ((side.rows - side.mean) @ side.axes) / scale
        third = z.T @ z[:, :_N_SQUARED] ** 2 / len(z)
        moments.append(np.column_stack([third, side.mean @ side.axes / scale]))
    agreement = (unit(moments[0]) * unit(moments[1])).sum(axis=1)
    least = np.argsort(np.abs(agreement[:n_leading]))
    agreement[least[list(flips)]] *= -1
    signs = np.where(agreement < 0, -1.0, 1.0).astype(np.float32)
    return np.asarray((theirs.axes * signs) @ cloud.axes.T, dtype=np.float32)


def improve_rotation(
    cloud: KnownCloud,
    rows: Vectors,
    rotation: NDArray[np.float32],
    rng: np.random.Generator,
    *,
    n_rounds: int = 8,
    n_known: int = 20_000,
    n_theirs: int = 8_000,
) -> NDArray[np.float32]:
    """Return a rotation improved by mutual nearest neighbours and Procrustes, in ever more axes."""
    ours = cloud.rows[rng.permutation(len(cloud.rows))[:n_known]]
    theirs = rows[rng.permutation(len(rows))[:n_theirs]]
    last = min(N_LEADING, cloud.axes.shape[1])
    own_centre, centre = ours.mean(axis=0), theirs.mean(axis=0)
    for n_axes in np.linspace(min(16, last), last, n_rounds).astype(int):
        axes = cloud.axes[:, :n_axes]
        near = unit((ours - own_centre) @ axes)
        first, second = _mutual_neighbours(unit((theirs - centre) @ rotation @ axes), near)
        if len(first) > n_axes:
            matched = theirs[first].T @ ours[second]
            rotation = orthogonal_factor(matched.astype(np.float64)).astype(np.float32)
    return rotation


def _mutual_neighbours(
    queries: Vectors, keys: Vectors
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return index arrays of the queries and keys that are each other's nearest neighbours."""
    nearest, cosine = np.empty(len(queries), np.int64), np.full(len(keys), -np.inf, np.float32)
    back = np.zeros(len(keys), np.int64)
    all_keys = torch.from_numpy(np.ascontiguousarray(keys)).T.contiguous()
    for start, block in _cut_blocks(queries):
        found = torch.from_numpy(block) @ all_keys
        nearest[start : start + len(block)] = found.argmax(dim=1).numpy()
        values, places = (part.numpy() for part in found.max(dim=0))
        better = values > cosine
        cosine[better], back[better] = values[better], places[better] + start
    first = np.flatnonzero(back[nearest] == np.arange(len(queries)))
    return first, nearest[first]


def nearest_rows(queries: Vectors, keys: Vectors, k: int) -> NDArray[np.int64]:
    """Return the indices of the k keys with the greatest inner product per query, shape (n, k)."""
    all_keys = torch.from_numpy(np.ascontiguousarray(keys)).T.contiguous()
    found = [
        torch.topk(torch.from_numpy(block) @ all_keys, k, dim=1).indices.numpy()
        for _, block in _cut_blocks(queries)
    ]
    return np.concatenate(found)


def _cut_blocks(rows: Vectors, size: int = 2_000) -> Sequence[tuple[int, Vectors]]:
    """Cut rows into blocks of `size`; return (index of the first row, block) of each."""
    return [
        (start, np.ascontiguousarray(rows[start : start + size]))
        for start in range(0, len(rows), size)
    ]


def _neighbour_means(
    rows: Vectors, keys: Vectors, candidates: NDArray[np.int64]
) -> tuple[Vectors, NDArray[np.float32]]:
    """Return the weighted mean of each row's nearest keys, and its cosine with the nearest."""
    k = min(_N_NEIGHBOURS, candidates.shape[1])
    means, cosine = np.empty_like(rows), np.empty(len(rows), np.float32)
    for start, block in _cut_blocks(rows, 1_000):
        places = candidates[start : start + len(block)]
        near = keys[places]
        cosines = np.matmul(near, block[:, :, None])[:, :, 0]
        top = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        chosen = np.take_along_axis(cosines, top, axis=1)
        weights = np.exp(_SHARPNESS * (chosen - chosen.max(axis=1, keepdims=True)))
        weights /= weights.sum(axis=1, keepdims=True)
        spread = np.zeros_like(cosines)
        np.put_along_axis(spread, top, weights, axis=1)
        means[start : start + len(block)] = np.matmul(spread[:, None, :], near)[:, 0]
        cosine[start : start + len(block)] = chosen.max(axis=1)
    return means, cosine


@dataclass(frozen=True, eq=False)
class NeighbourModel:
    """How well a vector's neighbours predict it: z | neighbours ~ N(b p, diag s).

    z and the neighbours' mean p are taken in principal axes, less the mean. The slope b and the
    residual variance s of each axis depend on how near the nearest neighbour is. Both are measured
    on known vectors whose neighbours are sought among the other known vectors.

    Attributes
    ----------
    edges : ndarray of float32, shape (bins + 1,)
        Of the cosine with the nearest neighbour.
    slopes, residuals : ndarray of float64, shape (bins, d)
    """

    edges: NDArray[np.float32]
    slopes: Floats
    residuals: Floats

    @classmethod
    def fit(cls, cloud: KnownCloud) -> NeighbourModel:
        """Fit the model on part of the known vectors: slopes and residual variances by cosine."""
        n = min(_N_OWN, len(cloud.rows) // 3)
        queries, keys = cloud.rows[:n], cloud.rows[n:]
        leading = cloud.axes[:, :N_LEADING]
        k = min(_N_CANDIDATES, len(keys))
        places = nearest_rows(unit(queries @ leading), unit(keys @ leading), k)
        means, cosine = _neighbour_means(queries, keys, places)
        z, p = ((part - cloud.mean) @ cloud.axes for part in (queries, means))
        edges = np.quantile(cosine, _BINS).astype(np.float32)
        bins = _bin_indices(cosine, edges)
        slopes, residuals = [], []
        for i in range(len(_BINS) - 1):
            zi, pi = z[bins == i].astype(np.float64), p[bins == i].astype(np.float64)
            slope = (zi * pi).sum(axis=0) / np.maximum((pi**2).sum(axis=0), 1e-12)
            slope = _moving_average(np.clip(slope, 0.0, 1.0))
            left = _moving_average(((zi - slope * pi) ** 2).mean(axis=0) / cloud.variances)
            slopes.append(slope)
            residuals.append(np.maximum(left, 1e-3) * cloud.variances)
        return cls(edges, np.array(slopes), np.array(residuals))


def _bin_indices(cosine: NDArray[np.float32], edges: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return, for each cosine, the index of its bin between `edges`."""
    found: NDArray[np.int64] = np.searchsorted(edges[1:-1], cosine, side="right")
    return found


def _moving_average(values: Floats, half: int = 7) -> Floats:
    """Return the moving average of an array of per-axis values, of the same length."""
    padded = np.pad(values, half, mode="edge")
    found: Floats = np.convolve(padded, np.full(2 * half + 1, 1 / (2 * half + 1)), "valid")
    return found


def refine(
    cloud: KnownCloud,
    rows: Vectors,
    rotation: NDArray[np.float32],
    *,
    pairs: tuple[Vectors, Vectors] | None = None,
    n_rounds: int = 6,
    on_progress: OnProgress = no_progress,
) -> NDArray[np.float32]:
    """Return the rotation that maximises the likelihood under `NeighbourModel`, from a given one.

    Each round finds neighbours under the present rotation, then maximises over rotations
    Σ_bins n_b tr(S_b⁻¹ [K_b Wᵀ − ½ W C_b Wᵀ]) with K = E[(b p + (1 − b) μ) zᵀ] and C = E[z zᵀ], z
    being uncentred: the second term comes from the covariance, the first from the neighbours.

    Parameters
    ----------
    cloud : KnownCloud
    rows : ndarray of float32, shape (m, d)
        Foreign unit vectors.
    rotation : ndarray of float32, shape (d, d)
    pairs : tuple of ndarray, or None
        Known vectors and foreign vectors of the same texts, shape (k, d) each: a separate bin with
        almost no residual.
    n_rounds : int
    """
    model = NeighbourModel.fit(cloud)
    residuals = model.residuals
    if pairs is not None:
        residuals = np.vstack([residuals, np.full(len(cloud.mean), residual_of_pairs(*pairs))])
    axes, leading = cloud.axes, cloud.axes[:, :N_LEADING]
    k = min(_N_CANDIDATES, len(cloud.rows))
    near = unit(cloud.rows @ leading)
    mean = (cloud.mean @ axes).astype(np.float64)
    for i in range(n_rounds):
        on_progress(0.4 + 0.6 * i / n_rounds, "Maximising the likelihood of the rotation")
        mapped = rows @ rotation
        if i in (0, n_rounds // 2) or pairs is not None:
            candidates = nearest_rows(unit(mapped @ leading), near, k)
        means, cosine = _neighbour_means(mapped, cloud.rows, candidates)
        z, p = (mapped @ axes).astype(np.float64), (means @ axes).astype(np.float64) - mean
        bins = _bin_indices(cosine, model.edges)
        crosses, squares = [], []
        for j, slope in enumerate(model.slopes):
            zj, pj = z[bins == j], p[bins == j] * slope + mean
            crosses.append(pj.T @ zj / len(z))
            squares.append(zj.T @ zj / len(z))
        if pairs is not None:
            own, seen = (
                (part @ axes).astype(np.float64) for part in (pairs[0], pairs[1] @ rotation)
            )
            crosses.append(own.T @ seen / len(z))
            squares.append(seen.T @ seen / len(z))
        turn = maximum_likelihood_rotation(np.array(crosses), np.array(squares), residuals)
        rotation = (rotation @ axes @ turn.T.astype(np.float32) @ axes.T).astype(np.float32)
    return orthogonal_factor(rotation.astype(np.float64)).astype(np.float32)


def residual_of_pairs(known: Vectors, theirs: Vectors) -> float:
    """Return the variance per coordinate by which paired vectors may differ from a rotation."""
    return LEAST_RESIDUAL / known.shape[1] + 0.5 * mismatch(known, theirs) ** 2


def mismatch(known: Vectors, theirs: Vectors) -> float:
    """Return the RMS difference between cosines in both spaces of paired vectors; 0 if rotated."""
    upper = np.triu_indices(len(known), 1)
    cosines, others = (unit(rows.astype(np.float64)) for rows in (known, theirs))
    gap = (cosines @ cosines.T - others @ others.T)[upper]
    return float(np.sqrt((gap**2).mean()))


def maximum_likelihood_rotation(
    crosses: Floats, squares: Floats, residuals: Floats, *, n_steps: int = 12
) -> Floats:
    """Return the orthogonal W that maximises Σ_b tr(S_b⁻¹ [K_b Wᵀ − ½ W C_b Wᵀ]), from W = 1.

    Newton's steps over planes of two axes (i, j): with the gradient g_ij = Σ_b (K − C)_ij / s_i,
    less its transpose, and h_ij = Σ_b [C_jj / s_i + (K_ii − C_ii) / s_i], plus its transpose, W is
    turned by g / h in each plane, and less where the sum falls.

    Parameters
    ----------
    crosses, squares : ndarray of float64, shape (bins, d, d)
        K_b and C_b.
    residuals : ndarray of float64, shape (bins, d)
        s_b.
    """
    d = crosses.shape[1]
    turn, identity = np.eye(d), np.eye(d)

    def likelihood(w: Floats) -> float:
        """Return the log-likelihood of an orthogonal matrix."""
        total = 0.0
        for cross, square, left in zip(crosses, squares, residuals, strict=True):
            pulled = (cross * w).sum(axis=1) - 0.5 * ((w @ square) * w).sum(axis=1)
            total += float((pulled / left).sum())
        return total

    best = likelihood(turn)
    for _ in range(n_steps):
        gradient, curvature = np.zeros((d, d)), np.zeros((d, d))
        for cross, square, left in zip(crosses, squares, residuals, strict=True):
            k, c = cross @ turn.T, turn @ square @ turn.T
            gradient += (k - c) / left[:, None]
            own = np.diag(c)
            curvature += own[None, :] / left[:, None] + ((np.diag(k) - own) / left)[:, None]
        gradient, curvature = gradient - gradient.T, curvature + curvature.T
        step = np.clip(gradient / (np.maximum(curvature, 0.0) + 0.02), -0.3, 0.3)
        size, gain = 1.0, 0.0
        while size > 0.05:
            tried = orthogonal_factor(identity + size * step) @ turn
            value = likelihood(tried)
            if value > best:
                turn, gain, best = tried, value - best, value
                break
            size /= 2
        if gain < 1e-3:
            break
    return turn
