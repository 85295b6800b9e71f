"""Project vectors to a map, and place new vectors on it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.projection.neighbours import nearest
from leakscope.core.projection.principal import Principal, principal_components
from leakscope.core.projection.quality import NeighbourScore, trustworthiness
from leakscope.core.projection.spec import ProjectionSpec
from leakscope.core.projection.tsne_method import tsne_places
from leakscope.core.projection.umap_method import memberships, umap_places
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.vectors import is_sparse, unit

MIN_POINTS = 10
MAX_POINTS = 250_000
_SHARE_OF_DRAWING = 0.95
_SAME = 1e-3
"""Distance between unit vectors below which float32 cannot distinguish two texts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """A drawn map: coordinates, trustworthiness, and what is needed to place new vectors.

    Attributes
    ----------
    spec : ProjectionSpec
    coordinates : float32 array (n, n_components)
        No unit; for PCA, that of the vectors.
    trustworthiness : NeighbourScore
    seconds : float
        Spent drawing.
    compared : float32 array (n, d)
        The vectors as they were compared: of length one under the metric `cosine`.
    principal : Principal or None
        The linear map, for PCA.
    """

    spec: ProjectionSpec
    coordinates: NDArray[np.float32]
    trustworthiness: NeighbourScore
    seconds: float
    compared: Vectors = field(repr=False)
    principal: Principal | None = None

    def transform(self, vectors: Vectors) -> NDArray[np.float32]:
        """Place m new vectors on the map without changing it; return (m, n_components) coordinates.

        PCA: exact. UMAP and t-SNE: an approximation, the mean of the places of the nearest
        vectors, weighted by UMAP's memberships. It is where umap-learn's `transform` starts from;
        the rounds of moving that follow there are left out. A vector of the map gets its own
        place.

        Raises
        ------
        InvalidInputError
            Another dimension, or values that are not numbers.
        """
        asked = self.normalise(vectors)
        if self.principal is not None:
            return self.principal.project(asked)
        k = min(self.spec.n_neighbors, len(self.compared))
        found, distances = nearest(self.compared, asked, k)
        weights = memberships(distances)
        places = (self.coordinates[found] * weights[:, :, None]).sum(1)
        is_there = distances[:, 0] < _SAME
        places[is_there] = self.coordinates[found[is_there, 0]]
        return np.ascontiguousarray(places, dtype=np.float32)

    def nearest(self, vectors: Vectors, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the k vectors of the map nearest to each given one: rows and distances, (m, k).

        By the vectors, not by their places.
        """
        return nearest(self.compared, self.normalise(vectors), min(k, len(self.compared)))

    def normalise(self, vectors: Vectors) -> Vectors:
        """Check vectors; return them as float32, scaled to unit length if the metric is cosine."""
        found = check_vectors(vectors, dimension=self.compared.shape[1])
        return unit(found) if self.spec.metric == "cosine" else found


def project(
    vectors: Vectors, spec: ProjectionSpec, on_progress: OnProgress = no_progress
) -> Layout:
    """Draw a map of vectors by the spec's method (UMAP, t-SNE or PCA) and measure its quality.

    The same vectors and spec give the same map on one machine; other processors and library
    versions may round otherwise, which UMAP and t-SNE amplify.

    Parameters
    ----------
    vectors : float32 array (n, d)
        10 to 250,000 of them, finite, not all the same.

    Raises
    ------
    InvalidInputError
        Vectors or settings that cannot be drawn; the message says why.
    StoppedError
        `on_progress` asked to stop.
    """
    spec.check()
    found = check_vectors(vectors)
    check_count(len(found))
    compared = unit(found) if spec.metric == "cosine" else found
    if float(np.ptp(compared, axis=0).max()) < 1e-7:
        raise InvalidInputError(
            "All vectors are the same, so there is nothing to map. Give different texts."
        )
    start = time.perf_counter()
    places, principal = _draw(
        compared, spec, lambda done, told: on_progress(_SHARE_OF_DRAWING * done, told)
    )
    seconds = time.perf_counter() - start
    on_progress(_SHARE_OF_DRAWING, "Measuring how well the map preserves neighbours")
    return Layout(
        spec=spec,
        coordinates=places,
        trustworthiness=trustworthiness(compared, places, seed=spec.seed),
        seconds=seconds,
        compared=compared,
        principal=principal,
    )


def check_count(n_texts: int) -> None:
    """Raise InvalidInputError unless the number of texts is within the limits of a map."""
    if not MIN_POINTS <= n_texts <= MAX_POINTS:
        raise InvalidInputError(
            f"A map needs {MIN_POINTS} to {MAX_POINTS:,} texts, got {n_texts:,}. "
            f"{'Give more' if n_texts < MIN_POINTS else 'Draw a sample of'} texts."
        )


def _draw(
    compared: Vectors, spec: ProjectionSpec, on_progress: OnProgress
) -> tuple[NDArray[np.float32], Principal | None]:
    """Run the spec's projection method; return coordinates and, for PCA, its axes (else None)."""
    if spec.method == "umap":
        return umap_places(compared, spec, on_progress), None
    if spec.method == "tsne":
        return tsne_places(compared, spec, on_progress), None
    on_progress(0.0, "Finding the principal components")
    principal = principal_components(compared, spec.n_components)
    return principal.project(compared), principal


def check_vectors(vectors: Vectors, *, dimension: int | None = None) -> Vectors:
    """Return vectors as contiguous float32; raise unless they are finite and of the right shape."""
    if is_sparse(vectors):
        raise InvalidInputError(
            "A map needs dense vectors, and those of a bag of words are sparse. Use LSA of the "
            "same bag of words: lsa_tfidf or lsa_hashing."
        )
    found = np.asarray(vectors)
    if found.ndim != 2 or not found.shape[1]:
        raise InvalidInputError(
            f"vectors must have the shape (n, dimension), got {found.shape}. Encode the texts."
        )
    if dimension is not None and found.shape[1] != dimension:
        raise InvalidInputError(
            f"The vectors of this map have {dimension} dimensions, got {found.shape[1]}. Use the "
            "encoder of the map."
        )
    if found.dtype.kind not in "fiu" or not np.isfinite(found).all():
        raise InvalidInputError(
            "vectors must be finite numbers, got NaN, infinity or something else. Encode the texts "
            "again."
        )
    return np.ascontiguousarray(found, dtype=np.float32)
