"""Place the labels of points so that they overlap neither each other nor other points."""

from __future__ import annotations

from collections.abc import Sequence

_SIDES = {
    "top center": (-0.5, 0, 0, 1),
    "bottom center": (-0.5, -1, 0, -1),
    "middle right": (0, -0.5, 1, 0),
    "middle left": (-1, -0.5, -1, 0),
    "top right": (0, 0, 1, 1),
    "top left": (-1, 0, -1, 1),
    "bottom right": (0, -1, 1, -1),
    "bottom left": (-1, -1, -1, -1),
}
"""Offset of a label's lower left corner from its point: in label widths and heights, and in half
markers."""

_WIDTH, _HEIGHT = 0.026, 0.042
"""Size of a letter, as a share of a figure on a phone."""

MARKER = (0.025, 0.018)
"""Half the width and height of a marker, as shares of the figure."""

Box = tuple[float, float, float, float]
"""Left, bottom, right and top, as shares of the figure."""


def place_labels(
    points: Sequence[tuple[float, float]], labels: Sequence[str], others: Sequence[Box] = ()
) -> list[str]:
    """Choose for each label the side of its point with least overlap (greedily); return sides.

    Labels are placed one after another, each where it covers least of what is there already.

    Parameters
    ----------
    points : sequence of (x, y)
        In shares of the figure, from its left lower corner.
    labels : sequence of str
    others : sequence of (left, bottom, right, top)
        What no label should cover.

    Examples
    --------
    >>> place_labels([(0.5, 0.5), (0.5, 0.52)], ["one", "two"])
    ['bottom center', 'top center']
    """
    half, tall = MARKER
    taken = [*others, *((x - half, y - tall, x + half, y + tall) for x, y in points)]
    chosen = []
    for (x, y), label in zip(points, labels, strict=True):
        boxes = {side: _label_box(x, y, len(label), side) for side in _SIDES}
        best = min(boxes, key=lambda side: _overlap_area(boxes[side], taken))
        taken.append(boxes[best])
        chosen.append(best)
    return chosen


def _label_box(x: float, y: float, n_letters: int, side: str) -> Box:
    """Return the box (as shares of the figure) that a label covers on a given side of a point."""
    right, up, aside, above = _SIDES[side]
    width, height = n_letters * _WIDTH, _HEIGHT
    left, bottom = x + right * width + aside * MARKER[0], y + up * height + above * MARKER[1]
    return (left, bottom, left + width, bottom + height)


def _overlap_area(box: Box, taken: Sequence[Box]) -> float:
    """Return the overlap area of a box with others, plus twice the area outside the figure."""
    left, bottom, right, top = box
    area = (right - left) * (top - bottom)
    inside = max(0.0, min(right, 1) - max(left, 0)) * max(0.0, min(top, 1) - max(bottom, 0))
    return 2 * (area - inside) + sum(
        max(0.0, min(right, r) - max(left, a)) * max(0.0, min(top, t) - max(bottom, b))
        for a, b, r, t in taken
    )
