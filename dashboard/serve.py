"""The ASGI application that `leakscope serve` and `make run` start."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.web.server import server_util

from leakscope.dashboard.server import compiling
from leakscope.dashboard.server.guard import Guard, base_path
from leakscope.dashboard.server.headers import SafeHeaders, content_policy
from leakscope.dashboard.server.visitor import IdentifyVisitor
from leakscope.dashboard.story.serving import ServePresentations
from leakscope.dashboard.ui.errors import apologise

_HEAD = b"<head>"
_SCRIPT = b"<script>window.__streamlit = {BACKEND_BASE_URL: window.location.origin + %s}</script>"


class InjectServerAddress:
    """Middleware that writes the server's address into each HTML page, for Streamlit's client.

    Without it, Streamlit's client on a page below the root (`/inversion`) first requests
    `/inversion/_stcore/health`, which causes an error in the browser's console on every visit.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an ASGI application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request; an HTML page is fetched uncompressed and gets the script added."""
        if scope["type"] != "http" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self.app(scope, receive, send)
            return
        # The answer must be the whole plain document: neither compressed nor "not modified".
        dropped = {b"accept-encoding", b"if-none-match", b"if-modified-since", b"range"}
        kept = [(key, value) for key, value in scope["headers"] if key.lower() not in dropped]
        document = _Document(send)
        await self.app({**scope, "headers": kept}, receive, document.receive)


class _Document:
    """Buffers an HTML answer until it is complete; forwards every other answer."""

    def __init__(self, send: Send) -> None:
        """Start without a buffered page; `send` is where answers go."""
        self.send = send
        self.start: Message | None = None
        self.body = b""

    async def receive(self, message: Message) -> None:
        """Buffer a message of an HTML page and send the page once complete; forward any other."""
        if message["type"] == "http.response.start":
            if "text/html" in Headers(raw=message["headers"]).get("content-type", ""):
                self.start = message
                return
        elif self.start is not None:
            self.body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_document(self.start)
            return
        await self.send(message)

    async def _send_document(self, start: Message) -> None:
        """Send the buffered page with the script, its new length and content security policy."""
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
    """Log an error of a page's script and show an apology; return True for "handled"."""
    apologise(fault)
    return True


@asynccontextmanager
async def _lifespan(server: Any) -> AsyncIterator[None]:
    """Run the compiling process, and print the server's address once the server has started."""
    async with compiling.lifespan(server):
        address = server_util.get_url(config.get_option("browser.serverAddress"))
        print(f"Leakscope is running at {address} (Ctrl-C stops it).", flush=True)
        yield


app: Any = st.App(
    "app.py",
    lifespan=_lifespan,
    middleware=[
        Middleware(SafeHeaders),
        Middleware(IdentifyVisitor),
        Middleware(Guard),
        Middleware(ServePresentations),
        Middleware(InjectServerAddress),
    ],
    on_script_error=_on_script_error,
)
