"""Serve the pages to the browsers of this computer, or to others that are listed.

The settings are those of `dashboard/.streamlit/config.toml`, wherever the command runs. Streamlit's
own flags stay out of it; its environment variables, such as STREAMLIT_SERVER_MAX_UPLOAD_SIZE, work.
"""

from __future__ import annotations

import argparse
import os
import re
import socket

from core.assets import ROOT
from core.errors import InvalidInputError

__all__ = ["WHEN_STOPPED", "add_arguments", "run"]

WHEN_STOPPED = "The server has ended."
SERVER = ROOT / "dashboard" / "serve.py"

_EVERYWHERE = ("0.0.0.0", "::")
_HOST = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|[0-9a-f:]*:[0-9a-f:.]*", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://[^/?#@\s]+/?", re.IGNORECASE)
_BASE = re.compile(r"/*[\w.~-]+(/[\w.~-]+)*/*", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `serve`."""
    parser.add_argument(
        "--host",
        help="the address to listen on (default: localhost, which other computers do not reach)",
    )
    parser.add_argument(
        "--port", type=int, help="the port to listen on (default: 8501, or the next that is free)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="a name that browsers may ask for, such as leakscope.example.org or *.example.org; "
        "as often as there are names (default: localhost, and the address of --host)",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        metavar="URL",
        help="a page of another address that may talk to this server, such as https://example.org",
    )
    parser.add_argument(
        "--allow-encoder",
        action="append",
        metavar="NAME",
        help="an encoder that visitors may load, such as st:ID or mlm:FOLDER (default: any, while "
        "this computer alone is served; none but the bundled one, once others are)",
    )
    parser.add_argument(
        "--base-path", metavar="PATH", help="the path below which a proxy shows the pages"
    )


def run(arguments: argparse.Namespace) -> None:
    """Serve until Ctrl-C.

    Raises
    ------
    InvalidInputError
        There is no such address, or its port is taken; a name to allow is none.
    """
    flags = _flags(arguments)
    if arguments.port is not None or arguments.host is not None:
        _check_free(arguments.host or "localhost", arguments.port)
    from dashboard import policy

    if arguments.allow_encoder:
        os.environ[policy.ENCODERS] = ",".join(arguments.allow_encoder)
    policy.check_environment()
    import click
    from streamlit.web import cli

    try:
        cli.main(["run", str(SERVER), *flags], prog_name="streamlit", standalone_mode=False)
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:  # of one of Streamlit's environment variables
        raise InvalidInputError(error.format_message()) from error


def _flags(arguments: argparse.Namespace) -> list[str]:
    """Return the settings that the arguments stand for, as Streamlit takes them."""
    hosts, origins = arguments.allow_host or [], arguments.allow_origin or []
    _check_named("--allow-host", hosts, _HOST, "a name such as leakscope.example.org")
    _check_named("--allow-origin", origins, _ORIGIN, "an origin such as https://example.org")
    _check_named("--base-path", [arguments.base_path or "leakscope"], _BASE, "a path such as /leak")
    if arguments.host in _EVERYWHERE and not hosts:
        raise InvalidInputError(
            f"--host {arguments.host} lets other computers in: say by which name they ask for this "
            "one, --allow-host NAME."
        )
    shown = next((h for h in hosts if "*" not in h), arguments.host)
    given = [
        ("--server.address", arguments.host),
        ("--server.port", arguments.port),
        ("--server.baseUrlPath", arguments.base_path and arguments.base_path.strip("/")),
        ("--browser.serverAddress", shown),
        *(("--server.allowedHosts", name) for name in _with_own(hosts, arguments.host)),
        *(("--server.corsAllowedOrigins", origin.rstrip("/")) for origin in origins),
    ]
    return [str(word) for flag, value in given if value is not None for word in (flag, value)]


def _with_own(hosts: list[str], host: str | None) -> list[str]:
    """Return the names that browsers may ask for: whoever lists some keeps this computer's own."""
    if not hosts:
        return []
    own = [] if host is None or host in _EVERYWHERE else [host]
    return list(dict.fromkeys(["localhost", "127.0.0.1", "::1", *own, *hosts]))


def _check_named(option: str, values: list[str], form: re.Pattern[str], what: str) -> None:
    for value in values:
        if not form.fullmatch(value):
            raise InvalidInputError(f"{option} takes {what}, got {value!r}.")


def _check_free(host: str, port: int | None) -> None:
    """Say what is wrong in our words before Streamlit says it in its own."""
    if port is not None and not 1 <= port <= 65535:
        raise InvalidInputError(f"--port must lie in [1, 65535], got {port}.")
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port or 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        where = f"{host}:{port}" if port else host
        raise InvalidInputError(
            f"Nothing can be served on {where}: {error.strerror or error}. Give another --port or "
            "--host; without them it is a free port of localhost."
        ) from error
