from __future__ import annotations

import numpy as np
import pytest

from leakscope.core.figures.projection import hover_texts, map_figure
from leakscope.core.projection import Layout, ProjectionSpec, project
from leakscope.core.projection.grouping import MISSING, Grouping, group_column, is_numeric
from leakscope.core.projection.points import corpus_points

N = 60


@pytest.fixture(scope="module", params=[2, 3])
def layout(request: pytest.FixtureRequest) -> Layout:
    vectors = np.random.default_rng(0).normal(size=(N, 8)).astype(np.float32)
    return project(vectors, ProjectionSpec(method="pca", n_components=request.param))


COLOUR = group_column([("news", "essay", "law")[i % 3] for i in range(N)])
SHAPE = group_column([("ada", None)[i % 2] for i in range(N)])
HOVER = hover_texts([f"text {i}" for i in range(N)])


def test_every_point_is_drawn_once_with_its_text_and_position(layout: Layout) -> None:
    figure = map_figure(layout, HOVER, title="A map", colour=COLOUR, shape=SHAPE)
    rows = np.concatenate([trace.customdata for trace in figure.data])
    assert sorted(rows) == list(range(N))
    for trace in figure.data:
        assert list(trace.hovertext) == [HOVER[i] for i in trace.customdata]
        assert trace.x == pytest.approx(layout.coordinates[trace.customdata, 0])
    kind = "scattergl" if layout.coordinates.shape[1] == 2 else "scatter3d"
    assert {trace.type for trace in figure.data} == {kind}


def test_colour_is_never_alone(layout: Layout) -> None:
    one = map_figure(layout, HOVER, title="A map", colour=COLOUR).data
    assert len({t.marker.color for t in one}) == len({t.marker.symbol for t in one}) == 3
    two = map_figure(layout, HOVER, title="A map", colour=COLOUR, shape=SHAPE).data
    assert len(two) == 6 and len({(t.marker.color, t.marker.symbol) for t in two}) == 6


def test_what_is_found_typed_and_moved_lies_on_top(layout: Layout) -> None:
    place = layout.coordinates[:1] + 1
    moved = layout.coordinates[:5], layout.coordinates[5:10]
    figure = map_figure(
        layout,
        HOVER,
        title="A map",
        colour=COLOUR,
        found=np.array([3, 4]),
        typed=place,
        moved=moved,
    )
    by_name = {trace.name: trace for trace in figure.data}
    assert list(by_name["found (2)"].x) == pytest.approx(list(layout.coordinates[[3, 4], 0]))
    assert by_name["your sentence"].x[0] == pytest.approx(place[0, 0])
    lines = np.array(by_name["before → after"].x, dtype=float)
    assert lines[0::3] == pytest.approx(moved[0][:, 0])
    assert lines[1::3] == pytest.approx(moved[1][:, 0]) and np.isnan(lines[2::3]).all()
    assert list(by_name)[-1] == "your sentence"


def test_a_map_in_three_dimensions_fills_its_frame_however_its_axes_spread() -> None:
    """Drawn to scale, a map that is long one way would be a thread in the middle."""
    vectors = np.random.default_rng(0).normal(size=(N, 8)) * [100, 10, *[1] * 6]
    drawn = project(vectors.astype(np.float32), ProjectionSpec(method="pca", n_components=3))
    scene = map_figure(drawn, HOVER, title="A map", colour=COLOUR).layout.scene
    box, eye = scene.aspectratio, scene.camera.eye
    assert scene.aspectmode == "manual" and min(box.x, box.y, box.z) >= 1
    assert (eye.x**2 + eye.y**2 + eye.z**2) ** 0.5 < 1.7, "nearer than Plotly stands by itself"


def test_texts_are_no_markup() -> None:
    (label,) = hover_texts(["<b>x</b> %{y} & more"])
    assert label == "&lt;b&gt;x&lt;/b&gt; &#37;{y} &amp; more"


def test_names_of_groups_are_no_markup(layout: Layout) -> None:
    colour = group_column(["<i>a</i>", "b"] * (N // 2))
    names = [t.name for t in map_figure(layout, HOVER, title="<u>t</u>", colour=colour).data]
    assert names[0].startswith("&lt;i&gt;a")


def test_rare_values_are_put_together() -> None:
    values = [f"v{i:02}" for i in range(20) for _ in range(20 - i)]
    looks = group_column(values)
    assert looks.groups == ("v00", "v01", "v02", "v03", "v04", "v05", "other (14 values)")
    assert looks.is_rest(6) and not looks.is_rest(5) and looks.n_merged == 14
    assert np.bincount(looks.of).tolist() == [20, 19, 18, 17, 16, 15, sum(range(1, 15))]


def test_missing_values_have_a_group_of_their_own() -> None:
    looks = group_column(["a", None, "b", None])
    assert looks.groups == ("a", "b", MISSING) and looks.of.tolist() == [0, 2, 1, 2]
    assert looks.is_rest(2)


@pytest.mark.parametrize(
    "values", [["1", "2", "1"], [*map(str, range(50)), "x"], ["nan"] * 20, [None], []]
)
def test_not_every_column_is_numbers(values: list[str | None]) -> None:
    assert not is_numeric(values)
    assert isinstance(group_column(values), Grouping)


def test_numbers_of_documents_are_names() -> None:
    points = corpus_points("lee", 200)
    assert not is_numeric(points.columns["document"]) and is_numeric(points.columns["words"])
    assert points.description == "200 of 2,454 sentences, chosen at random (seed 0)"
