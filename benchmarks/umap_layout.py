"""UMAP of 10,000 and 50,000 vectors against umap-learn, and placing a new vector."""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any

from benchmarks import Measurement, seconds_of

SIZES = (10_000, 50_000)
N_NEW = 200
REPEATS = 50
SEED = 0


def measure() -> list[Measurement]:
    """Compare our UMAP with umap-learn: fitting time, trustworthiness and placing new vectors."""
    import numpy as np
    from umap import UMAP

    from leakscope.core.projection import ProjectionSpec, project
    from leakscope.core.projection.quality import trustworthiness
    from leakscope.core.vectors import unit

    everything = unit(sentence_vectors(max(SIZES) + N_NEW))
    fresh = everything[-N_NEW:]
    project(everything[:500], ProjectionSpec())  # compiles before the clock runs
    fit_umap_learn(UMAP, everything[:5000], SEED, n_epochs=5)
    rows = []
    for n in SIZES:
        vectors = everything[:n]
        start = time.perf_counter()
        layout = project(vectors, ProjectionSpec(seed=SEED))
        whole = time.perf_counter() - start
        seconds, model = fit_umap_learn(UMAP, vectors, SEED)
        unseeded, _ = fit_umap_learn(UMAP, vectors, None)
        theirs = trustworthiness(vectors, np.ascontiguousarray(model.embedding_), seed=SEED).score
        ours = layout.trustworthiness.score
        rows += [
            Measurement(
                name=f"UMAP, {n:,} × {vectors.shape[1]}, same seed",
                value=layout.seconds / seconds,
                unit="× umap-learn",
                at_most=1,
                note=f"{layout.seconds:.1f} s ({whole:.1f} s with its quality) against "
                f"{seconds:.1f} s; {layout.seconds / unseeded:.2f}× the {unseeded:.1f} s of "
                "umap-learn without a seed, which no run repeats",
            ),
            Measurement(
                name=f"UMAP, {n:,}, trustworthiness above umap-learn's",
                value=ours.value - theirs.value,
                unit="",
                goal=-0.01,
                n=ours.n,
                note=f"{ours.format(4)} against {theirs.format(4)}",
            ),
            *measure_placing(n, layout, model, fresh),
        ]
    return rows


def sentence_vectors(n: int) -> Any:
    """Encode n sentences by MiniLM; average pairs of vectors if there are too few."""
    import numpy as np

    from leakscope.core.corpora import bundled_sentences
    from leakscope.core.encoders import load_encoder
    from leakscope.core.encoders.cache import CachedEncoder

    texts = list(dict.fromkeys(bundled_sentences()))
    vectors = CachedEncoder(load_encoder("minilm")).encode(texts)
    rng = np.random.default_rng(SEED)
    vectors = vectors[rng.permutation(len(vectors))]
    if n <= len(vectors):
        return vectors[:n]
    a, b = rng.integers(len(vectors), size=(2, n - len(vectors)))
    share = rng.uniform(0.55, 0.9, size=(len(a), 1)).astype(np.float32)
    mixed = share * vectors[a] + (1 - share) * vectors[b]
    return np.concatenate([vectors, mixed])[rng.permutation(n)]


def fit_umap_learn(kind: Any, vectors: Any, seed: int | None, **settings: Any) -> tuple[float, Any]:
    """Fit umap-learn's model, with defaults unless set; return seconds and the fitted model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model = kind(random_state=seed, **settings).fit(vectors)
        return time.perf_counter() - start, model


def measure_placing(n: int, layout: Any, model: Any, fresh: Any) -> list[Measurement]:
    """Time placing a new vector on a map; measure the distance from umap-learn's placement.

    Both start from the weighted mean of the neighbours' places; umap-learn then moves the point.
    """
    import numpy as np

    from leakscope.core.projection.layout import Layout

    times = [
        seconds_of(lambda turn=turn: layout.transform(fresh[turn : turn + 1]))  # type: ignore[misc]
        for turn in range(REPEATS)
    ]
    start = time.perf_counter()
    theirs = model.transform(fresh)
    their_seconds = time.perf_counter() - start
    on_their_map = Layout(
        spec=layout.spec,
        coordinates=np.ascontiguousarray(model.embedding_, dtype=np.float32),
        trustworthiness=layout.trustworthiness,
        seconds=0.0,
        compared=layout.compared,
    )
    apart = np.linalg.norm(on_their_map.transform(fresh) - theirs, axis=1)
    width = float(np.ptp(model.embedding_, axis=0).mean())
    return [
        Measurement(
            name=f"a new vector onto a map of {n:,}",
            value=1000 * statistics.median(times),
            unit="ms",
            at_most=300,
            n=REPEATS,
            note=f"median; greatest {1000 * max(times):.0f} ms. umap-learn's transform of "
            f"{len(fresh)} at once, its first call: {their_seconds:.1f} s",
        ),
        Measurement(
            name=f"our place from umap-learn's transform, {n:,}",
            value=100 * float(np.median(apart)) / width,
            unit="% of the map's width",
            n=len(fresh),
            note=f"median; 90 % of the points within {100 * np.quantile(apart, 0.9) / width:.1f} %",
        ),
    ]
