"""Maps on disk, found again by what they were drawn from. Maps of uploads are never kept."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import ArtifactError, InvalidInputError, StorageError
from core.projection.layout import Layout, check_vectors, project
from core.projection.principal import Principal
from core.projection.quality import NeighbourScore
from core.projection.spec import ProjectionSpec
from core.protocols import OnProgress, Vectors, no_progress
from core.results import Interval, Score
from core.store import META, cache_dir, load_artifact, save_artifact
from core.vault import is_cache_off
from core.vectors import unit

__all__ = ["layout_key", "load_layout", "project_cached", "save_layout"]

_LOG = logging.getLogger(__name__)
_DRAWN_BY = 2
"""Raised whenever the same spec comes to mean another map."""


def layout_key(vectors: Vectors, spec: ProjectionSpec) -> str:
    """Return the SHA-256 of vectors, settings and the versions of the libraries that draw."""
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
    """Return the map of vectors, from disk where it was drawn before.

    Not for what users type or upload: a map tells about its texts. A damaged file is drawn anew;
    where nothing can be written, the map is returned all the same. With LEAKSCOPE_NO_CACHE nothing
    is kept, and nothing that was is read.

    Parameters
    ----------
    folder : Path, optional
        Where maps lie; `cache_dir("layouts")` by default.
    """
    vectors = check_vectors(vectors)
    if is_cache_off():
        return project(vectors, spec, on_progress)
    place = (cache_dir("layouts") if folder is None else folder) / layout_key(vectors, spec)
    if (place / META).exists():
        try:
            return load_layout(place, vectors, spec)
        except ArtifactError as error:
            _LOG.warning("%s Drawing the map anew.", error)
    layout = project(vectors, spec, on_progress)
    try:
        save_layout(place, layout)
    except StorageError as error:
        _LOG.warning("%s", error)
    return layout


def save_layout(folder: Path, layout: Layout, **more: Any) -> Path:
    """Write a map without the vectors that it was drawn from."""
    arrays: dict[str, NDArray[Any]] = {"coordinates": layout.coordinates}
    if layout.principal is not None:
        arrays |= {"mean": layout.principal.mean, "axes": layout.principal.axes}
    meta = {
        "kind": "layout",
        "spec": asdict(layout.spec),
        "trustworthiness": _stored(layout.trustworthiness),
        "seconds": layout.seconds,
        "kept": layout.principal.kept if layout.principal else None,
        **more,
    }
    return save_artifact(folder, arrays, meta)


def _stored(quality: NeighbourScore) -> dict[str, Any]:
    score = quality.score
    return {"value": score.value, "ci95": asdict(score.ci95), "n": score.n, "k": quality.k}


def load_layout(folder: Path, vectors: Vectors, spec: ProjectionSpec) -> Layout:
    """Read a map of these vectors.

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
        raise ArtifactError(f"{folder} holds another map than the one asked for.")
    return Layout(
        spec=spec,
        coordinates=np.ascontiguousarray(places, np.float32),
        trustworthiness=quality,
        seconds=seconds,
        compared=unit(vectors) if spec.metric == "cosine" else vectors,
        principal=principal,
    )
