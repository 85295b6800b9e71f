"""The data of an interactive map of many points, as the map's canvas reads them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.figures.projection import group_styles, one_line
from leakscope.core.projection.clusters import ClusterLabel
from leakscope.core.projection.grouping import Grouping

MOST_HOVERED = 20_000
"""The most points whose texts are sent to the browser, to show while the pointer is above them."""
_SIDE = 65_535
_RADII = ((1_000, 4.6), (5_000, 3.3), (20_000, 2.3), (60_000, 1.7))
"""Radius of a point in pixels up to a number of points; 1.3 above."""


def point_map_data(
    coordinates: NDArray[np.float32],
    texts: Sequence[str],
    *,
    colour: Grouping,
    shape: Grouping | None = None,
    found: Sequence[int] | NDArray[np.int64] = (),
    selected: Sequence[int] = (),
    typed: NDArray[np.float32] | None = None,
    moved: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
    labels: Sequence[ClusterLabel] = (),
    alt: str,
    name: str = "map",
) -> dict[str, Any]:
    """Encode a map's points, groups and marks as JSON-able data for the browser's canvas.

    Positions are rounded to a grid of 65,536 steps along the longer side, in whose units the typed
    sentence, the moves and the labels are given, too; y points down, as on a screen.

    Parameters
    ----------
    coordinates : float32 array, shape (n, 2)
        Positions on the map.
    texts : sequence of n str
        Shown while the pointer is above a point; left out above 20,000 points.
    found, selected : sequence of int
        Points to ring, and points to highlight.
    typed : float32 array, shape (1, 2), optional
        The position of the typed sentence.
    moved : pair of float32 arrays, each of shape (m, 2), optional
        Positions before and after a defence.
    """
    grid = _Grid(coordinates)
    points = grid.of(coordinates).round().astype("<u2")
    styles, group = group_styles(colour, shape)
    n = len(coordinates)
    x, y = (np.ascontiguousarray(points[:, i]).tobytes() for i in (0, 1))
    marked = np.array([(one.x, one.y) for one in labels], np.float32).reshape(-1, 2)
    lines = [f"○ found ({len(found):,})"] * bool(len(found))
    lines += ["★ your sentence"] * (typed is not None)
    if moved is not None:
        lines.append(f"× after the defence ({len(moved[1]):,})")
    return {
        "points": {
            "key": hashlib.blake2b(x + y, digest_size=12).hexdigest(),
            "x": _base64(x),
            "y": _base64(y),
            "extent": [max(1, int(points[:, i].max())) for i in (0, 1)],
            "radius": next((radius for most, radius in _RADII if n <= most), 1.3),
        },
        "texts": [one_line(text) for text in texts] if n <= MOST_HOVERED else None,
        "groups": styles,
        "group": _base64(group.astype(np.uint8).tobytes()),
        "found": bits_of(found, n),
        "selected": bits_of(selected, n),
        "n_selected": len(selected),
        "typed": None if typed is None else grid.of(typed)[0].tolist(),
        "moves": None if moved is None else np.stack([*map(grid.of, moved)], axis=1).tolist(),
        "labels": [
            {"text": one.text, "x": x, "y": y}
            for one, (x, y) in zip(labels, grid.of(marked).tolist(), strict=True)
        ],
        "legend": lines,
        "alt": alt,
        "name": name,
    }


class _Grid:
    """The grid on which a map's points are placed, with the map's proportions."""

    def __init__(self, coordinates: NDArray[np.float32]) -> None:
        """Fit the grid to the bounds of a map's points."""
        self.low, self.high = coordinates.min(0), coordinates.max(0)
        self.scale = _SIDE / max(float((self.high - self.low).max()), 1e-9)

    def of(self, places: NDArray[np.float32]) -> NDArray[np.float64]:
        """Convert map positions (n, 2) to steps of the grid, with y pointing down."""
        x = (places[:, 0] - self.low[0]) * self.scale
        y = (self.high[1] - places[:, 1]) * self.scale
        return np.stack([x, y], axis=1).astype(np.float64)


def bits_of(rows: Sequence[int] | NDArray[np.int64], n: int) -> str:
    """Encode a set of row indices below n as bits, least significant first, in base64.

    Examples
    --------
    >>> rows_of(bits_of([0, 9], 12), 12)
    [0, 9]
    """
    is_in = np.zeros(n, bool)
    is_in[np.asarray(rows, np.int64)] = True
    return _base64(np.packbits(is_in, bitorder="little").tobytes())


def rows_of(bits: str, n: int) -> list[int]:
    """Decode the row indices below n that `bits_of` encoded; return them in ascending order.

    Raises
    ------
    ValueError
        It is not base64, or has another length.
    """
    found = np.frombuffer(base64.b64decode(bits, validate=True), np.uint8)
    if len(found) != (n + 7) // 8:
        raise ValueError(f"{len(found)} bytes are not the bits of {n} points.")
    kept: list[int] = np.flatnonzero(np.unpackbits(found, count=n, bitorder="little")).tolist()
    return kept


def _base64(content: bytes) -> str:
    """Encode bytes as a base64 string."""
    return base64.b64encode(content).decode()
