"""Security headers of every answer: content security policy, no framing, no referrer."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import traceback

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG = logging.getLogger("leakscope")
_INLINE = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)

_CONTENT = {
    "default-src": "'self'",
    # Plotly compiles the programs that draw many points; the map's own script is a blob.
    "script-src": "'self' 'unsafe-eval' blob:",
    # Streamlit and Plotly write their styles while they run.
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "frame-src": "'none'",
    "frame-ancestors": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}


def content_policy(document: bytes = b"") -> str:
    """Build the content security policy; it allows the document's inline scripts by their hash.

    Examples
    --------
    >>> "'sha256-" in content_policy(b"<script>let a = 1</script>")
    True
    """
    digests = [hashlib.sha256(script).digest() for script in _INLINE.findall(document)]
    hashes = "".join(f" 'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    sources = {**_CONTENT, "script-src": _CONTENT["script-src"] + hashes}
    return "; ".join(f"{kind} {allowed}" for kind, allowed in sources.items())


_HEADERS = {
    "content-security-policy": content_policy(),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",  # for browsers that do not know frame-ancestors
    "referrer-policy": "no-referrer",  # an address may hold a sentence
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def is_tls(scope: Scope) -> bool:
    """Return whether a request came over TLS, to this server or to a proxy in front of it."""
    forwarded = Headers(scope=scope).get("x-forwarded-proto", "").split(",")[0].strip().lower()
    return scope["scheme"] in ("https", "wss") or forwarded in ("https", "wss")


class SafeHeaders:
    """Middleware that adds the security headers to every answer, also after an error."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an ASGI application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request; after an error, log its place but not its message, and answer 500."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        begun = False

        async def send_safely(message: Message) -> None:
            """Send a message to the client, with the security headers added."""
            nonlocal begun
            begun = True
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(raw=list(message["headers"]))
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                message = {**message, "headers": headers.raw}
            await send(message)

        try:
            await self.app(scope, receive, send_safely)
        except Exception as fault:
            frames = "".join(traceback.format_tb(fault.__traceback__))
            _LOG.error("%s, at\n%s", type(fault).__name__, frames)
            if begun or scope["type"] != "http":
                raise ConnectionAbortedError("an answer could not be finished") from None
            answer = PlainTextResponse(
                "The server could not answer. This is a bug in Leakscope.\n", 500
            )
            await answer(scope, receive, send_safely)
