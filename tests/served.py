"""A server whose file and network operations are recorded, and a client without a browser."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from browsing import free_port
from processes import running_process

ROOT = Path(__file__).parents[1]

# Runs in the server before anything else. Records every file opened for writing, every temporary
# file, every name lookup and every connection, as one JSON list per line.
WATCHED = """
import json, os, sys
out = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def record(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        is_written = bool(flags & (os.O_WRONLY | os.O_RDWR | getattr(os, "O_TMPFILE", 0)))
        if not is_written or isinstance(path, int):
            return
        line = [event, os.fsdecode(path)]
    elif event in ("tempfile.mkstemp", "tempfile.mkdtemp"):
        line = [event, os.fsdecode(arguments[0])]
    elif event in ("socket.connect", "socket.sendto"):
        line = [event, repr(arguments[1])]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        line = [event, repr(arguments[0])]
    else:
        return
    os.write(out, (json.dumps(line) + "\\n").encode())
sys.addaudithook(record)
sys.argv = ["leakscope", "serve", *sys.argv[2:]]
from leakscope.__main__ import main
sys.exit(main())
"""


@dataclass(frozen=True)
class Server:
    """A running server: its port, its record of operations and its output."""

    port: int
    log: Path
    output: Path

    def operations(self, *events: str) -> list[str]:
        """Return the recorded arguments of the given events."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [what for event, what in lines if event in events]

    def request(
        self,
        path: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Send an HTTP request; return status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            sent = {"Host": f"localhost:{self.port}", **(headers or {})}
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, named, answer.read()

    def connect(
        self,
        host: str = "",
        origin: str | None = "",
        cookie: str = "",
        session: str = "",
        more: Mapping[str, str] | None = None,
    ) -> Any:
        """Open a websocket to a host name, from a page of an origin.

        `session` is the id of a session to reconnect to; `more` are further headers.
        """
        sent = {**(more or {}), **({"Cookie": cookie} if cookie else {})}
        from websockets.sync.client import connect

        named = host or f"localhost:{self.port}"
        origin = f"http://{named}" if origin == "" else origin
        there = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        return connect(
            f"ws://{named}/_stcore/stream",
            sock=there,
            origin=origin,
            subprotocols=["streamlit", "token", *filter(None, [session])],  # type: ignore[list-item]
            additional_headers=sent,
            max_size=None,
            close_timeout=1,  # the server leaves some closings unanswered
        )


@contextlib.contextmanager
def serve_recorded(folder: Path, *options: str, **environment: str) -> Iterator[Server]:
    """Serve the pages on a free port, with recorded operations."""
    port = free_port()
    server = Server(port, folder / "done.jsonl", folder / "output.txt")
    variables = {**os.environ, "LEAKSCOPE_HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    variables |= {"STREAMLIT_SERVER_FILE_WATCHER_TYPE": "none", "TMPDIR": str(folder)}
    command = [sys.executable, "-c", WATCHED, server.log, "--port", port, *options]
    with (
        server.output.open("w") as out,
        running_process(command, output=out, cwd=ROOT, env=variables | environment) as process,
    ):
        end = time.monotonic() + 120
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(OSError):
                if server.request("/_stcore/health")[0] in (200, 404):  # elsewhere below a base
                    break
            time.sleep(0.1)
        else:
            pytest.fail(f"The server did not start: {server.output.read_text()}")
        yield server


def send_through(
    middleware: Callable[[Any], Any], app: Callable[..., Any], **request: Any
) -> list[dict[str, Any]]:
    """Send a request through a middleware to an application; return the messages of the answer."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "scheme": "http", "method": "GET", "path": "/", "headers": []}
    asyncio.run(middleware(app)({**scope, **request}, receive, send))
    return sent


def run_pages(visitor: Any) -> str:
    """Run the pages for a websocket; return the id of the new session."""
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

    run = BackMsg()
    run.rerun_script.query_string = ""
    visitor.send(run.SerializeToString())
    while True:
        message = ForwardMsg()
        message.ParseFromString(visitor.recv(timeout=120))
        if message.WhichOneof("type") == "new_session":
            return str(message.new_session.initialize.session_id)
