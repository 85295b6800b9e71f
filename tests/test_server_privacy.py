"""What a running server writes and where it connects, seen by an audit hook within it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Server, run_pages, serve_recorded
from websockets.exceptions import InvalidStatus

from leakscope.dashboard.server.visitor import COOKIE

SECRET = b"The violinist hid the ledger behind the organ."
LARGE = SECRET + b"\n" + b"x" * 3 * 2**20
"""Three times what Starlette keeps in memory by itself."""
TOKEN = "2|0123456789abcdef0123456789abcdef|1"
NETWORK = ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    listed = ("--allow-host", "leak.example.org", "--host", "0.0.0.0", "--allow-host", "localhost")
    with serve_recorded(folder, *listed) as running:
        yield running


MINE = f"{COOKIE}={'m' * 22}"
ANOTHERS = f"{COOKIE}={'a' * 22}"


def upload(
    server: Server,
    session: str,
    content: bytes,
    token: str,
    name: str = "file-1",
    cookie: str = MINE,
) -> tuple[int, bytes]:
    edge = b"----part"
    head = b'Content-Disposition: form-data; name="file"; filename="letters.txt"\r\n'
    body = b"--" + edge + b"\r\n" + head + b"Content-Type: text/plain\r\n\r\n"
    body += content + b"\r\n--" + edge + b"--\r\n"
    headers = {
        "Content-Type": f"multipart/form-data; boundary={edge.decode()}",
        "Cookie": f"_streamlit_xsrf={token}; {cookie}",
        "X-Xsrftoken": token,
    }
    path = f"/_stcore/upload_file/{session}/{name}"
    status, _, told = server.request(path, "PUT", headers, body)
    return status, told


def outside(server: Server) -> list[str]:
    """Return what a server looked up or connected to that is not this computer."""
    own = ("127.0.0.1", "localhost", "::1", "0.0.0.0", "None")
    return [what for what in server.operations(*NETWORK) if not any(name in what for name in own)]


def xsrf(server: Server) -> str:
    _, headers, _ = server.request("/_stcore/health")
    return headers["set-cookie"].split("_streamlit_xsrf=")[1].split(";")[0]


@pytest.mark.slow
def test_an_upload_is_kept_in_memory_alone(server: Server) -> None:
    with server.connect(cookie=MINE) as visitor:
        session, before = run_pages(visitor), set(server.operations("open"))
        status, told = upload(server, session, LARGE, xsrf(server))
        assert status == 204, told
        written = set(server.operations("open")) - before
    folder = server.log.parent  # also that of temporary files, of which some have no name
    assert server.operations("tempfile.mkstemp") == []
    assert not [p for p in written if Path(p) == folder or Path(p).name.startswith("tmp")]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET in path.read_bytes()]


def test_the_watch_would_see_a_temporary_file(tmp_path: Path) -> None:
    import subprocess
    import sys

    from served import WATCHED

    program = WATCHED.split("sys.argv = ")[0] + (
        "import tempfile; tempfile.SpooledTemporaryFile(1).write(b'ab')\n"
        "import socket; socket.getaddrinfo('localhost', 80)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "log")], check=True, timeout=60)
    seen = Server(0, tmp_path / "log", tmp_path)
    assert seen.operations("tempfile.mkstemp") + seen.operations("open") and seen.operations(
        *NETWORK
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "origin", "is_served"),
    [
        ("", "", True),
        ("", None, True),
        ("leak.example.org", "https://leak.example.org", True),
        ("localhost", "https://leak.example.org", True),
        ("", "http://evil.test", False),
        ("leak.example.org", "https://leak.example.org.evil.test", False),
        ("leak.example.org", "https://leak.example.org@evil.test", False),
        ("", "null", False),
        ("", "http://localhost:3000", False),
        ("evil.test", "http://evil.test", False),
        ("evil.test", None, False),
    ],
)
def test_no_websocket_makes_the_server_ask_an_outside_host(
    server: Server, host: str, origin: str | None, is_served: bool
) -> None:
    if is_served:
        with server.connect(host, origin):
            pass
    else:
        with pytest.raises(InvalidStatus) as refused:
            server.connect(host, origin).__enter__()
        assert refused.value.response.status_code in (403, 421)
        assert re.search(rb"This server (refuses|does not)", refused.value.response.body or b"")
    assert outside(server) == []


@pytest.mark.slow
@pytest.mark.parametrize("cookie", [ANOTHERS, "", MINE.swapcase(), f"{MINE}; {ANOTHERS}"])
@pytest.mark.parametrize("is_connected", [True, False])
def test_a_session_is_given_to_its_visitor_alone(
    server: Server, cookie: str, is_connected: bool
) -> None:
    token = xsrf(server)
    with server.connect(cookie=MINE) as owner:
        mine = run_pages(owner)
        assert upload(server, mine, SECRET, token)[0] == 204
        if is_connected:
            _is_not_given(server, mine, cookie)
            assert run_pages(owner) == mine, "its owner lost the session"
        status, told = upload(server, mine, b"theirs", token, cookie=cookie)
        assert status == 403 and b"not your session" in told
        head = {"Cookie": f"_streamlit_xsrf={token}; {cookie}", "X-Xsrftoken": token}
        assert server.request(f"/_stcore/upload_file/{mine}/file-1", "DELETE", head)[0] == 403
    if not is_connected:
        _is_not_given(server, mine, cookie)
    with server.connect(cookie=MINE, session=mine) as owner:
        assert run_pages(owner) == mine, "its owner does not get it back"


def _is_not_given(server: Server, session: str, cookie: str) -> None:
    with server.connect(cookie=cookie, session=session) as other:
        assert run_pages(other) != session


@pytest.mark.slow
def test_who_a_visitor_is_cannot_be_said_by_a_request(server: Server) -> None:
    named = {"x-leakscope-visitor": "me"}
    with server.connect(more=named) as owner:
        mine = run_pages(owner)
    with server.connect(more=named, session=mine) as other:
        assert run_pages(other) != mine


@pytest.mark.slow
def test_starting_for_other_computers_asks_no_outside_host(server: Server) -> None:
    assert outside(server) == []
    assert "http://leak.example.org:" in server.output.read_text()
    assert "Traceback" not in server.output.read_text()


@pytest.mark.slow
def test_what_is_held_of_uploads_is_bounded(tmp_path: Path) -> None:
    sizes = {"STREAMLIT_SERVER_MAX_UPLOAD_SIZE": "2", "LEAKSCOPE_MAX_UPLOADS_MB": "5"}
    part = b"x" * (2**21 - 2**12)
    with (
        serve_recorded(tmp_path, **sizes) as server,
        server.connect(cookie=MINE) as one,
        server.connect(cookie=MINE) as two,
    ):
        first, second, token = run_pages(one), run_pages(two), xsrf(server)
        assert upload(server, first, b"x" * 3 * 2**20, token)[0] == 413, "one file"
        assert upload(server, first, part, token, "a")[0] == 204
        assert upload(server, first, part, token, "b")[0] == 204
        status, told = upload(server, first, part, token, "c")
        assert status == 413 and b"Uploads of a visitor may total at most 4 MB" in told
        status, told = upload(server, second, part, token, "a")
        assert status == 503 and b"no room for more files" in told
        head = {"Cookie": f"_streamlit_xsrf={token}; {MINE}", "X-Xsrftoken": token}
        path = f"/_stcore/upload_file/{first}/a"
        assert server.request(path, "DELETE", head)[0] == 204
        assert upload(server, second, part, token, "a")[0] == 204, "there is room again"
        chunked = head | {"Transfer-Encoding": "chunked"}
        assert server.request(path, "PUT", chunked)[0] == 411
        # By this server, or already by the parser of HTTP, where httptools is installed.
        assert server.request(path, "PUT", chunked | {"Content-Length": "1"})[0] in (400, 411)
        assert server.operations("tempfile.mkstemp") == []
