"""How charts behave in the browser: one configuration of Plotly for all pages."""

from __future__ import annotations

from typing import Any

__all__ = ["chart_config"]


def chart_config(
    name: str = "leakscope", *, is_selectable: bool = False, has_bar: bool = True
) -> dict[str, Any]:
    """Return Plotly's configuration.

    Parameters
    ----------
    name : str
        Of the file in which a visitor saves the figure.
    is_selectable : bool
        Points can be selected by a box or a loop: the tools for it are always shown, and the file
        is an image, since so many points make a heavy drawing.
    has_bar : bool
        Tools show beside the figure.
    """
    selecting = [] if is_selectable else ["select2d", "lasso2d"]
    return {
        "displaylogo": False,
        "displayModeBar": (is_selectable or "hover") if has_bar else False,
        "scrollZoom": False,
        "modeBarButtonsToRemove": [*selecting, "autoScale2d"],
        "toImageButtonOptions": {"format": "png" if is_selectable else "svg", "filename": name},
    }
