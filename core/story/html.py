"""Render a story as one self-contained, interactive HTML document."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from leakscope.core.assets import ASSETS
from leakscope.core.errors import MissingDependencyError, install
from leakscope.core.story.deck import MARKS, Deck
from leakscope.core.story.thinning import without_webgl

if TYPE_CHECKING:
    from jinja2 import Template

_FOLDER = ASSETS / "story"
_COMPILED = ("scattergl", "scatter3d")
"""Trace types that need WebGL, of which a browser draws only a few at once."""


def html_report(deck: Deck, *, base: str | None = None) -> str:
    """Render a deck as an HTML document; return its text.

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
    figures = _figures_by_slide(deck)
    return _load_template().render(
        deck=deck,
        base=base,
        marks=MARKS,
        policy=content_policy(deck),
        style=_safe_html(_read_part("report.css")),
        program=_safe_html(_read_part("report.js")),
        figures=_safe_html(_json(figures)),
        plotly=_safe_html(_read_plotly()) if figures else "",
    )


def content_policy(deck: Deck) -> str:
    """Return the Content-Security-Policy of a deck's HTML document: only its own script runs."""
    digest = hashlib.sha256(_read_part("report.js").encode()).digest()
    kinds = {
        trace.get("type") for figure in _figures_by_slide(deck).values() for trace in figure["data"]
    }
    compiling = " 'unsafe-eval'" if kinds & set(_COMPILED) else ""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data: blob:; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{base64.b64encode(digest).decode()}' "
        f"blob:{compiling}"
    )


def _figures_by_slide(deck: Deck) -> dict[str, dict[str, Any]]:
    """Return a deck's figures as Plotly data, by slide number."""
    return {
        str(i): {"data": without_webgl(page.figure)["data"], "layout": page.figure["layout"]}
        for i, page in enumerate(deck.pages)
        if page.figure
    }


@lru_cache(maxsize=1)
def _load_template() -> Template:
    """Load the Jinja template of the HTML report, cached."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    jinja = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return jinja.get_template("report.html.j2")


@lru_cache(maxsize=4)
def _read_part(name: str) -> str:
    """Read a named CSS or JavaScript file of the HTML report, cached."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def _safe_html(text: str) -> Any:
    """Mark text as safe HTML for Jinja."""
    from markupsafe import Markup

    return Markup(text)


def _json(data: Any) -> str:
    """Serialise data as JSON that is safe inside an HTML script element."""
    told = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return told.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@lru_cache(maxsize=1)
def _read_plotly() -> str:
    """Read Plotly's script; return it gzipped and base64-encoded, cached."""
    from plotly.offline import get_plotlyjs

    try:
        source = get_plotlyjs()
    except OSError as error:
        raise MissingDependencyError(
            f"The script of Plotly is missing. Install it again: {install('plotly', is_there=True)}"
        ) from error
    return base64.b64encode(gzip.compress(source.encode(), 9, mtime=0)).decode()
