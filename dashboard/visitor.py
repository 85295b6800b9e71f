"""Who a visitor is, so that their sessions and their work are theirs and nobody else's.

A browser gets one random cookie. It tells nothing, is read by no script, and is sent to this server
alone; without it a visitor is their session, and a reloaded page finds none of their work.
Streamlit knows a session's visitor by it, and gives the session to no other.
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

from dashboard import policy
from dashboard.headers import is_tls
from dashboard.policy import Policy

__all__ = [
    "COOKIE",
    "SHARE",
    "KnowTheVisitor",
    "owner_of",
    "owns_session",
    "share",
    "share_of",
    "visitor",
]

COOKIE = "leakscope_visitor"
_TOKEN = re.compile(r"[\w-]{22}")

_HEADER = "x-leakscope-visitor"
"""Tells Streamlit who a visitor is; what a request says there itself is dropped."""

SHARE = "x-leakscope-share"
"""Tells pages and the guard from where a visitor comes, likewise."""

_TRUSTED = "server.trustedUserHeaders"
_KEY = secrets.token_bytes(32)
"""Makes what Streamlit is told another thing than the cookie, which scripts may not read."""


class KnowTheVisitor:
    """Gives each browser its cookie with the first page, and tells Streamlit whose a request is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.policy = policy.in_force()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on; add a cookie to a document for a browser that has none."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        owner = owner_of(Headers(scope=scope).get("cookie", ""))
        scope = _named(scope, owner, share_of(scope, self.policy))
        if scope["type"] != "http" or owner:
            await self.app(scope, receive, send)
            return

        async def give(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                if "text/html" in headers.get("content-type", ""):
                    headers.append("set-cookie", _cookie(is_secure=is_tls(scope)))
                    message = {**message, "headers": headers.raw}
            await send(message)

        await self.app(scope, receive, give)


def _named(scope: Scope, owner: str, share: str) -> Scope:
    """Return a request that tells whose it is; one without a cookie is nobody else's."""
    told = dict(config.get_option(_TRUSTED) or {})
    if _HEADER not in told:
        config.set_option(_TRUSTED, {**told, _HEADER: COOKIE})
    headers = MutableHeaders(raw=list(scope["headers"]))
    known_by = owner.encode() or secrets.token_bytes(16)
    headers[_HEADER] = _hidden(known_by)
    headers[SHARE] = share and _hidden(share.encode())
    return {**scope, "headers": headers.raw}


def _hidden(name: bytes) -> str:
    return hmac.new(_KEY, name, hashlib.sha256).hexdigest()


def share_of(scope: Scope, allowed: Policy) -> str:
    """Return the account or the address that a request comes from; empty where none is known.

    Without a cookie a browser is another visitor, and so is another cookie: what they take turns
    by is this. Only a proxy is believed for whom it asks. Of IPv6, a network is one address.
    """
    peer = str((scope.get("client") or ("",))[0])
    if peer not in (*policy.LOOPBACK, *allowed.proxies):
        return _network(peer)
    headers = Headers(scope=scope)
    account = headers.get("x-forwarded-user", "").strip()
    return account or _network(headers.get("x-forwarded-for", "").rpartition(",")[2].strip())


def _network(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return address if found.version == 4 else str(ip_network(f"{address}/64", strict=False))


def owns_session(headers: Headers, session_id: str) -> bool:
    """Return whether a request is of the visitor whose session it names; True without a session."""
    session = runtime.get_instance().get_app_session(session_id)
    return session is None or session.matches_user_info({**gather_user_info(headers)})


def _cookie(*, is_secure: bool) -> str:
    secure = "; Secure" if is_secure else ""
    return f"{COOKIE}={secrets.token_urlsafe(16)}; Path=/; HttpOnly; SameSite=Strict{secure}"


def owner_of(header: str) -> str:
    """Return the token of a Cookie header; empty where it holds none of ours."""
    try:
        morsel = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    value = "" if morsel is None else morsel.value
    return value if _TOKEN.fullmatch(value) else ""


def visitor() -> str:
    """Return what tells this visitor from others; no page shows it."""
    found = str(st.context.cookies.get(COOKIE, ""))
    if _TOKEN.fullmatch(found):
        return found
    return str(st.session_state.setdefault("_visitor", secrets.token_urlsafe(16)))


def share() -> str:
    """Return what tells from where this visitor comes, where that is known; no page shows it."""
    return str(st.context.headers.get(SHARE, ""))
