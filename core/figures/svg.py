"""Write figures as SVG files."""

from __future__ import annotations

import json
from pathlib import Path

import plotly.graph_objects as go

from leakscope.core.browser import draw_svg
from leakscope.core.errors import MissingDependencyError
from leakscope.core.storage.artifacts import storage_errors
from leakscope.core.storage.atomic_files import atomic_write


def write_svg(figure: go.Figure, path: Path) -> None:
    """Render a figure in Chromium and write it to a path as SVG.

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
        atomic_write(path, drawn.encode(), is_public=True)
