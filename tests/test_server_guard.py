"""Whom a running server answers, and what every answer forbids the browser."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Server, send_through, serve_recorded
from websockets.exceptions import InvalidStatus

from leakscope.core.errors import InvalidInputError
from leakscope.dashboard.server import headers, policy
from leakscope.dashboard.server.policy import Policy, current_policy

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve_recorded(tmp_path_factory.mktemp("served"), LEAKSCOPE_MAX_SESSIONS="1") as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "method", "sent", "status"),
    [
        ("/", "GET", HTML, 200),
        ("/inversion?text=secret", "GET", HTML, 200),
        ("/", "GET", {}, 200),
        ("/favicon.png", "GET", {}, 200),
        ("/_stcore/health", "GET", {}, 200),
        ("/_stcore/host-config", "GET", {}, 200),
        ("/media/none.png", "GET", {}, 404),
        ("//evil.test", "GET", {}, 400),
        ("/", "POST", {}, 405),
        ("/_stcore/upload_file/a/b", "PUT", {}, 411),
        ("/", "GET", {"Host": "evil.test"}, 421),
        ("/", "GET", {"Origin": "http://evil.test"}, 403),
    ],
)
def test_every_answer_has_the_headers(
    server: Server, path: str, method: str, sent: dict[str, str], status: int
) -> None:
    found, told, _ = server.request(path, method, sent)
    assert found == status
    allowed = dict(part.split(" ", 1) for part in told["content-security-policy"].split("; "))
    assert allowed["frame-ancestors"] == allowed["object-src"] == "'none'"
    assert allowed["default-src"] == allowed["connect-src"] == "'self'"
    assert "unsafe-inline" not in allowed["script-src"]
    assert not any(
        ":" in source and source not in ("data:", "blob:")
        for sources in allowed.values()
        for source in sources.split()
    )
    assert told["x-content-type-options"] == "nosniff"
    assert told["referrer-policy"] == "no-referrer" and told["x-frame-options"] == "DENY"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "to"),
    [("/overview", "/"), ("/overview/", "/"), ("/overview?text=a%20b", "/?text=a%20b")],
)
def test_the_page_that_opens_first_has_an_address_of_its_name(
    server: Server, path: str, to: str
) -> None:
    status, told, _ = server.request(path, headers=HTML)
    assert status == 307 and told["location"] == to


def test_the_scripts_of_the_document_are_known_by_their_hash(server: Server) -> None:
    _, told, document = server.request("/", headers=HTML)
    assert headers.content_policy(document) == told["content-security-policy"]
    n_inline = document.count(b"<script>")
    assert told["content-security-policy"].count("'sha256-") == n_inline == 2


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "localhost.evil.test",
        "evil.test#localhost",
        "localhost@evil.test",
        "",
        "localhost:port",
        "localhost/evil",
        "0.0.0.0",
    ],
)
def test_a_name_that_is_not_listed_is_not_answered(server: Server, host: str) -> None:
    status, _, told = server.request("/", headers={**HTML, "Host": host})
    assert status == 421 and b"leakscope serve --allow-host NAME" in told
    assert b"evil" not in told and b"<" not in told


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8501", "[::1]:1"])
def test_this_computer_is_answered_without_any_setting(server: Server, host: str) -> None:
    assert server.request("/", headers={**HTML, "Host": host})[0] == 200


@pytest.mark.parametrize("path", ["metrics", "metrics/", "agent/openapi.json", "agent/interact"])
def test_metrics_and_the_interface_for_programs_are_off(server: Server, path: str) -> None:
    assert server.request(f"/_stcore/{path}")[0] == 404


def test_no_outside_site_may_steer_the_pages(server: Server) -> None:
    _, _, told = server.request("/_stcore/host-config")
    assert b'"allowedOrigins":[]' in told and b"streamlit.app" not in told


def test_one_visitor_too_many_is_told(server: Server) -> None:
    with server.connect():
        with pytest.raises(InvalidStatus) as refused, server.connect():
            pass
        assert refused.value.response.status_code == 503
        assert b"reached its limit of visitors" in (refused.value.response.body or b"")


def test_a_fault_has_the_headers_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    typed = "typed secret"

    async def broken(*_: Any) -> None:
        raise ValueError(typed)

    with caplog.at_level(logging.ERROR):
        sent = send_through(headers.SafeHeaders, broken)
    assert sent[0]["status"] == 500 and typed.encode() not in sent[1]["body"]
    assert {b"content-security-policy", b"referrer-policy"} <= dict(sent[0]["headers"]).keys()
    assert typed not in caplog.text and "ValueError" in caplog.text


LISTED = Policy(hosts=("localhost", "leak.example.org", "*.lab.example"))


@pytest.mark.parametrize(
    ("origin", "host", "is_trusted"),
    [
        ("http://localhost:8501", "localhost:8501", True),
        ("https://leak.example.org", "leak.example.org", True),
        ("https://leak.example.org:8443", "leak.example.org", True),
        ("https://leak.example.org", "127.0.0.1:8501", True),
        ("https://a.lab.example", "a.lab.example", True),
        ("https://a.lab.example:8443", "a.lab.example", True),
        ("https://a.lab.example", "b.lab.example", False),
        ("https://a.lab.example", "localhost:8501", False),
        ("http://leak.example.org", "leak.example.org", False),
        ("http://leak.example.org:8501", "leak.example.org:8501", True),
        ("http://leak.example.org:9000", "leak.example.org:9000", False),
        ("http://leak.example.org", "127.0.0.1:8501", False),
        ("http://localhost:9000", "localhost:9000", True),
        ("https://leak.example.org:8443", "leak.example.org:8501", False),
        ("http://localhost:3000", "localhost", False),
        ("file://localhost:8501", "localhost:8501", False),
        ("https://lab.example.evil.test", "localhost:8501", False),
        ("https://evil.test/leak.example.org", "localhost:8501", False),
        ("null", "localhost:8501", False),
    ],
)
def test_which_pages_may_talk_to_the_server(origin: str, host: str, is_trusted: bool) -> None:
    assert LISTED.trusts(origin, host, port=8501) is is_trusted


def test_a_page_of_plain_http_is_trusted_where_no_tls_is_spoken_or_it_is_listed() -> None:
    plain = ("http://leak.example.org:8501", "leak.example.org:8501")
    assert LISTED.trusts(*plain, port=8501)
    assert not LISTED.trusts(*plain, port=8501, is_tls=True) and not LISTED.trusts(*plain)
    listed = Policy(hosts=("leak.example.org",), origins=("http://leak.example.org",))
    assert listed.trusts("http://leak.example.org", "leak.example.org", port=8501)
    everything = Policy(hosts=("*",))
    assert everything.trusts("https://a.test", "a.test", port=8501)
    assert not everything.trusts("https://evil.test", "a.test", port=8501)


@pytest.mark.slow
def test_behind_the_documented_proxy_plain_http_is_refused_and_the_cookie_is_secure(
    tmp_path: Path,
) -> None:
    name = "leak.example.org"
    with serve_recorded(tmp_path, "--allow-host", name) as server:
        passed = {"Host": name, "X-Forwarded-Proto": "https", **HTML}
        status, told, _ = server.request("/", headers=passed)
        assert status == 200 and told["set-cookie"].endswith("; Secure")
        assert server.request("/", headers={**passed, "Origin": f"https://{name}"})[0] == 200
        assert server.request("/", headers={**passed, "Origin": f"http://{name}"})[0] == 403
        _, told, _ = server.request("/", headers=HTML)
        assert not told["set-cookie"].endswith("; Secure"), "on this computer there is no TLS"


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "server.address": "localhost",
        "server.allowedHosts": [],
        "server.corsAllowedOrigins": [],
        "server.maxUploadSize": 200,
    }
    monkeypatch.setattr(policy.config, "get_option", chosen.__getitem__)
    for variable in (policy.ENCODERS, policy.MAX_SESSIONS, policy.MAX_UPLOADS, policy.PROXY):
        monkeypatch.delenv(variable, raising=False)
    return chosen


@pytest.mark.parametrize(
    ("address", "hosts", "is_local"),
    [
        ("localhost", [], True),
        ("127.0.0.1", [], True),
        ("localhost", ["localhost"], True),
        ("localhost", ["leak.example.org"], False),
        ("0.0.0.0", [], False),
        ("0.0.0.0", ["localhost"], False),
        ("192.0.2.7", [], False),
        (None, [], False),
    ],
)
def test_visitors_may_load_anything_on_this_computer_alone(
    settings: dict[str, Any], address: str, hosts: list[str], is_local: bool
) -> None:
    settings |= {"server.address": address, "server.allowedHosts": hosts}
    assert current_policy().may_load("mlm:somewhere") is is_local
    assert current_policy().may_load("minilm")


def test_what_is_listed_may_be_loaded_and_nothing_else(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(policy.ENCODERS, "mlm:bert-base-uncased, st:a/b,")
    allowed = current_policy()
    assert allowed.may_load("st:a/b") and allowed.may_load("mlm:bert-base-uncased")
    assert not allowed.may_load("st:a/c") and not allowed.may_load("mlm:bert")


@pytest.mark.slow
def test_an_address_that_is_listened_on_is_answered_by_it(settings: dict[str, Any]) -> None:
    settings["server.address"] = "192.0.2.7"
    assert current_policy().serves("192.0.2.7:8501") and not current_policy().serves(
        "192.0.2.8:8501"
    )


@pytest.mark.slow
@pytest.mark.parametrize("value", ["none", "0", "-1", "1.5", "9" * 20])
def test_a_limit_that_is_no_number_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(policy.MAX_SESSIONS, value)
    with pytest.raises(InvalidInputError, match=r"LEAKSCOPE_MAX_SESSIONS must be a whole number"):
        policy.check_environment()
