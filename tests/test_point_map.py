"""The data of the interactive map, and the labels of its clusters."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from leakscope.core.figures.point_map import MOST_HOVERED, bits_of, point_map_data, rows_of
from leakscope.core.projection.clusters import ClusterLabel, cluster_labels
from leakscope.core.projection.grouping import Grouping, group_column

N = 60
TEXTS = [f"text {i}" for i in range(N)]
PLACES = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32) * [4, 1]
COLOUR = group_column([("news", "essay", "law")[i % 3] for i in range(N)])


def drawn(places: np.ndarray, colour: Grouping = COLOUR, **more: object) -> dict:
    found = point_map_data(places, TEXTS, colour=colour, alt="A map", **more)  # type: ignore[arg-type]
    assert json.loads(json.dumps(found)) == found, "it is sent as JSON"
    return found


def steps(points: dict, axis: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(points[axis]), "<u2").astype(float)


def test_places_keep_their_proportions_on_the_grid() -> None:
    points = drawn(PLACES)["points"]
    x, y = steps(points, "x"), steps(points, "y")
    side = 65_535 / np.ptp(PLACES[:, 0])
    assert x == pytest.approx((PLACES[:, 0] - PLACES[:, 0].min()) * side, abs=0.51)
    assert y == pytest.approx((PLACES[:, 1].max() - PLACES[:, 1]) * side, abs=0.51), "y points down"
    assert points["extent"] == [65_535, int(y.max())]


def test_what_is_placed_later_stands_on_the_same_grid() -> None:
    label = ClusterLabel("moon", float(PLACES[7, 0]), float(PLACES[7, 1]), 9)
    found = drawn(PLACES, typed=PLACES[3:4], moved=(PLACES[:2], PLACES[4:6]), labels=[label])
    x, y = steps(found["points"], "x"), steps(found["points"], "y")
    assert found["typed"] == pytest.approx([x[3], y[3]], abs=0.51)
    assert found["moves"][1][1] == pytest.approx([x[5], y[5]], abs=0.51)
    (one,) = found["labels"]
    assert (one["x"], one["y"]) == pytest.approx((x[7], y[7]), abs=0.51) and one["text"] == "moon"
    assert [line[2:] for line in found["legend"]] == ["your sentence", "after the defence (2)"]


def test_each_point_has_the_look_of_its_group() -> None:
    shape = group_column([("ada", None)[i % 2] for i in range(N)])
    found = drawn(PLACES, shape=shape)
    group = np.frombuffer(base64.b64decode(found["group"]), np.uint8)
    looks = {(found["groups"][g]["colour"], found["groups"][g]["shape"]) for g in group}
    assert len(found["groups"]) == len(looks) == 6, "colour is never alone"
    for i in range(N):
        kind = ("news", "essay", "law")[i % 3]
        assert found["groups"][group[i]]["name"].startswith(kind)


def test_a_map_of_equal_places_can_be_drawn() -> None:
    assert drawn(np.ones((N, 2), np.float32))["points"]["extent"] == [1, 1]


def test_rows_survive_as_bits() -> None:
    for rows in ([], [0], [7, 8, 59], list(range(N))):
        assert rows_of(bits_of(rows, N), N) == rows
    for wrong in ("", bits_of([1], 200), "no base64!"):
        with pytest.raises(ValueError, match=r"bits|base64"):
            rows_of(wrong, N)


def test_texts_of_a_large_map_stay_on_the_server() -> None:
    n = MOST_HOVERED + 1
    many = point_map_data(
        np.zeros((n, 2), np.float32), ["text"] * n, colour=group_column(["a"] * n), alt=""
    )
    assert many["texts"] is None and drawn(PLACES)["texts"] == TEXTS


def test_clusters_are_labelled_by_words_that_others_lack() -> None:
    rng = np.random.default_rng(0)
    topics = ("moon rocket", "butter bakery", "violin sonata")
    texts = [f"The {topics[i % 3]} was seen again, item {i}." for i in range(240)]
    centres = np.array([[0, 0], [9, 0], [0, 9]], np.float32)
    places = (centres[np.arange(240) % 3] + rng.normal(size=(240, 2)) / 9).astype(np.float32)
    labels = cluster_labels(places, texts)
    assert 3 <= len(labels) <= 12, "at most one for 20 points"
    for label in labels:
        nearest = int(np.linalg.norm(centres - [label.x, label.y], axis=1).argmin())
        assert set(label.text.split(", ")) == set(topics[nearest].split())
    assert cluster_labels(places, texts) == labels, "by its seed"


def test_a_label_stands_on_texts_that_hold_its_words() -> None:
    """Islands side by side may be one cluster of k-means, whose middle is on another island."""
    topics = {"moon rocket": (0, 0, 9), "butter bakery": (3, 0, 7), "violin sonata": (1.4, 1, 4)}
    topics["harbour anchor"] = (90, 0, 20)
    texts, places = [], []
    for words, (x, y, n) in topics.items():
        texts += [f"The {words} was seen again."] * n
        places += [(x + i / 1000, y) for i in range(n)]
    labels = cluster_labels(np.array(places, np.float32), texts)
    assert len(labels) == 2, "four islands in two clusters"
    for label in labels:
        here = texts[int(np.linalg.norm(np.array(places) - [label.x, label.y], axis=1).argmin())]
        assert all(word in here for word in label.text.split(", "))


def test_too_few_points_or_words_have_no_labels() -> None:
    assert cluster_labels(PLACES, TEXTS) == []
    assert cluster_labels(np.zeros((200, 2), np.float32), ["the of and"] * 200) == []
