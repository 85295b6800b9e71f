"""The figure of what replaces a token: a bar a mechanism and strength, parted by how near."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from core.figures.style import BELOW, LEAKED, MISSED, style
from core.studies.replacements import CLASSES, setting_said
from core.studies.rows import Row

__all__ = ["replacements_figure"]

_COLOURS = (LEAKED, "#E69F00", "#F0E442", "#56B4E9", MISSED)
"""From the token itself to what is unrelated."""
_PATTERNS = ("", "/", ".", "x", "-")
_LEAST = 6.0
"""Per cent below which a part is too narrow for its number."""
_ROW = 26


def replacements_figure(rows: Sequence[Row]) -> go.Figure:
    """Return a bar for each mechanism and strength, from the top in the order of the rows."""
    rows = [row for row in rows if not row.error]
    places = [", ".join(setting_said(row)) for row in rows]
    figure = go.Figure()
    for i, (name, said) in enumerate(CLASSES.items()):
        scores = [row.scores[name] for row in rows]
        figure.add_bar(
            x=[score.value for score in scores],
            y=places,
            name=said,
            orientation="h",
            marker={
                "color": _COLOURS[i],
                "pattern": {"shape": _PATTERNS[i], "fillmode": "overlay", "fgopacity": 0.35},
            },
            text=[f"{s.value:.0f}" if s.value >= _LEAST else "" for s in scores],
            textposition="inside",
            insidetextanchor="middle",
            insidetextfont={"color": "#111111"},
            textangle=0,
            customdata=[score.said() for score in scores],
            hovertemplate=f"%{{y}}<br>{said}: %{{customdata}} %<extra></extra>",
        )
    style(figure, height=110 + _ROW * len(rows))
    figure.update_layout(barmode="stack", legend={**BELOW, "traceorder": "normal"}, bargap=0.2,
                         margin={"b": 90})  # fmt: skip
    figure.update_xaxes(title="per cent of the tokens", range=[0, 100])
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure
