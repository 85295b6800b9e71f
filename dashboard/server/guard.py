"""The middleware that refuses unlisted hosts and origins, too many sessions and large uploads."""

from __future__ import annotations

import re
from collections import Counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.formparsers import MultiPartParser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket
from streamlit import config, runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from leakscope.dashboard.server import policy
from leakscope.dashboard.server.headers import is_tls
from leakscope.dashboard.server.visitor import SHARE, owns_session

_WRONG_HOST = (
    "This server does not answer to this host name. Its operator can allow the name: "
    "leakscope serve --allow-host NAME"
)
_WRONG_ORIGIN = (
    "This server refuses pages at other addresses. Its operator can allow one: "
    "leakscope serve --allow-origin https://NAME"
)
_FULL = "This server has reached its limit of visitors. Try again in a few minutes."
_NOT_YOURS = (
    "This is not your session, or your browser blocks cookies. Allow cookies for this site and "
    "reload the page."
)
_CLOSED = re.compile(r"_stcore/(metrics|agent)(/|$)")
_UPLOAD = re.compile(r"_stcore/upload_file/(?P<session>[^/]+)/[^/]+")

DEFAULT_PAGE = "overview"
"""The page at the root; its own path redirects there."""

_Refusal = tuple[int, str]


class Guard:
    """Middleware that refuses requests outside the server's policy before Streamlit sees them.

    For an unknown origin, Streamlit asks an outside host for this server's public address to
    compare. This guard prevents that: it lets no unknown origin pass.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an ASGI application, read the policy, and keep uploads in memory."""
        self.app = app
        self.policy = policy.current_policy()
        self.open: Counter[str] = Counter()
        self.arriving: Counter[str] = Counter()
        # Starlette writes larger uploads to a temporary file. No upload gets so large: Streamlit
        # ends it at its own limit.
        MultiPartParser.spool_max_size = 2 * self.policy.file_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request to the application, or refuse it with a status and a plain message."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = self._host_or_origin_refusal(scope) or self._path_refusal(scope)
        if refusal is not None:
            await _refuse(refusal, scope, receive, send)
        elif scope["type"] == "http" and _path_below_base(scope).strip("/") == DEFAULT_PAGE:
            await _redirect_to_root(scope)(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._connect(scope, receive, send)
        elif (found := _UPLOAD.fullmatch(_path_below_base(scope))) is not None:
            await self._upload(found["session"], scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _host_or_origin_refusal(self, scope: Scope) -> _Refusal | None:
        """Return (status, message) if a request's host or origin is not allowed, else None."""
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self.policy.serves(hosts[0]):
            return 421, _WRONG_HOST
        port = (scope.get("server") or (None, None))[1]
        if len(origins) > 1 or not all(
            self.policy.trusts(origin, hosts[0], port=port, is_tls=is_tls(scope))
            for origin in origins
        ):
            return 403, _WRONG_ORIGIN
        return None

    @staticmethod
    def _path_refusal(scope: Scope) -> _Refusal | None:
        """Return (404, message) for Streamlit paths that are not served here, else None."""
        return (404, "This is not served here.") if _CLOSED.match(_path_below_base(scope)) else None

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a websocket with this server's origin, or refuse it if too many are open."""
        headers = MutableHeaders(raw=list(scope["headers"]))
        share = headers.get(SHARE, "")
        if self.open.total() >= self.policy.sessions or (
            share and self.open[share] >= self.policy.sessions_of_share
        ):
            await _refuse((503, _FULL), scope, receive, send)
            return
        if "origin" in headers:
            # Streamlit accepts its own origin without further requests.
            headers["origin"] = f"http://{headers['host']}"
        self.open[share] += 1
        try:
            await self.app({**scope, "headers": headers.raw}, receive, send)
        finally:
            self.open[share] -= 1
            self.open += Counter()  # drops zero counts

    async def _upload(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward an upload, or refuse it if it is not the owner's, too large or without length."""
        headers = Headers(scope=scope)
        if not owns_session(headers, session):
            await _refuse((403, _NOT_YOURS), scope, receive, send)
            return
        if scope["method"] != "PUT":
            await self.app(scope, receive, send)
            return
        length = headers.get("content-length", "")
        # With chunked encoding, the content length is not binding: more may follow.
        if "transfer-encoding" in headers or not re.fullmatch(r"[0-9]{1,12}", length):
            refusal: _Refusal | None = 411, "An upload must state its length."
        else:
            refusal = self._size_refusal(session, int(length))
        if refusal is not None:
            await _refuse(refusal, scope, receive, send)
            return
        self.arriving[session] += int(length)
        try:
            await self.app(scope, receive, send)
        finally:
            self.arriving[session] -= int(length)
            self.arriving += Counter()  # drops zero counts

    def _size_refusal(self, session: str, n_bytes: int) -> _Refusal | None:
        """Return (status, message) if an upload exceeds a visitor's or the server's limit."""
        held = _upload_bytes()
        if held[session] + self.arriving[session] + n_bytes > self.policy.session_bytes:
            limit = self.policy.session_bytes // 2**20
            return 413, f"Uploads of a visitor may total at most {limit} MB. Remove a file first."
        if held.total() + self.arriving.total() + n_bytes > self.policy.all_bytes:
            return 503, "The server has no room for more files. Try again in a few minutes."
        return None


def _upload_bytes() -> Counter[str]:
    """Count the bytes of uploads that Streamlit holds, by session."""
    manager = runtime.get_instance().uploaded_file_mgr
    if not isinstance(manager, MemoryUploadedFileManager):
        return Counter()
    return Counter(
        {
            session: sum(len(file.data) for file in list(files.values()))
            for session, files in list(manager.file_storage.items())
        }
    )


def base_path() -> str:
    """Return the URL path of the pages, without outer slashes; "" for the root."""
    return str(config.get_option("server.baseUrlPath") or "").strip("/")


def _path_below_base(scope: Scope) -> str:
    """Return a request's path below the base path, without leading slash."""
    return str(scope["path"]).strip("/").removeprefix(base_path()).lstrip("/")


def _redirect_to_root(scope: Scope) -> RedirectResponse:
    """Build a redirect to the root, where Streamlit serves the default page; keep the query."""
    asked = scope.get("query_string", b"").decode("latin-1")
    return RedirectResponse(f"/{base_path()}".rstrip("/") + "/" + f"?{asked}" * bool(asked), 307)


async def _refuse(refusal: _Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request or a websocket with a refusal's status and message."""
    status, message = refusal
    answer = PlainTextResponse(f"{message}\n", status)
    if scope["type"] == "http":
        await answer(scope, receive, send)
        return
    socket = WebSocket(scope, receive, send)
    if "websocket.http.response" in scope.get("extensions", {}):
        await socket.send_denial_response(answer)
    else:
        await socket.close(code=1008)
