"""Figures as files."""

from __future__ import annotations

import json
from pathlib import Path

import plotly.graph_objects as go

from core.browser import draw_svg
from core.durable import write_whole
from core.errors import MissingDependencyError
from core.store import storage_errors

__all__ = ["write_svg"]


def write_svg(figure: go.Figure, path: Path) -> None:
    """Write the figure as SVG.

    Raises
    ------
    MissingDependencyError
        There is no Chromium or Chrome, or it does not start in its sandbox.
    StorageError
        The disk is full or the folder cannot be written.
    """
    try:
        drawn = draw_svg(json.loads(figure.to_json()), 760, 460)
    except MissingDependencyError as error:
        raise MissingDependencyError(
            f"{path} was not drawn: it needs a Chromium or Chrome that starts in its sandbox. "
            "Install one, or open the study's JSON on its page."
        ) from error
    with storage_errors(path):
        write_whole(path, drawn.encode(), is_public=True)
