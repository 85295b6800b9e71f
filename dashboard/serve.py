"""The server around the pages: what `leakscope serve` and `make run` start."""

from __future__ import annotations

from typing import Any

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard import compiling
from dashboard.calm import apologise
from dashboard.guard import Guard, base_path
from dashboard.headers import SafeHeaders, content_policy
from dashboard.story.serving import ServeStories
from dashboard.visitor import KnowTheVisitor

__all__ = ["NameTheServer", "app"]

_HEAD = b"<head>"
_SCRIPT = (
    b"<script>window.__streamlit = "
    b"{BACKEND_BASE_URL: window.location.origin + %s}</script>"
)  # fmt: skip


class NameTheServer:
    """Tells the browser where the server is, so that it does not have to guess.

    Without it, Streamlit on a page below the root (`/inversion`) first asks for
    `/inversion/_stcore/health`, which leaves an error in the browser's console on every visit.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on; write one line into an HTML document on its way out."""
        if scope["type"] != "http" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self.app(scope, receive, send)
            return
        # The document has to come as it is: neither compressed nor "not modified".
        dropped = {b"accept-encoding", b"if-none-match", b"if-modified-since", b"range"}
        kept = [(key, value) for key, value in scope["headers"] if key.lower() not in dropped]
        document = _Document(send)
        await self.app({**scope, "headers": kept}, receive, document.take)


class _Document:
    """Holds back an HTML answer until it is complete; lets every other answer through."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.start: Message | None = None
        self.body = b""

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if "text/html" in Headers(raw=message["headers"]).get("content-type", ""):
                self.start = message
                return
        elif self.start is not None:
            self.body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._release(self.start)
            return
        await self.send(message)

    async def _release(self, start: Message) -> None:
        script = _SCRIPT % f"'/{base_path()}'".encode()
        body = self.body.replace(_HEAD, _HEAD + script, 1)
        headers = MutableHeaders(raw=list(start["headers"]))
        headers["content-length"] = str(len(body))
        headers["content-security-policy"] = content_policy(body)
        if "etag" in headers:
            del headers["etag"]
        await self.send({**start, "headers": headers.raw})
        await self.send({"type": "http.response.body", "body": body})


def _on_script_error(fault: Exception) -> bool:
    """Show our message in place of Streamlit's, for faults outside a page (in a callback)."""
    apologise(fault)
    return True


app: Any = st.App(
    "app.py",
    lifespan=compiling.lifespan,
    middleware=[
        Middleware(SafeHeaders),
        Middleware(KnowTheVisitor),
        Middleware(Guard),
        Middleware(ServeStories),
        Middleware(NameTheServer),
    ],
    on_script_error=_on_script_error,
)
