"""Projection methods, and the settings of a map."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from leakscope.core.specs import setting, validate_settings


@dataclass(frozen=True)
class Method:
    """A projection method: what it preserves, how it places new vectors, and its reference."""

    title: str
    keeps: str
    reference: str
    settings: tuple[str, ...]
    """Settings of `ProjectionSpec` that this method uses, apart from dimension, metric and seed."""
    places_new: str
    """How a new vector is placed on the map."""


_BY_NEIGHBOURS = (
    "An approximation: a new vector is placed at the weighted mean of the positions of its nearest "
    "vectors. The map itself does not change."
)

METHODS: dict[str, Method] = {
    "umap": Method(
        "UMAP",
        "Neighbourhoods. Distances between distant groups, and their sizes, mean little.",
        "McInnes, Healy & Melville (2018)",
        ("n_neighbors", "min_dist", "n_epochs"),
        _BY_NEIGHBOURS,
    ),
    "tsne": Method(
        "t-SNE",
        "Neighbourhoods, in tighter groups. Distances between groups mean nothing.",
        "van der Maaten & Hinton (2008)",
        ("perplexity",),
        _BY_NEIGHBOURS,
    ),
    "pca": Method(
        "PCA",
        "The directions in which the vectors differ most. Distances are meaningful, but most "
        "detail is lost.",
        "Pearson (1901)",
        (),
        "Exact: the map is a linear function of the vector.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class ProjectionSpec:
    """Settings of a map: method, dimension, metric, seed and the method's own.

    Raises
    ------
    InvalidInputError
        A value outside its range, when `check` is called; the message names the range.
    """

    method: str = setting("umap", "How vectors are projected", choices=tuple(METHODS))
    n_components: int = setting(2, "Dimensions of the map", choices=(2, 3))
    metric: str = setting(
        "cosine",
        "Distance between vectors: by angle (after scaling each to length one) or Euclidean",
        choices=("cosine", "euclidean"),
    )
    n_neighbors: int = setting(
        15,
        "Neighbours that each point is placed beside: few show detail, many show the overall "
        "structure",
        low=2,
        high=200,
    )
    min_dist: float = setting(0.1, "How close points may be on the map", low=0, high=0.99)
    n_epochs: int | None = setting(
        None, "Optimisation rounds; by default they depend on the number of points"
    )
    perplexity: float = setting(
        30.0, "Roughly, how many neighbours each point is placed beside", low=2, high=200
    )
    seed: int = setting(0, "Random seed: the same seed gives the same map", low=0, high=2**32 - 1)

    def check(self) -> ProjectionSpec:
        """Return the spec unchanged; raise InvalidInputError for a value outside its range."""
        validate_settings(self)
        return self

    @property
    def identity(self) -> str:
        """A JSON string of the settings that affect the map, without those its method ignores."""
        shared = ("method", "n_components", "metric", "seed")
        used: dict[str, Any] = {
            name: getattr(self, name) for name in (*shared, *METHODS[self.method].settings)
        }
        return json.dumps(used, sort_keys=True)
