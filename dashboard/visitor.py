"""Who a visitor is, so that their work is theirs after a reload and nobody else's.

A browser gets one random cookie. It tells nothing, is read by no script, and is sent to this server
alone; without it a visitor is their session, and a reloaded page finds none of their work.
"""

from __future__ import annotations

import re
import secrets
from http.cookies import CookieError, SimpleCookie

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["COOKIE", "KnowTheVisitor", "owner_of", "visitor"]

COOKIE = "leakscope_visitor"
_TOKEN = re.compile(r"[\w-]{22}")


class KnowTheVisitor:
    """Gives each browser its cookie with the first page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on; add a cookie to a document for a browser that has none."""
        if scope["type"] != "http" or owner_of(Headers(scope=scope).get("cookie", "")):
            await self.app(scope, receive, send)
            return

        async def give(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                if "text/html" in headers.get("content-type", ""):
                    headers.append("set-cookie", _cookie(is_secure=scope["scheme"] == "https"))
                    message = {**message, "headers": headers.raw}
            await send(message)

        await self.app(scope, receive, give)


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
