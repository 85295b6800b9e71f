"""A story as one HTML document: figures to point at, nothing fetched, ready to be presented."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from core.assets import ASSETS
from core.errors import MissingDependencyError, install
from core.story.deck import MARKS, Deck
from core.story.thinning import as_shapes

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["content_policy", "html_report"]

_FOLDER = ASSETS / "story"
_COMPILED = ("scattergl", "scatter3d")
"""Charts for which Plotly compiles programs, and of which a browser draws only few at once."""


def html_report(deck: Deck, *, base: str | None = None) -> str:
    """Return the document.

    Parameters
    ----------
    base : str, optional
        Where the pages are served, without a slash at the end: slides then open live. A file that
        is taken along has none.

    Raises
    ------
    MissingDependencyError
        Plotly's script is not where its package puts it.
    """
    figures = _figures(deck)
    return _template().render(
        deck=deck,
        base=base,
        marks=MARKS,
        policy=content_policy(deck),
        style=_trusted(_part("report.css")),
        program=_trusted(_part("report.js")),
        figures=_trusted(_json(figures)),
        plotly=_trusted(_plotly()) if figures else "",
    )


def content_policy(deck: Deck) -> str:
    """Return what the document may do: draw, by its own program, and load nothing."""
    digest = hashlib.sha256(_part("report.js").encode()).digest()
    kinds = {trace.get("type") for figure in _figures(deck).values() for trace in figure["data"]}
    compiling = " 'unsafe-eval'" if kinds & set(_COMPILED) else ""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data: blob:; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{base64.b64encode(digest).decode()}' "
        f"blob:{compiling}"
    )


def _figures(deck: Deck) -> dict[str, dict[str, Any]]:
    """Return the figures by the number of their slide, with as few programs as it takes."""
    return {
        str(i): {"data": as_shapes(page.figure)["data"], "layout": page.figure["layout"]}
        for i, page in enumerate(deck.pages)
        if page.figure
    }


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    jinja = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return jinja.get_template("report.html.j2")


@lru_cache(maxsize=4)
def _part(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _trusted(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


def _json(data: Any) -> str:
    """Return JSON in which nothing ends the element that holds it."""
    told = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return told.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@lru_cache(maxsize=1)
def _plotly() -> str:
    """Return Plotly's script, packed: the document stays below three megabytes."""
    from plotly.offline import get_plotlyjs

    try:
        source = get_plotlyjs()
    except OSError as error:
        raise MissingDependencyError(
            f"The script of Plotly is missing. Install it again: {install('plotly', is_there=True)}"
        ) from error
    return base64.b64encode(gzip.compress(source.encode(), 9, mtime=0)).decode()
