"""Cache of maps on disk, keyed by a hash of their vectors and settings; uploads are excluded.

Maps of uploads are never kept.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import ArtifactError, InvalidInputError, StorageError
from leakscope.core.projection.layout import Layout, check_vectors, project
from leakscope.core.projection.principal import Principal
from leakscope.core.projection.quality import NeighbourScore
from leakscope.core.projection.spec import ProjectionSpec
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.results import Interval, Score
from leakscope.core.storage.artifacts import META, load_artifact, save_artifact
from leakscope.core.storage.cache_folder import cache_dir
from leakscope.core.storage.encryption import is_cache_off
from leakscope.core.vectors import unit

_LOG = logging.getLogger(__name__)
_DRAWN_BY = 3
"""Version of the drawing code, raised whenever the same spec gives another map."""


def layout_key(vectors: Vectors, spec: ProjectionSpec) -> str:
    """Return the cache key of a map: a SHA-256 of its vectors, settings and library versions."""
    digest = hashlib.sha256()
    versions = [version(name) for name in ("umap-learn", "scikit-learn")]
    digest.update(f"{_DRAWN_BY}|{spec.identity}|{versions}|{vectors.shape}|".encode())
    digest.update(np.ascontiguousarray(vectors, np.float32).view(np.uint8).data)
    return digest.hexdigest()


def project_cached(
    vectors: Vectors,
    spec: ProjectionSpec,
    on_progress: OnProgress = no_progress,
    *,
    folder: Path | None = None,
) -> Layout:
    """Load the map of given vectors from the cache on disk; if absent, draw and store it.

    Not for what users type or upload: a map reveals its texts. A damaged map is drawn again;
    if nothing can be written, the map is returned without caching. With LEAKSCOPE_NO_CACHE nothing
    is kept, and nothing that was is read.

    Parameters
    ----------
    folder : Path, optional
        Folder of the maps; `cache_dir("layouts")` by default.
    """
    vectors = check_vectors(vectors)
    if is_cache_off():
        return project(vectors, spec, on_progress)
    place = (cache_dir("layouts") if folder is None else folder) / layout_key(vectors, spec)
    if (place / META).exists():
        try:
            return load_layout(place, vectors, spec)
        except ArtifactError as error:
            _LOG.warning("%s Drawing the map again.", error)
    layout = project(vectors, spec, on_progress)
    try:
        save_layout(place, layout)
    except StorageError as error:
        _LOG.warning("%s", error)
    return layout


def save_layout(folder: Path, layout: Layout, **more: Any) -> Path:
    """Write a map, without its vectors, to a folder; return the path."""
    arrays: dict[str, NDArray[Any]] = {"coordinates": layout.coordinates}
    if layout.principal is not None:
        arrays |= {"mean": layout.principal.mean, "axes": layout.principal.axes}
    quality = layout.trustworthiness
    score = quality.score
    meta = {
        "kind": "layout",
        "spec": asdict(layout.spec),
        "trustworthiness": {
            "value": score.value,
            "ci95": asdict(score.ci95),
            "n": score.n,
            "k": quality.k,
        },
        "seconds": layout.seconds,
        "kept": layout.principal.kept if layout.principal else None,
        **more,
    }
    return save_artifact(folder, arrays, meta)


def load_layout(folder: Path, vectors: Vectors, spec: ProjectionSpec) -> Layout:
    """Load a map of these vectors; raise ArtifactError if it does not match.

    Raises
    ------
    ArtifactError
        Missing, damaged, of another kind, of other settings or of another number of points.
    """
    arrays, meta = load_artifact(folder)
    try:
        stored = ProjectionSpec(**meta["spec"]).check()
        told = meta["trustworthiness"]
        score = Score(told["value"], Interval(**told["ci95"]), told["n"])
        quality = NeighbourScore(score, told["k"])
        places = arrays["coordinates"]
        principal = (
            Principal(arrays["mean"], arrays["axes"], tuple(meta["kept"]))
            if spec.method == "pca"
            else None
        )
        seconds = float(meta["seconds"])
    except (KeyError, TypeError, ValueError, InvalidInputError) as error:
        raise ArtifactError(f"{folder / META} does not describe a map.") from error
    if stored.identity != spec.identity or places.shape != (len(vectors), spec.n_components):
        raise ArtifactError(f"{folder} contains a different map from the requested one.")
    return Layout(
        spec=spec,
        coordinates=np.ascontiguousarray(places, np.float32),
        trustworthiness=quality,
        seconds=seconds,
        compared=unit(vectors) if spec.metric == "cosine" else vectors,
        principal=principal,
    )
