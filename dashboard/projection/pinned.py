"""What of the map goes into a story: where points lie, without their texts."""

from __future__ import annotations

from core.figures.projection import map_figure
from core.projection.spec import METHODS
from dashboard.projection.drawn import DrawnMap
from dashboard.story.pinning import Seen

__all__ = ["seen"]


def seen(drawn: DrawnMap, colour: str, shape: str | None) -> Seen:
    """Return the map and how far it can be trusted."""
    points, layout = drawn.points, drawn.layout
    trust = layout.trustworthiness.score
    return Seen(
        figure=map_figure(
            layout,
            [""] * len(points),
            title=f"{len(points):,} {points.unit}s, coloured by {colour}",
            colour=drawn.looks(colour),
            shape=drawn.looks(shape) if shape else None,
        ),
        alt=f"Map of {len(points):,} texts, coloured by {colour}",
        facts=(
            ("Data", f"{len(points):,} {points.unit}s"),
            ("n", f"{trust.n:,} points asked about their neighbours"),
            ("Interval", f"95 %: trustworthiness {trust.value:.3f} ({trust.ci95.said(3)})"),
            ("Method", METHODS[layout.spec.method].title),
        ),
        commands=("python -m core.projection.shipped",),
    )
