"""The command `leakscope`, in this process; tests/test_wheel.py starts the installed one."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, Outcome

from leakscope.__main__ import main
from leakscope.core import __version__
from leakscope.core.cli import COMMANDS
from leakscope.dashboard.server import policy

Leakscope = Callable[..., Outcome]


@pytest.fixture
def leakscope(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Leakscope:
    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["leakscope", *arguments])
        try:
            status = main()
        except SystemExit as stop:  # argparse: --help and mistakes in the arguments
            status = int(stop.code or 0)
        said = capsys.readouterr()
        return Outcome(status, said.out, said.err)

    return run


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What Streamlit was started with, instead of starting it."""
    calls: list[list[str]] = []
    monkeypatch.setattr("streamlit.web.cli.main", lambda words, **_: calls.append(words))
    return calls


def test_it_tells_its_version_and_all_commands(leakscope: Leakscope) -> None:
    assert leakscope("--version").out == f"Leakscope {__version__}\n"
    told = leakscope("--help")
    assert told.status == 0 and "usage: leakscope" in told.out
    assert all(f"\n    {name}" in told.out for name in ["serve", *COMMANDS])
    assert leakscope("serve", "--help").out.endswith("\n  leakscope serve --port 8501\n")


def test_it_is_the_engine_s_command_line(leakscope: Leakscope, core: Any) -> None:
    assert leakscope("list", "--json").json() == core("list", "--json").json()
    assert "(see leakscope invert --help)" in leakscope("invert").refusal()


def test_serve_starts_the_server_where_it_is_told(
    leakscope: Leakscope, started: list[list[str]]
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    assert leakscope("serve").status == 0
    assert leakscope("serve", "--host", "127.0.0.1", "--port", port).status == 0
    (run, server, *none), (_, _, *told) = started
    assert run == "run" and Path(server) == ROOT / "dashboard" / "serve.py"
    assert none == []
    assert told == [
        "--server.address",
        "127.0.0.1",
        "--server.port",
        port,
        "--browser.serverAddress",
        "127.0.0.1",
    ]


def test_serve_answers_to_the_names_that_are_listed(
    leakscope: Leakscope, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(policy.ENCODERS, "")
    listed = ["--allow-host", "*.lab.example", "--allow-host", "leak.example.org"]
    listed += ["--allow-origin", "https://example.org/", "--base-path", "/tools/leak/"]
    listed += ["--allow-encoder", "st:a/b", "--allow-encoder", "mlm:c"]
    assert leakscope("serve", *listed).status == 0
    _, _, *told = started[0]
    given = list(zip(told[::2], told[1::2], strict=True))
    hosts = [value for flag, value in given if flag == "--server.allowedHosts"]
    assert hosts == ["localhost", "127.0.0.1", "::1", "*.lab.example", "leak.example.org"]
    assert dict(given) | {"--server.allowedHosts": ""} == {
        "--server.baseUrlPath": "tools/leak",
        "--browser.serverAddress": "leak.example.org",
        "--server.corsAllowedOrigins": "https://example.org",
        "--server.allowedHosts": "",
    }
    assert os.environ[policy.ENCODERS] == "st:a/b,mlm:c"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--port", "0"], "--port must lie in [1, 65535], got 0"),
        (["--port", "many"], "must be a whole number, got 'many'"),
        (["--host", "256.0.0.1"], "The server cannot listen on 256.0.0.1: "),
        (["--host", ".."], "The server cannot listen on ..: "),
        (["--server.port", "80"], "unrecognized arguments"),
        (["--host", "0.0.0.0"], "Give the host name that they use: --allow-host NAME"),
        (["--host", "::"], "--allow-host NAME"),
        (["--allow-host", "*"], "--allow-host takes a name such as"),
        (["--allow-host", "https://a.example"], "--allow-host takes a name such as"),
        (["--allow-origin", "a.example"], "--allow-origin takes an origin such as"),
        (["--base-path", "a b"], "--base-path takes a path such as"),
        (["--base-path", "../a'"], "--base-path takes a path such as"),
    ],
)
def test_mistakes_are_one_line(
    leakscope: Leakscope, started: list[list[str]], arguments: list[str], says: str
) -> None:
    assert says in leakscope("serve", *arguments).refusal()
    assert started == []


def test_a_port_that_is_taken_is_named(leakscope: Leakscope, started: list[list[str]]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refusal = leakscope("serve", "--host", "127.0.0.1", "--port", str(port)).refusal()
    assert f"The server cannot listen on 127.0.0.1:{port}: Address already in use." in refusal
    assert started == []
