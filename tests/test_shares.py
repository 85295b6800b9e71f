"""From where a visitor comes, which decides their share: a dropped cookie gives no other."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from served import Server, serve_recorded
from starlette.datastructures import Headers
from websockets.exceptions import InvalidStatus

from leakscope.dashboard.server import policy
from leakscope.dashboard.server.policy import Policy
from leakscope.dashboard.server.visitor import SHARE, IdentifyVisitor, share_of

PROXY = "10.0.0.2"


@pytest.mark.parametrize(
    ("peer", "sent", "share"),
    [
        ("127.0.0.1", {}, ""),
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.7"}, "192.0.2.7"),
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.66, 192.0.2.7"}, "192.0.2.7"),
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-User": "ann"}, "ann"),
        (PROXY, {"X-Forwarded-For": "192.0.2.7"}, "192.0.2.7"),
        ("192.0.2.9", {}, "192.0.2.9"),
        ("192.0.2.9", {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-User": "ann"}, "192.0.2.9"),
        ("2001:db8:1:2:aaaa::1", {}, "2001:db8:1:2::/64"),
        ("::1", {"X-Forwarded-For": "2001:db8:1:2:bbbb::2"}, "2001:db8:1:2::/64"),
    ],
)
def test_only_a_proxy_is_believed_for_whom_it_asks(
    peer: str, sent: dict[str, str], share: str
) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
    scope: Any = {"type": "http", "client": (peer, 1234), "headers": headers}
    assert share_of(scope, Policy(proxies=(PROXY,))) == share


def test_the_proxy_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(policy.PROXY, f"{PROXY}, 10.0.0.3")
    assert policy.current_policy().proxies == (PROXY, "10.0.0.3")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve_recorded(tmp_path_factory.mktemp("served"), LEAKSCOPE_MAX_SESSIONS="4") as running:
        yield running


@pytest.mark.slow
def test_one_address_leaves_room_for_others(server: Server) -> None:
    def come(address: str, stack: ExitStack, **more: str) -> None:
        sent = {"X-Forwarded-For": address, **more}
        stack.enter_context(server.connect(more=sent, cookie=f"leakscope_visitor={len(sent):022}"))

    with ExitStack() as stack:
        for i in range(3):
            come("192.0.2.7", stack, **{SHARE: str(i)})
        with pytest.raises(InvalidStatus) as refused:
            come("192.0.2.7", stack)
        assert refused.value.response.status_code == 503
        come("192.0.2.8", stack)


@pytest.mark.slow
def test_what_a_request_says_of_its_share_is_dropped_and_no_page_sees_the_address() -> None:
    seen: list[Headers] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(Headers(scope=scope))

    sent = [(SHARE.encode(), b"mine"), (b"x-forwarded-for", b"192.0.2.7")]
    for client in ("127.0.0.1", "127.0.0.1", "192.0.2.9"):
        scope = {"type": "websocket", "client": (client, 1), "headers": sent, "path": "/"}
        asyncio.run(IdentifyVisitor(app)(scope, None, None))  # type: ignore[arg-type]
    one, same, other = (headers.getlist(SHARE) for headers in seen)
    assert one == same != other and len(one) == 1
    assert re.fullmatch("[0-9a-f]{64}", one[0]) and re.fullmatch("[0-9a-f]{64}", other[0])
