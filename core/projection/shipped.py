"""The map that comes with the project, so that the page opens without a wait.

Its vectors serve every other method and dimension too: nothing of it is encoded again.

`python -m core.projection.shipped` draws it anew. It holds places and vectors, no texts: those are
read from the corpora, which come with gensim.
"""

from __future__ import annotations

import sys

import numpy as np

from core.assets import ASSETS
from core.encoders import load_encoder
from core.errors import ArtifactError, InvalidInputError
from core.projection.cached import load_layout, save_layout
from core.projection.layout import Layout, project
from core.projection.points import Points, corpus_points
from core.projection.spec import ProjectionSpec
from core.protocols import Vectors
from core.store import META, load_artifact, read_record, save_artifact

__all__ = ["CORPUS", "N_POINTS", "SHIPPED", "find_shipped", "find_vectors", "main"]

SHIPPED = ASSETS / "projection"
CORPUS = "bundled"
N_POINTS = 2000


def find_shipped(
    points: Points, encoder: str, fingerprint: str, spec: ProjectionSpec
) -> tuple[Vectors, Layout] | None:
    """Return vectors and map if this map of these points under this encoder ships.

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
            f"{place / META} describes no map. Restore it from the source."
        ) from error
    if not is_same:
        return None
    return vectors, load_layout(place, vectors, spec)


def find_vectors(points: Points, encoder: str, fingerprint: str) -> Vectors | None:
    """Return the (n, d) float32 vectors of these points if they ship; they were kept as float16.

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
        raise ArtifactError(f"{folder} holds vectors of other texts. Restore it from the source.")
    return np.asarray(arrays["vectors"], np.float32)


def main() -> None:
    """Draw the map and write it; vectors are rounded to float16 before, as they are kept."""
    encoder, points = load_encoder("minilm"), corpus_points(CORPUS, N_POINTS)
    rounded = encoder.encode(points.texts).astype(np.float16)
    vectors = rounded.astype(np.float32)
    layout = project(vectors, ProjectionSpec())
    folder = SHIPPED / encoder.name
    save_artifact(folder / "vectors", {"vectors": rounded}, {"kind": "vectors"})
    identity = {"texts": points.content_hash, "fingerprint": encoder.fingerprint}
    save_layout(folder / "layout", layout, encoder=encoder.name, **identity)
    print(
        f"trustworthiness {layout.trustworthiness.score.said(3, with_n=True)}; "
        f"{layout.seconds:.1f} s",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
