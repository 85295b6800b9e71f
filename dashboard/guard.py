"""Who is served: requests for listed hosts from listed origins, and uploads within their limits."""

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

from dashboard import policy
from dashboard.headers import is_tls
from dashboard.visitor import SHARE, owns_session

__all__ = ["Guard", "base_path"]

_WRONG_HOST = (
    "This server does not answer to that name. Whoever runs it can list the name: "
    "leakscope serve --allow-host NAME"
)
_WRONG_ORIGIN = (
    "This server does not talk to pages of other addresses. Whoever runs it can list one: "
    "leakscope serve --allow-origin https://NAME"
)
_FULL = "This server has as many visitors as it takes. Try again in a few minutes."
_NOT_YOURS = (
    "This is not your session, or your browser keeps no cookie. Allow cookies for this site, and "
    "reload the page."
)
_CLOSED = re.compile(r"_stcore/(metrics|agent)(/|$)")
_UPLOAD = re.compile(r"_stcore/upload_file/(?P<session>[^/]+)/[^/]+")

DEFAULT_PAGE = "overview"
"""The page that opens first, whose name is an address of its own, too."""

_Refusal = tuple[int, str]


class Guard:
    """Refuses what is not for this server, before anything of Streamlit sees it.

    Of an origin that it does not know, Streamlit asks an outside host for this server's own
    address, to compare: after this guard, it meets none.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.policy = policy.in_force()
        self.open: Counter[str] = Counter()
        self.arriving: Counter[str] = Counter()
        # Starlette writes what is larger to a temporary file. This is never reached: Streamlit
        # ends an upload that exceeds its limit.
        MultiPartParser.spool_max_size = 2 * self.policy.file_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with a plain message."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = self._stranger(scope) or self._closed(scope)
        if refusal is not None:
            await _refuse(refusal, scope, receive, send)
        elif scope["type"] == "http" and _path(scope).strip("/") == DEFAULT_PAGE:
            await _to_root(scope)(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._connect(scope, receive, send)
        elif (found := _UPLOAD.fullmatch(_path(scope))) is not None:
            await self._upload(found["session"], scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _stranger(self, scope: Scope) -> _Refusal | None:
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
    def _closed(scope: Scope) -> _Refusal | None:
        return (404, "This is not served here.") if _CLOSED.match(_path(scope)) else None

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = MutableHeaders(raw=list(scope["headers"]))
        share = headers.get(SHARE, "")
        if self.open.total() >= self.policy.sessions or (
            share and self.open[share] >= self.policy.sessions_of_share
        ):
            await _refuse((503, _FULL), scope, receive, send)
            return
        if "origin" in headers:
            # As of this very server, which Streamlit believes without asking anyone.
            headers["origin"] = f"http://{headers['host']}"
        self.open[share] += 1
        try:
            await self.app({**scope, "headers": headers.raw}, receive, send)
        finally:
            self.open[share] -= 1
            self.open += Counter()  # drops those at nothing

    async def _upload(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if not owns_session(headers, session):
            await _refuse((403, _NOT_YOURS), scope, receive, send)
            return
        if scope["method"] != "PUT":
            await self.app(scope, receive, send)
            return
        length = headers.get("content-length", "")
        # Beside chunks a length binds nobody: more may follow than it says.
        if "transfer-encoding" in headers or not re.fullmatch(r"[0-9]{1,12}", length):
            refusal: _Refusal | None = 411, "An upload has to say how long it is."
        else:
            refusal = self._no_room(session, int(length))
        if refusal is not None:
            await _refuse(refusal, scope, receive, send)
            return
        self.arriving[session] += int(length)
        try:
            await self.app(scope, receive, send)
        finally:
            self.arriving[session] -= int(length)
            self.arriving += Counter()  # drops those at nothing

    def _no_room(self, session: str, n_bytes: int) -> _Refusal | None:
        held = _held()
        if held[session] + self.arriving[session] + n_bytes > self.policy.session_bytes:
            limit = self.policy.session_bytes // 2**20
            return 413, f"At most {limit} MB are held for one visitor. Remove a file first."
        if held.total() + self.arriving.total() + n_bytes > self.policy.all_bytes:
            return 503, "The server holds as many files as it may. Try again in a few minutes."
        return None


def _held() -> Counter[str]:
    """Return the bytes of uploads that Streamlit holds, by session."""
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
    """Return where the pages are served, without slashes at its ends; empty for the root."""
    return str(config.get_option("server.baseUrlPath") or "").strip("/")


def _path(scope: Scope) -> str:
    """Return the path below the base path."""
    return str(scope["path"]).strip("/").removeprefix(base_path()).lstrip("/")


def _to_root(scope: Scope) -> RedirectResponse:
    """Send on to where the page that opens first is served: Streamlit knows it by no other."""
    asked = scope.get("query_string", b"").decode("latin-1")
    return RedirectResponse(f"/{base_path()}".rstrip("/") + "/" + f"?{asked}" * bool(asked), 307)


async def _refuse(refusal: _Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    status, told = refusal
    answer = PlainTextResponse(f"{told}\n", status)
    if scope["type"] == "http":
        await answer(scope, receive, send)
        return
    socket = WebSocket(scope, receive, send)
    if "websocket.http.response" in scope.get("extensions", {}):
        await socket.send_denial_response(answer)
    else:
        await socket.close(code=1008)
