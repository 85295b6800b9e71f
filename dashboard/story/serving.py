"""Serve presentations as HTML documents from memory, each only to the visitor who made it.

A presentation needs its own scripts for keys, clock and speaker notes, which a Streamlit page
cannot have. So it is a separate document under an unguessable address, and ends with the session.
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

from leakscope.dashboard.server.guard import base_path
from leakscope.dashboard.server.visitor import COOKIE, owner_of

_PATH = "story-shown"
_GONE = "This presentation has ended. Open it again from the page Story.\n"


@dataclass(eq=False)
class _Presentation:
    """A presentation with its secret address and its owner; it lives as long as the session."""

    token: str
    owner: str
    make: Callable[[str], tuple[str, str]]


_PRESENTATIONS: WeakValueDictionary[str, _Presentation] = WeakValueDictionary()


def presentation_address(name: str, make: Callable[[str], tuple[str, str]]) -> str:
    """Register a presentation and return its secret URL path; it is built on each request.

    Parameters
    ----------
    name : str
        The presentation's name within the session: the same name keeps its address.
    make : callable
        Given the URL path of the pages, returns the document and its content security policy.
    """
    own: dict[str, _Presentation] = st.session_state.setdefault("_presentations", {})
    if name in own:
        own[name].make = make
    else:
        owner = owner_of(f"{COOKIE}={st.context.cookies.get(COOKIE, '')}")
        own[name] = _Presentation(secrets.token_urlsafe(24), owner, make)
    _PRESENTATIONS[own[name].token] = own[name]
    return f"{root_path()}/{_PATH}/{own[name].token}#present"


def root_path() -> str:
    """Return the URL path of the pages, without a slash at the end; "" for the root."""
    root = base_path()
    return f"/{root}" if root else ""


class ServePresentations:
    """Middleware that answers requests for presentations and forwards all others."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an ASGI application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a presentation's request from its owner, else 404; forward other requests."""
        head = f"{root_path()}/{_PATH}/"
        if scope["type"] != "http" or not str(scope["path"]).startswith(head):
            await self.app(scope, receive, send)
            return
        found = _PRESENTATIONS.get(str(scope["path"]).removeprefix(head))
        asked_by = owner_of(Headers(scope=scope).get("cookie", ""))
        if found is None or scope["method"] not in ("GET", "HEAD") or found.owner != asked_by:
            answer: Response = PlainTextResponse(_GONE, 404)
        else:
            document, policy = await run_in_threadpool(found.make, root_path())
            answer = Response(
                document,
                media_type="text/html",
                headers={
                    "content-security-policy": f"{policy}; frame-ancestors 'none'",
                    "cache-control": "no-store",
                },
            )
        await answer(scope, receive, send)
