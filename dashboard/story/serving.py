"""The presentation as a document of its own: served from memory, to whoever made it alone.

A page of Streamlit is drawn by Streamlit's program; a presentation has its own, for keys, clock and
the window with the notes. So it is a document beside the pages, under an address that nobody can
guess, and gone with the session that made it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboard.guard import base_path
from dashboard.visitor import COOKIE, owner_of

__all__ = ["ServeStories", "base", "show_at"]

_PATH = "story-shown"
_GONE = "This presentation is not here any more. Open it again from the page of stories.\n"


@dataclass(eq=False)
class _Shown:
    """What an address stands for; a session holds it, and with the session it goes."""

    token: str
    owner: str
    make: Callable[[str], tuple[str, str]]


_SHOWN: WeakValueDictionary[str, _Shown] = WeakValueDictionary()


def show_at(name: str, make: Callable[[str], tuple[str, str]]) -> str:
    """Return the address of a presentation, which is made when it is opened.

    Parameters
    ----------
    name : str
        Of the presentation within the session: the same name keeps its address.
    make : callable
        Given where the pages are served, returns the document and its content security policy.
    """
    held: dict[str, _Shown] = st.session_state.setdefault("_stories_shown", {})
    if name in held:
        held[name].make = make
    else:
        held[name] = _Shown(secrets.token_urlsafe(24), _owner(), make)
    _SHOWN[held[name].token] = held[name]
    return f"{base()}/{_PATH}/{held[name].token}#present"


def _owner() -> str:
    """Return whose cookie opens it; nobody's where a browser keeps none, as then it sends none."""
    return owner_of(f"{COOKIE}={st.context.cookies.get(COOKIE, '')}")


def base() -> str:
    """Return where the pages are served, without a slash at the end."""
    root = base_path()
    return f"/{root}" if root else ""


class ServeStories:
    """Answers requests for presentations, and passes on all others."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the document, if it is this visitor's."""
        head = f"{base()}/{_PATH}/"
        if scope["type"] != "http" or not str(scope["path"]).startswith(head):
            await self.app(scope, receive, send)
            return
        found = _SHOWN.get(str(scope["path"]).removeprefix(head))
        asked_by = owner_of(Headers(scope=scope).get("cookie", ""))
        if found is None or scope["method"] not in ("GET", "HEAD") or found.owner != asked_by:
            answer: Response = PlainTextResponse(_GONE, 404)
        else:
            document, policy = await run_in_threadpool(found.make, base())
            answer = Response(
                document,
                media_type="text/html",
                headers={
                    "content-security-policy": f"{policy}; frame-ancestors 'none'",
                    "cache-control": "no-store",
                },
            )
        await answer(scope, receive, send)
