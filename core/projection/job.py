"""Drawing a map from a request: work for a process of its own."""

from __future__ import annotations

from dataclasses import dataclass

from core.encoders.at_hand import encoder_at_hand
from core.encoders.cache import CachedEncoder
from core.errors import CoreError
from core.projection.cached import project_cached
from core.projection.layout import MAX_POINTS, Layout, project
from core.projection.points import Points, corpus_points
from core.projection.shipped import find_vectors
from core.projection.spec import ProjectionSpec
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.specs import EncoderSpec

__all__ = ["MapRequest", "draw_map"]

_SHARE_OF_ENCODING = 0.7


@dataclass(frozen=True, kw_only=True)
class MapRequest:
    """What identifies a map: its texts, the encoder and how it is drawn.

    `source` is a corpus by name, or the SHA-256 of an uploaded file with `is_upload`; `is_private`
    keeps all of it out of caches on disk and away from other sessions.
    """

    source: str
    n: int
    on: EncoderSpec
    spec: ProjectionSpec
    sample_seed: int = 0
    text_column: str = ""
    is_upload: bool = False
    is_private: bool = False


def draw_map(
    request: MapRequest, points: Points | None, on_progress: OnProgress = no_progress
) -> tuple[Points, Vectors, Layout]:
    """Return the points of a map, their vectors and where they lie.

    Parameters
    ----------
    points : Points or None
        Of an upload; a corpus is read here.
    """
    on_progress(0.0, "Reading the texts")
    if points is None:
        points = corpus_points(
            request.source,
            min(request.n, MAX_POINTS),
            seed=request.sample_seed,
            is_private=request.is_private,
        )
    on_progress(0.0, "Loading the encoder")
    encoder = encoder_at_hand(request.on)
    vectors = None if points.is_private else _known_vectors(points, encoder)
    share = _SHARE_OF_ENCODING if vectors is None else 0.0
    if vectors is None:
        vectors = _encoded(points, encoder, lambda done, told: on_progress(share * done, told))
    draw = project if points.is_private else project_cached
    layout = draw(
        vectors,
        request.spec,
        lambda done, told: on_progress(share + (1 - share) * done, told),
    )
    return points, vectors, layout


def _known_vectors(points: Points, encoder: Encoder) -> Vectors | None:
    """Return the vectors that come with the project, where they are of these texts."""
    try:
        return find_vectors(points, encoder.name, encoder.fingerprint)
    except CoreError:  # damaged: they can be encoded anew
        return None


def _encoded(points: Points, encoder: Encoder, on_progress: OnProgress) -> Vectors:
    if not points.is_private:
        encoder = CachedEncoder(encoder)
    n = len(points)
    return encoder.encode(
        points.texts,
        lambda done, _: on_progress(done, f"Encoding, {round(done * n):,} of {n:,} texts"),
    )
