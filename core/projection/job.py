"""The job that draws a map in a separate process."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.errors import CoreError
from leakscope.core.projection.layout import MAX_POINTS, Layout, project
from leakscope.core.projection.layout_cache import project_cached
from leakscope.core.projection.points import Points, corpus_points
from leakscope.core.projection.shipped import find_vectors
from leakscope.core.projection.spec import ProjectionSpec
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.specs import EncoderSpec

_SHARE_OF_ENCODING = 0.7


@dataclass(frozen=True, kw_only=True)
class MapRequest:
    """The texts, encoder and settings that identify a map.

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
    """Load texts unless given, encode them and draw the map; return points, vectors and layout.

    Parameters
    ----------
    points : Points or None
        Points of an upload; None to read the corpus.
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
    encoder: Encoder = shared_encoder(request.on)
    vectors: Vectors | None = None
    if not points.is_private:
        with suppress(CoreError):  # damaged: the texts are encoded again
            vectors = find_vectors(points, encoder.name, encoder.fingerprint)
        encoder = CachedEncoder(encoder)
    share = _SHARE_OF_ENCODING if vectors is None else 0.0
    if vectors is None:
        n = len(points)
        vectors = encoder.encode(
            points.texts,
            lambda done, _: on_progress(
                share * done, f"Encoding, {round(done * n):,} of {n:,} texts"
            ),
        )
    draw = project if points.is_private else project_cached
    layout = draw(
        vectors,
        request.spec,
        lambda done, told: on_progress(share + (1 - share) * done, told),
    )
    return points, vectors, layout
