"""A visitor's work is theirs: known by a cookie after a reload, and by nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from served import send_through
from starlette.types import Receive, Scope, Send

from leakscope.core.jobs import Job, JobState
from leakscope.dashboard import cache
from leakscope.dashboard.server import visitor
from leakscope.dashboard.server.visitor import COOKIE, IdentifyVisitor
from leakscope.dashboard.ui import work


def answered(kind: str, *, cookie: str = "", scheme: str = "http") -> list[str]:
    """Return the cookies that an answer of a kind sets."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", kind.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"x"})

    headers = [(b"cookie", cookie.encode())] if cookie else []
    sent = send_through(IdentifyVisitor, app, scheme=scheme, headers=headers)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    return [v.decode() for k, v in sent[0]["headers"] if k == b"set-cookie"]


def test_a_browser_gets_one_cookie_with_its_first_page() -> None:
    (first,), (second,) = answered("text/html"), answered("text/html; charset=utf-8")
    assert first.startswith(f"{COOKIE}=") and first != second
    assert first.endswith("; Path=/; HttpOnly; SameSite=Strict")
    (secure,) = answered("text/html", scheme="https")
    assert secure.endswith("; Secure")
    assert answered("text/html", cookie=f"a=b; {first.partition(';')[0]}") == []
    assert answered("text/javascript") == []


@pytest.mark.parametrize(
    "cookie", [f"{COOKIE}=", f"{COOKIE}=short", f"{COOKIE}={'x' * 99}", "\x7f=;="]
)
def test_a_cookie_that_is_none_of_ours_is_replaced(cookie: str) -> None:
    assert len(answered("text/html", cookie=cookie)) == 1


class Request(str):
    __slots__ = ()


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A page without Streamlit: its session, and the address that names a job of `me`."""
    job = Job(
        id="x",
        request=Request("mine"),
        owner="me",
        state=JobState.RUNNING,
        fraction=0.0,
        message="",
        seconds=0.0,
    )

    class Queue:
        def view(self, job_id: str) -> Job:
            return job

    class Address(dict[str, Any]):
        def get_all(self, name: str) -> list[str]:
            return ["x"]

    session: dict[str, Any] = {}
    monkeypatch.setattr(cache, "jobs", Queue)
    monkeypatch.setattr(work.st, "session_state", session)
    monkeypatch.setattr(work.st, "query_params", Address())
    return session


@pytest.mark.parametrize(("who", "found"), [("me", ["mine"]), ("somebody else", [])])
def test_the_job_of_an_address_is_taken_up_by_its_visitor_alone(
    page: dict[str, Any], monkeypatch: pytest.MonkeyPatch, who: str, found: list[str]
) -> None:
    monkeypatch.setattr(work, "visitor", lambda: who)
    assert work.adopt_jobs(Request) == found
    assert list(page.get("_jobs", {})) == found


def test_without_a_cookie_a_visitor_is_their_session(monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, Any] = {}
    monkeypatch.setattr(visitor.st, "session_state", session)
    first = visitor.visitor()
    assert visitor.visitor() == first and len(first) == 22
    session.clear()
    assert visitor.visitor() != first
