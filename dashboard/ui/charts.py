"""The Plotly configuration that all charts share."""

from __future__ import annotations

from typing import Any


def chart_config(
    name: str = "leakscope", *, is_selectable: bool = False, has_bar: bool = True
) -> dict[str, Any]:
    """Build a chart's Plotly configuration: its toolbar, and the file name of a saved image.

    Parameters
    ----------
    name : str
        The file name of a saved figure.
    is_selectable : bool
        Whether points can be selected with a box or lasso. The toolbar is then always visible, and
        the figure is saved as PNG, since an SVG of so many points is large.
    has_bar : bool
        Whether the figure has a toolbar.
    """
    selecting = [] if is_selectable else ["select2d", "lasso2d"]
    return {
        "displaylogo": False,
        "displayModeBar": (is_selectable or "hover") if has_bar else False,
        "scrollZoom": False,
        "modeBarButtonsToRemove": [*selecting, "autoScale2d"],
        "toImageButtonOptions": {"format": "png" if is_selectable else "svg", "filename": name},
    }
