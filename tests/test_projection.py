from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness as sklearn_trustworthiness

from leakscope.core.errors import ArtifactError, InvalidInputError, StoppedError
from leakscope.core.projection import METHODS, Layout, ProjectionSpec, project
from leakscope.core.projection.layout_cache import (
    layout_key,
    load_layout,
    project_cached,
    save_layout,
)
from leakscope.core.projection.neighbours import nearest
from leakscope.core.projection.principal import principal_components
from leakscope.core.projection.quality import neighbour_agreement, trustworthiness
from leakscope.core.projection.umap_method import fitted_curve, fuzzy_graph, memberships
from leakscope.core.vectors import unit

SPECS = [ProjectionSpec(method=m, n_components=c) for m in METHODS for c in (2, 3)]
N, DIMENSION, N_CLASSES = 240, 32, 4


def name_of(spec: ProjectionSpec) -> str:
    return f"{spec.method}-{spec.n_components}d"


@pytest.fixture(scope="module")
def classes() -> list[int]:
    return [i % N_CLASSES for i in range(N)]


@pytest.fixture(scope="module")
def vectors(classes: list[int]) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(N_CLASSES, DIMENSION))
    noise = rng.normal(size=(N, DIMENSION))
    return (3 * centres[classes] + noise).astype(np.float32)


@pytest.fixture(scope="module")
def layouts(vectors: np.ndarray) -> dict[str, Layout]:
    return {name_of(spec): project(vectors, spec) for spec in SPECS}


def test_nearest_is_exact_and_sorted() -> None:
    rng = np.random.default_rng(1)
    base, asked = (rng.normal(size=(n, 8)).astype(np.float32) for n in (70, 9))
    found, distances = nearest(base, asked, 5)
    everything = np.linalg.norm(asked[:, None].astype(float) - base[None], axis=2)
    assert (found == everything.argsort(1)[:, :5]).all()
    assert distances == pytest.approx(np.sort(everything, 1)[:, :5], abs=1e-5)
    own, _ = nearest(base, base, 69, is_self=True)
    assert all(set(row) == set(range(70)) - {i} for i, row in enumerate(own))


def test_principal_components_equal_those_of_scikit_learn(vectors: np.ndarray) -> None:
    ours, theirs = principal_components(vectors, 3), PCA(3, svd_solver="full").fit(vectors)
    assert ours.kept == pytest.approx(theirs.explained_variance_ratio_, abs=1e-5)
    assert np.abs(ours.project(vectors)) == pytest.approx(
        np.abs(theirs.transform(vectors)), abs=1e-3
    )


def test_fewer_dimensions_than_the_map_has() -> None:
    line = np.linspace(0, 1, 20, dtype=np.float32)[:, None]
    found = principal_components(line, 2)
    assert found.project(line).shape == (20, 2) and found.kept == pytest.approx((1, 0))


def test_trustworthiness_is_that_of_the_paper() -> None:
    # Four points on a line are put on the map as 0, 2, 1, 3. With k = 1 the formula gives
    # 1 − 2/(4·1·(8−3−1))·Σ(r−1): neighbours on the map are 2 (rank 2), 2, 0, 1.
    line = np.array([[0.0], [1.0], [2.1], [3.3]], np.float32)
    on_map = np.array([[0.0], [2.1], [1.0], [3.3]], np.float32)
    told = trustworthiness(line, on_map, k=1)
    # 0 → 2 is its second neighbour, 1 → 2 its second, 2 → 0 its third, 3 → 1 its second.
    assert told.score.value == pytest.approx(1 - 2 / (4 * 4) * (1 + 1 + 2 + 1))
    assert (told.score.n, told.k) == (4, 1)


@pytest.mark.parametrize("seed", [0, 1])
def test_trustworthiness_equals_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(150, 20)).astype(np.float32)
    places = rng.normal(size=(150, 2)).astype(np.float32)
    expected = sklearn_trustworthiness(vectors, places, n_neighbors=12)
    whole = trustworthiness(vectors, places, k=12)
    assert whole.score.value == pytest.approx(expected, abs=1e-6)
    part = trustworthiness(vectors, places, k=12, n_sample=60, seed=seed).score
    assert part.n == 60 and part.ci95.low <= expected <= part.ci95.high


def test_the_vectors_themselves_are_trustworthy(vectors: np.ndarray) -> None:
    assert trustworthiness(vectors, vectors).score.value == 1


def test_agreement_with_classes() -> None:
    apart = np.repeat(np.array([[0.0, 0.0], [9.0, 9.0]], np.float32), 20, axis=0)
    apart += np.random.default_rng(0).normal(scale=0.1, size=apart.shape).astype(np.float32)
    told = neighbour_agreement(apart, ["a"] * 20 + ["b"] * 20)
    assert told is not None and told.score.value == 10
    assert told.score.chance == pytest.approx(10 * 19 / 39)
    mixed = np.random.default_rng(1).normal(size=(600, 2)).astype(np.float32)
    found = neighbour_agreement(mixed, [i % 3 for i in range(600)])
    assert found is not None
    random = found.score
    assert random.ci95.low < random.chance < random.ci95.high


def test_agreement_counts_no_point_as_its_own_neighbour() -> None:
    same = np.zeros((30, 2), np.float32)
    told = neighbour_agreement(same, list(range(30)))
    assert told is not None and told.score.value == 0
    assert neighbour_agreement(same, ["a"] * 30) is None
    assert neighbour_agreement(same, [None] * 28 + ["a", "b"]) is None


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_a_map_keeps_neighbours(
    spec: ProjectionSpec, layouts: dict[str, Layout], classes: list[int]
) -> None:
    layout = layouts[name_of(spec)]
    assert layout.coordinates.shape == (N, spec.n_components)
    assert layout.coordinates.dtype == np.float32 and np.isfinite(layout.coordinates).all()
    assert layout.trustworthiness.score.value > 0.75 and layout.trustworthiness.score.n == N
    told = neighbour_agreement(layout.coordinates, classes)
    assert told is not None and told.score.value > 8 > told.score.chance


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS[::2], ids=name_of)
def test_a_map_is_repeated_by_its_seed(
    spec: ProjectionSpec, layouts: dict[str, Layout], vectors: np.ndarray
) -> None:
    again = project(vectors, spec)
    assert (again.coordinates == layouts[name_of(spec)].coordinates).all()


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_new_vectors_land_among_their_class(
    spec: ProjectionSpec, layouts: dict[str, Layout], vectors: np.ndarray, classes: list[int]
) -> None:
    layout = layouts[name_of(spec)]
    own = layout.transform(vectors[:20])
    assert own == pytest.approx(layout.coordinates[:20], abs=1e-5), "its own place, not near it"
    fresh = vectors + np.random.default_rng(2).normal(scale=0.3, size=vectors.shape)
    found, _ = nearest(layout.coordinates, layout.transform(fresh), 1)
    is_same = np.array(classes)[found[:, 0]] == np.array(classes)
    assert is_same.mean() > 0.9


def test_memberships_sum_to_the_logarithm_before_they_are_scaled() -> None:
    distances = np.array([[0.1, 0.5, 0.9, 1.4], [2.0, 2.0, 2.0, 2.0], [0, 0, 0, 0]], np.float32)
    weights = memberships(distances)
    assert weights.sum(1) == pytest.approx(1) and (np.diff(weights[0]) < 0).all()
    # exp(−d/σ) = weight·log₂ k: the σ that each neighbour tells is the same.
    sigma = -distances[0] / np.log(weights[0] * 2)
    assert np.ptp(sigma) < 1e-3 and weights[1:] == pytest.approx(0.25)


def test_the_graph_of_neighbours_by_hand() -> None:
    """Three points: 0 has 1 at 1 and 2 at 3; 1 has 0 at 1 and 2 at 2; 2 has 1 at 2 and 0 at 3."""
    near = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    graph = fuzzy_graph(near, np.array([[0, 1, 3], [0, 1, 2], [0, 2, 3]], float)).toarray()
    second = np.log2(3) - 1  # the nearest counts 1, both together log₂ 3
    either = second + second - second**2
    assert graph == pytest.approx(np.array([[0, 1, either], [1, 0, 1], [either, 1, 0]]), abs=1e-6)


@pytest.mark.slow
def test_the_graph_of_neighbours_is_that_of_umap_learn(vectors: np.ndarray) -> None:
    from umap.umap_ import find_ab_params, fuzzy_simplicial_set

    known = unit(vectors).astype(np.float32)
    known[:40] = known[0]  # more doubles than neighbours
    found, far = nearest(known, known, 14, is_self=True)
    own = np.arange(len(known))[:, None]
    near = np.hstack([own, found]).astype(np.int32)
    far = np.hstack([np.zeros_like(own, np.float32), far])
    theirs, *_ = fuzzy_simplicial_set(
        known, 15, np.random.RandomState(0), "euclidean", knn_indices=near, knn_dists=far
    )
    assert abs(fuzzy_graph(near, far) - theirs).max() < 1e-4
    assert fitted_curve(1.0, 0.1) == pytest.approx(find_ab_params(1.0, 0.1), rel=1e-6)


@pytest.mark.slow
def test_places_are_where_the_transform_of_umap_starts(vectors: np.ndarray) -> None:
    import warnings

    from umap import UMAP
    from umap.umap_ import init_graph_transform

    known, fresh = unit(vectors[:200]), unit(vectors[200:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = UMAP(random_state=0, n_epochs=30).fit(known)
        model.transform_mode = "graph"
        graph = model.transform(fresh).tocsr()
    expected = init_graph_transform(graph, model.embedding_)
    layout = Layout(
        spec=ProjectionSpec(),
        coordinates=np.ascontiguousarray(model.embedding_, np.float32),
        trustworthiness=trustworthiness(known, model.embedding_),
        seconds=0.0,
        compared=known,
    )
    assert layout.transform(fresh) == pytest.approx(expected, abs=0.02)


def test_cosine_forgets_lengths(vectors: np.ndarray) -> None:
    spec = ProjectionSpec(method="pca")
    longer = vectors * np.random.default_rng(3).uniform(0.5, 2, size=(N, 1)).astype(np.float32)
    assert project(longer, spec).coordinates == pytest.approx(
        project(vectors, spec).coordinates, abs=1e-4
    )
    euclidean = replace(spec, metric="euclidean")
    assert np.ptp(project(2 * vectors, euclidean).coordinates) == pytest.approx(
        2 * np.ptp(project(vectors, euclidean).coordinates), rel=1e-3
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda v: v[:5], "10 to 250,000"),
        (lambda v: v[0], "shape"),
        (lambda v: np.where(np.arange(N)[:, None] == 3, np.nan, v), "finite"),
        (lambda v: np.ones_like(v), "the same"),
        (lambda v: v.astype(str), "finite"),
        (lambda v: np.zeros((250_001, 1), np.float32), "sample"),
    ],
)
def test_vectors_that_cannot_be_drawn(vectors: np.ndarray, change, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        project(change(vectors), ProjectionSpec(method="pca"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "isomap"},
        {"n_components": 4},
        {"n_neighbors": 1},
        {"min_dist": 2.0},
        {"perplexity": 0.5},
        {"seed": -1},
        {"metric": "manhattan"},
    ],
    ids=str,
)
def test_settings_out_of_range(vectors: np.ndarray, wrong: dict) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        project(vectors, ProjectionSpec(**wrong))


@pytest.mark.slow
def test_vectors_of_another_encoder_are_refused(layouts: dict[str, Layout]) -> None:
    with pytest.raises(InvalidInputError, match=f"have {DIMENSION} dimensions"):
        layouts["umap-2d"].transform(np.zeros((1, 5), np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_ten_points_with_doubles(method: str) -> None:
    few = np.repeat(np.eye(5, 8, dtype=np.float32), 2, axis=0)
    assert np.isfinite(project(few, ProjectionSpec(method=method)).coordinates).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_drawing_tells_progress_and_stops(vectors: np.ndarray, method: str) -> None:
    seen: list[float] = []

    def stop(fraction: float, message: str) -> None:
        assert message
        seen.append(fraction)
        if len(seen) == 2:
            raise StoppedError("Stopped.")

    with pytest.raises(StoppedError):
        project(vectors, ProjectionSpec(method=method), stop)
    assert len(seen) == 2 and seen == sorted(seen)
    assert project(vectors, ProjectionSpec(method="umap")).seconds > 0, "nothing stays locked"


def test_a_map_comes_back_from_disk(vectors: np.ndarray, tmp_path: Path) -> None:
    spec = ProjectionSpec(method="pca")
    drawn = project_cached(vectors, spec, folder=tmp_path)

    def refuse(fraction: float, message: str) -> None:
        raise AssertionError("drawn again")

    again = project_cached(vectors, spec, refuse, folder=tmp_path)
    assert (again.coordinates == drawn.coordinates).all()
    assert again.trustworthiness == drawn.trustworthiness
    assert again.transform(vectors[:3]) == pytest.approx(drawn.transform(vectors[:3]))


def test_a_damaged_map_is_drawn_anew(vectors: np.ndarray, tmp_path: Path) -> None:
    spec = ProjectionSpec(method="pca")
    drawn = project_cached(vectors, spec, folder=tmp_path)
    folder = tmp_path / layout_key(vectors, spec)
    (arrays,) = folder.glob("*.safetensors")
    arrays.write_bytes(arrays.read_bytes()[:-10])
    with pytest.raises(ArtifactError):
        load_layout(folder, vectors, spec)
    assert (project_cached(vectors, spec, folder=tmp_path).coordinates == drawn.coordinates).all()
    load_layout(folder, vectors, spec)


def test_a_map_that_cannot_be_kept_is_shown(vectors: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    drawn = project_cached(vectors, ProjectionSpec(method="pca"), folder=tmp_path / "file")
    assert len(drawn.coordinates) == N


@pytest.mark.slow
def test_a_map_of_something_else_is_refused(
    vectors: np.ndarray, layouts: dict[str, Layout], tmp_path: Path
) -> None:
    save_layout(tmp_path / "map", layouts["umap-2d"])
    for asked, spec in ((vectors, ProjectionSpec(n_neighbors=9)), (vectors[1:], ProjectionSpec())):
        with pytest.raises(ArtifactError, match="a different map"):
            load_layout(tmp_path / "map", asked, spec)


def test_the_key_knows_what_decides_a_map(vectors: np.ndarray) -> None:
    pca, umap = ProjectionSpec(method="pca"), ProjectionSpec()
    assert layout_key(vectors, pca) == layout_key(vectors, replace(pca, n_neighbors=50))
    keys = {
        layout_key(vectors, umap),
        layout_key(vectors, replace(umap, n_neighbors=50)),
        layout_key(vectors, replace(umap, seed=1)),
        layout_key(vectors + 1, umap),
        layout_key(vectors, pca),
    }
    assert len(keys) == 5
