"""Draw the map that ships and store its vectors: `python -m scripts.projection_map`."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from leakscope.core.encoders import load_encoder
from leakscope.core.projection.layout import project
from leakscope.core.projection.layout_cache import save_layout
from leakscope.core.projection.points import corpus_points
from leakscope.core.projection.shipped import CORPUS, N_POINTS, SHIPPED
from leakscope.core.projection.spec import ProjectionSpec
from leakscope.core.storage.artifacts import save_artifact


def main() -> None:
    """Encode texts, draw the map of their float16-rounded vectors, and write map and vectors."""
    parser = argparse.ArgumentParser(prog="python -m scripts.projection_map", description=__doc__)
    parser.parse_args()
    encoder, points = load_encoder("minilm"), corpus_points(CORPUS, N_POINTS)
    rounded = encoder.encode(points.texts).astype(np.float16)
    vectors = rounded.astype(np.float32)
    layout = project(vectors, ProjectionSpec())
    folder = SHIPPED / encoder.name
    save_artifact(folder / "vectors", {"vectors": rounded}, {"kind": "vectors"})
    identity = {"texts": points.content_hash, "fingerprint": encoder.fingerprint}
    save_layout(folder / "layout", layout, encoder=encoder.name, **identity)
    print(
        f"trustworthiness {layout.trustworthiness.score.format(3, with_n=True)}; "
        f"{layout.seconds:.1f} s",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
