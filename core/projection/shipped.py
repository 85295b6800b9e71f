"""The shipped example map, so that the page opens at once.

Its vectors serve every other method and dimension too: nothing of it is encoded again.

`scripts/projection_map.py` draws it. It holds positions and vectors, no texts: those are read from
the corpora, which come with gensim.
"""

from __future__ import annotations

import numpy as np

from leakscope.core.assets import ASSETS
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.projection.layout import Layout
from leakscope.core.projection.layout_cache import load_layout
from leakscope.core.projection.points import Points
from leakscope.core.projection.spec import ProjectionSpec
from leakscope.core.protocols import Vectors
from leakscope.core.storage.artifacts import META, load_artifact, read_record

SHIPPED = ASSETS / "projection"
CORPUS = "bundled"
N_POINTS = 2000


def find_shipped(
    points: Points, encoder: str, fingerprint: str, spec: ProjectionSpec
) -> tuple[Vectors, Layout] | None:
    """Load the shipped vectors and map if points, encoder and settings match; else None.

    Raises
    ------
    ArtifactError
        A file is damaged; the message names it.
    """
    vectors = find_vectors(points, encoder, fingerprint)
    if vectors is None:
        return None
    place = SHIPPED / encoder / "layout"
    told = read_record(place / META, spec=dict)["spec"]
    try:
        is_same = ProjectionSpec(**told).check().identity == spec.identity
    except (TypeError, InvalidInputError) as error:
        raise ArtifactError(
            f"{place / META} does not describe a map. Restore it from the source."
        ) from error
    if not is_same:
        return None
    return vectors, load_layout(place, vectors, spec)


def find_vectors(points: Points, encoder: str, fingerprint: str) -> Vectors | None:
    """Load the shipped vectors, as float32, if points and encoder match; else None.

    Raises
    ------
    ArtifactError
        A file is damaged; the message names it.
    """
    folder = SHIPPED / encoder
    if ":" in encoder or not (folder / "layout" / META).exists():
        return None
    told = read_record(folder / "layout" / META)
    if [told.get("texts"), told.get("fingerprint")] != [points.content_hash, fingerprint]:
        return None
    arrays, _ = load_artifact(folder / "vectors")
    if "vectors" not in arrays or len(arrays["vectors"]) != len(points):
        raise ArtifactError(
            f"{folder} contains vectors of other texts. Restore it from the source."
        )
    return np.asarray(arrays["vectors"], np.float32)
