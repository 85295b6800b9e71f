"""Figures as files."""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go

from core.durable import write_whole
from core.errors import MissingDependencyError
from core.store import storage_errors

__all__ = ["write_svg"]


def write_svg(figure: go.Figure, path: Path) -> None:
    """Write the figure as SVG.

    Raises
    ------
    MissingDependencyError
        Neither kaleido nor a Chromium that it can drive is installed.
    StorageError
        The disk is full or the folder cannot be written.
    """
    try:
        drawn = figure.to_image(format="svg", width=760, height=460)
    except (ImportError, ValueError, RuntimeError) as error:
        raise MissingDependencyError(
            f"{path} was not drawn: it needs kaleido and a Chromium or Chrome. Install them, or "
            "open the study's JSON on its page."
        ) from error
    with storage_errors(path):
        write_whole(path, drawn, is_public=True)
