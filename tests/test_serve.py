"""The server around the pages: what it changes in an answer, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
from served import send_through

from leakscope.dashboard import serve

PAGE = b"<!DOCTYPE html><html><head><title>x</title></head><body></body></html>"


def ask(
    answer_type: str, body: list[bytes], accept: str = "text/html"
) -> tuple[dict[str, str], bytes, dict[str, Any]]:
    """Return the headers and the body that come out, and the scope that went in."""
    seen: dict[str, Any] = {}

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope)
        headers = [(b"content-type", answer_type.encode()), (b"etag", b"1")]
        headers += [(b"content-length", str(sum(map(len, body))).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for i, part in enumerate(body):
            more = i < len(body) - 1
            await send({"type": "http.response.body", "body": part, "more_body": more})

    asked = [(b"accept", accept.encode()), (b"accept-encoding", b"gzip")]
    sent = send_through(serve.InjectServerAddress, inner, headers=asked)
    headers = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return headers, b"".join(m.get("body", b"") for m in sent[1:]), seen


def test_a_document_is_told_where_the_server_is() -> None:
    headers, body, scope = ask("text/html; charset=utf-8", [PAGE[:30], PAGE[30:]])
    script = b"{BACKEND_BASE_URL: window.location.origin + '/'}"
    assert body.count(script) == 1 and body.index(script) < body.index(b"<title>")
    assert body.replace(b"<script>window.__streamlit = " + script + b"</script>", b"") == PAGE
    assert headers["content-length"] == str(len(body))
    assert "etag" not in headers, "the file's own tag does not name the changed document"
    assert [key for key, _ in scope["headers"]] == [b"accept"]


@pytest.mark.parametrize(("answer", "accept"), [("text/css", "text/html"), ("text/html", "*/*")])
def test_anything_else_passes_unchanged(answer: str, accept: str) -> None:
    headers, body, _ = ask(answer, [PAGE], accept)
    assert body == PAGE and headers["etag"] == "1"
    assert headers["content-length"] == str(len(PAGE))


def test_a_fault_outside_a_page_shows_our_message_and_not_its_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(
        "leakscope.dashboard.ui.errors.st.error", lambda text, **_: shown.append(text)
    )
    assert serve._on_script_error(ValueError("typed secret")) is True
    assert "bug in Leakscope" in shown[0]
    assert "secret" not in shown[0] + caplog.text and "ValueError" in caplog.text
