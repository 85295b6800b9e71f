"""Maps of many points in a report: it stays small, and says of what it draws fewer."""

from __future__ import annotations

import base64
import json
import re
from html import unescape
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from leakscope.core.figures.projection import map_figure
from leakscope.core.findings.drawing import checked_figure, plain_figure
from leakscope.core.findings.finding import Finding
from leakscope.core.projection import Layout, ProjectionSpec, project
from leakscope.core.projection.grouping import group_column
from leakscope.core.story.deck import DRAWN, Deck, make_deck
from leakscope.core.story.format import Pin, Story
from leakscope.core.story.html import content_policy, html_report
from leakscope.core.story.thinning import MOST_LETTERS, thin_figures, without_webgl

N = 5_000
MOST = 3_000_000
BARS = plain_figure(go.Figure(go.Bar(x=[3.0, 4.0], y=["a", "b"], error_x={"array": [1, 1]})))


@pytest.fixture(scope="module", params=[2, 3])
def layout(request: pytest.FixtureRequest) -> Layout:
    vectors = np.random.default_rng(0).normal(size=(N, 8)).astype(np.float32)
    return project(vectors, ProjectionSpec(method="pca", n_components=request.param))


def as_pinned(layout: Layout) -> dict[str, Any]:
    """Return a map with three groups, some found and some moved, as its page pins it."""
    n = len(layout.coordinates)
    colour = group_column([("news", "essay", "law")[i % 3] for i in range(n)])
    moved = layout.coordinates[:200], layout.coordinates[200:400]
    return plain_figure(map_figure(layout, [""] * n, title="A map", colour=colour, moved=moved))


def deck_of(*figures: dict[str, Any]) -> Deck:
    pins = tuple(
        Pin(page="projection", slide=Finding(title=f"Map {i}", figure=f, alt="A map"))
        for i, f in enumerate(figures)
    )
    return make_deck(Story(title="Maps", pins=pins), "2026-03-01")


def points_of(trace: Any) -> np.ndarray[Any, Any]:
    x = trace["x"]
    return np.frombuffer(base64.b64decode(x["bdata"]), f"<{x['dtype']}")


def test_one_map_is_whole_and_holds_nothing_that_a_report_has_no_use_for(layout: Layout) -> None:
    figure = as_pinned(layout)
    assert not any({"customdata", "hovertext"} & trace.keys() for trace in figure["data"])
    deck = deck_of(figure)
    assert deck.pages[0].figure == figure and DRAWN not in dict(deck.facts)
    assert len(html_report(deck).encode()) <= MOST


def test_many_maps_are_thinned_alike_and_each_says_so(layout: Layout) -> None:
    figure = as_pinned(layout)
    n_maps = 2 * MOST_LETTERS // len(json.dumps(figure))
    deck = deck_of(*[figure] * n_maps, BARS)
    document = html_report(deck)
    assert len(document.encode()) <= MOST
    assert deck.pages[-1].figure == BARS and DRAWN not in dict(deck.pages[-1].facts)
    for page in deck.pages[:-1]:
        assert page.figure is not None
        told = re.match(r"([\d,]+) of ([\d,]+) points, evenly sampled", dict(page.shown)[DRAWN])
        assert told and told[0] in unescape(document)
        n_drawn, n = (int(each.replace(",", "")) for each in told.groups())
        clouds = [t for t in page.figure["data"] if t["mode"] == "markers"]
        assert n_drawn == sum(len(points_of(trace)) for trace in clouds)
        assert n == N + 200 and 0.2 * n < n_drawn < 0.8 * n
        assert checked_figure(page.figure) == page.figure
        for fewer, whole in zip(page.figure["data"], figure["data"], strict=True):
            if fewer["mode"] == "lines":
                assert fewer == whole  # it is broken into pairs
                continue
            assert fewer["name"] == whole["name"]  # which counts all of the group
            kept, all_of_it = points_of(fewer), points_of(whole)
            assert len(kept) / len(all_of_it) == pytest.approx(n_drawn / n, abs=0.01)
            assert (kept[0], kept[-1]) == (all_of_it[0], all_of_it[-1])


def test_points_keep_what_belongs_to_each_of_them() -> None:
    n = 4_000
    cloud = {
        "type": "scattergl",
        "mode": "markers",
        "x": [*range(n)],
        "y": [*range(n)],
        "hovertext": [f"text {i}" for i in range(n)],
        "marker": {"size": [*range(n)]},
        "selectedpoints": [n - 1],
    }
    ((found, told),) = thin_figures([{"data": [cloud], "layout": {}}], 20_000)
    assert told and found
    (trace,) = found["data"]
    assert 1 < len(trace["x"]) < n
    assert trace["y"] == trace["x"] == trace["marker"]["size"]
    assert trace["hovertext"] == [f"text {i}" for i in trace["x"]]
    assert "selectedpoints" not in trace


def cloud(n: int, kind: str = "scattergl") -> dict[str, Any]:
    """Return a figure of n points."""
    return {"data": [{"type": kind, "mode": "markers", "x": [0] * n}], "layout": {}}


def test_the_largest_gives_way_and_an_array_of_somebody_elses_is_left_alone() -> None:
    (small, none), (large, told) = thin_figures([cloud(100), cloud(9_000)], 6_000)
    assert (small, none) == (cloud(100), "") and told
    assert large is not None and len(json.dumps(large)) < 6_000
    for odd in ({"dtype": "evil", "bdata": "AAAA"}, {"dtype": "f8", "bdata": "AAAA"}, 7, None):
        strange = cloud(1)
        strange["data"][0]["x"] = odd
        assert thin_figures([strange], 10) == [(strange, "")]


def test_what_is_read_off_stays_whole() -> None:
    many = {"data": [{"type": "bar", "x": [*range(9_000)]}], "layout": {}}
    assert thin_figures([many], 1_000) == [(many, "")]


def test_few_points_in_the_plane_are_shapes_and_need_no_program() -> None:
    assert without_webgl(cloud(9, "scattergl")) == cloud(9, "scatter")
    for many in (cloud(9, "scatter3d"), cloud(10_001, "scattergl")):
        assert without_webgl(many) == many
        assert "unsafe-eval" in content_policy(deck_of(many))
    deck = deck_of(cloud(10_000, "scattergl"))
    assert "unsafe-eval" not in content_policy(deck)
    assert '"type":"scatter"' in html_report(deck)
