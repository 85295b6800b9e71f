"""Figure of what replaces tokens under each mechanism."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from leakscope.core.figures.style import BASELINE, BELOW, LEAKED, style
from leakscope.core.results.rows import Row
from leakscope.core.studies.deniability.replacements import CLASSES, describe_setting

_COLOURS = (LEAKED, "#E69F00", "#F0E442", "#56B4E9", BASELINE)
"""Colours from the token itself to unrelated replacements."""
_PATTERNS = ("", "/", ".", "x", "-")
_LEAST = 6.0
"""Per cent below which a bar segment is too narrow for its number."""
_ROW = 26


def replacements_figure(rows: Sequence[Row]) -> go.Figure:
    """Plot what replaces tokens as a stacked bar per mechanism and strength."""
    rows = [row for row in rows if not row.error]
    places = [" at ".join(describe_setting(row)) for row in rows]
    figure = go.Figure()
    for i, (name, title) in enumerate(CLASSES.items()):
        scores = [row.scores[name] for row in rows]
        figure.add_bar(
            x=[score.value for score in scores],
            y=places,
            name=title,
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
            customdata=[score.format() for score in scores],
            hovertemplate=f"%{{y}}<br>{title}: %{{customdata}} %<extra></extra>",
        )
    style(figure, height=110 + _ROW * len(rows))
    figure.update_layout(
        barmode="stack", legend={**BELOW, "traceorder": "normal"}, bargap=0.2, margin={"b": 90}
    )
    figure.update_xaxes(title="per cent of the tokens", range=[0, 100])
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure
