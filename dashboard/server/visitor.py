"""Identify visitors by a random cookie, so that only they reach their sessions and jobs.

A browser gets one random cookie, which no script can read and which is sent to this server alone.
Without it, a visitor is identified by the session, and a reloaded page finds none of their jobs.
Streamlit binds a session to its visitor by the cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address, ip_network

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config, runtime
from streamlit.web.server.starlette.starlette_websocket import gather_user_info

from leakscope.dashboard.server import policy
from leakscope.dashboard.server.headers import is_tls
from leakscope.dashboard.server.policy import Policy

COOKIE = "leakscope_visitor"
_TOKEN = re.compile(r"[\w-]{22}")

_HEADER = "x-leakscope-visitor"
"""The request header that identifies the visitor for Streamlit; a value sent by the client is
replaced."""

SHARE = "x-leakscope-share"
"""The request header with the visitor's account or address, hashed, for pages and the guard."""

_TRUSTED = "server.trustedUserHeaders"
_KEY = secrets.token_bytes(32)
"""The key of the hashes: Streamlit's scripts see the hash of the cookie, not the cookie."""


class IdentifyVisitor:
    """Middleware that sets the visitor cookie and tells Streamlit whose request it is."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an ASGI application, and read the server's policy."""
        self.app = app
        self.policy = policy.current_policy()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request with the visitor's headers; set a cookie for a new visitor's page."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        owner = owner_of(Headers(scope=scope).get("cookie", ""))
        scope = _with_visitor_headers(scope, owner, share_of(scope, self.policy))
        if scope["type"] != "http" or owner:
            await self.app(scope, receive, send)
            return

        async def give(message: Message) -> None:
            """Send a message to the client, with the cookie added to an HTML document."""
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                if "text/html" in headers.get("content-type", ""):
                    headers.append("set-cookie", _new_cookie(is_secure=is_tls(scope)))
                    message = {**message, "headers": headers.raw}
            await send(message)

        await self.app(scope, receive, give)


def _with_visitor_headers(scope: Scope, owner: str, share: str) -> Scope:
    """Return a request's scope with headers that hash the visitor and their address."""
    trusted = dict(config.get_option(_TRUSTED) or {})
    if _HEADER not in trusted:
        config.set_option(_TRUSTED, {**trusted, _HEADER: COOKIE})
    headers = MutableHeaders(raw=list(scope["headers"]))
    known_by = owner.encode() or secrets.token_bytes(16)
    headers[_HEADER] = _keyed_hash(known_by)
    headers[SHARE] = share and _keyed_hash(share.encode())
    return {**scope, "headers": headers.raw}


def _keyed_hash(name: bytes) -> str:
    """Compute the HMAC-SHA-256 of an identifier under this process's key, in hexadecimal."""
    return hmac.new(_KEY, name, hashlib.sha256).hexdigest()


def share_of(scope: Scope, allowed: Policy) -> str:
    """Return the account or address that a request comes from, for fair queueing; "" if unknown.

    Each cookie, and each browser without one, is a separate visitor, so queues take turns by
    account or address instead. Only listed proxies may state them. An IPv6 /64 counts as one.
    """
    peer = str((scope.get("client") or ("",))[0])
    if peer not in (*policy.LOOPBACK, *allowed.proxies):
        return _widen_to_network(peer)
    headers = Headers(scope=scope)
    account = headers.get("x-forwarded-user", "").strip()
    return account or _widen_to_network(
        headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    )


def _widen_to_network(address: str) -> str:
    """Convert an IPv6 address to its /64 network; return any other text unchanged."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return address if found.version == 4 else str(ip_network(f"{address}/64", strict=False))


def owns_session(headers: Headers, session_id: str) -> bool:
    """Return whether a request's headers are of the session's visitor; True without a session."""
    session = runtime.get_instance().get_app_session(session_id)
    return session is None or session.matches_user_info({**gather_user_info(headers)})


def _new_cookie(*, is_secure: bool) -> str:
    """Build a Set-Cookie value with a new random visitor token."""
    secure = "; Secure" if is_secure else ""
    return f"{COOKIE}={secrets.token_urlsafe(16)}; Path=/; HttpOnly; SameSite=Strict{secure}"


def owner_of(header: str) -> str:
    """Parse a Cookie header and return its visitor token; "" if it has no valid one."""
    try:
        morsel = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    value = "" if morsel is None else morsel.value
    return value if _TOKEN.fullmatch(value) else ""


def visitor() -> str:
    """Return the secret identifier of the current visitor; it is never shown on a page."""
    found = str(st.context.cookies.get(COOKIE, ""))
    if _TOKEN.fullmatch(found):
        return found
    return str(st.session_state.setdefault("_visitor", secrets.token_urlsafe(16)))


def share() -> str:
    """Return the hash of the current visitor's account or address; "" if unknown."""
    return str(st.context.headers.get(SHARE, ""))
