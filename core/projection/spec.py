"""What to draw: the method of a map and its settings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from core.specs import setting, validate_settings

__all__ = ["METHODS", "Method", "ProjectionSpec"]


@dataclass(frozen=True)
class Method:
    """A way to draw vectors: what it keeps, what its map does not say, and where it comes from."""

    title: str
    keeps: str
    reference: str
    settings: tuple[str, ...]
    """Of `ProjectionSpec`, those that this method uses besides dimension, metric and seed."""
    places_new: str
    """How a vector that was not there when the map was made finds its place."""


_BY_NEIGHBOURS = (
    "An approximation: a new vector is put at the weighted mean of the places of its nearest "
    "vectors on the map. The map itself is not made again."
)

METHODS: dict[str, Method] = {
    "umap": Method(
        "UMAP",
        "Who is near whom. Distances between far groups, and their sizes, say little.",
        "McInnes, Healy & Melville (2018)",
        ("n_neighbors", "min_dist", "n_epochs"),
        _BY_NEIGHBOURS,
    ),
    "tsne": Method(
        "t-SNE",
        "Who is near whom, in tighter groups. Distances between groups say nothing.",
        "van der Maaten & Hinton (2008)",
        ("perplexity",),
        _BY_NEIGHBOURS,
    ),
    "pca": Method(
        "PCA",
        "The directions in which the vectors differ most. Distances can be read, most detail is "
        "lost.",
        "Pearson (1901)",
        (),
        "Exact: the map is a linear function of the vector.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class ProjectionSpec:
    """A map to draw.

    Raises
    ------
    InvalidInputError
        A value outside its range, when `check` is called; the message names the range.
    """

    method: str = setting("umap", "How vectors become places", choices=tuple(METHODS))
    n_components: int = setting(2, "Dimensions of the map", choices=(2, 3))
    metric: str = setting(
        "cosine",
        "Which vectors count as near: by angle (each is scaled to length one first) or by distance",
        choices=("cosine", "euclidean"),
    )
    n_neighbors: int = setting(
        15, "Neighbours that each point is drawn beside: few show detail, many the whole", low=2,
        high=200,
    )  # fmt: skip
    min_dist: float = setting(0.1, "How closely points may lie together", low=0, high=0.99)
    n_epochs: int | None = setting(None, "Rounds of moving the points; none: by their number")
    perplexity: float = setting(
        30.0, "About how many neighbours each point is drawn beside", low=2, high=200
    )
    seed: int = setting(0, "Seed: the same seed gives the same map", low=0, high=2**32 - 1)

    def check(self) -> ProjectionSpec:
        """Return the spec, or raise InvalidInputError for a value outside its range."""
        validate_settings(self)
        return self

    @property
    def identity(self) -> str:
        """JSON of the settings that decide the map, those alone that its method uses."""
        shared = ("method", "n_components", "metric", "seed")
        used: dict[str, Any] = {
            name: getattr(self, name) for name in (*shared, *METHODS[self.method].settings)
        }
        return json.dumps(used, sort_keys=True)
