"""Serve the pages to the browsers of this computer, or to others that are listed.

The settings come from `dashboard/.streamlit/config.toml`, whatever the working folder. The command
takes none of Streamlit's flags, but follows its environment variables, such as
STREAMLIT_SERVER_MAX_UPLOAD_SIZE.
"""

from __future__ import annotations

import argparse
import os
import re
import socket

from leakscope.core.assets import ROOT
from leakscope.core.errors import InvalidInputError

EXAMPLE = "leakscope serve --port 8501"
WHEN_STOPPED = "The server has stopped."
SERVER = ROOT / "dashboard" / "serve.py"

_EVERYWHERE = ("0.0.0.0", "::")
_HOST = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|[0-9a-f:]*:[0-9a-f:.]*", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://[^/?#@\s]+/?", re.IGNORECASE)
_BASE = re.compile(r"/*[\w.~-]+(/[\w.~-]+)*/*", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the `serve` command to a parser."""
    parser.add_argument(
        "--host",
        help="address to listen on (default: localhost, which other computers cannot reach)",
    )
    parser.add_argument(
        "--port", type=int, help="port to listen on (default: 8501, or the next free one)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="host name that browsers may use, such as leakscope.example.org or *.example.org; may "
        "be repeated (default: localhost, and the address of --host)",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        metavar="URL",
        help="page at another address that may use this server, such as https://example.org; "
        "may be repeated",
    )
    parser.add_argument(
        "--allow-encoder",
        action="append",
        metavar="NAME",
        help="encoder that visitors may load, such as st:ID or mlm:FOLDER; may be repeated "
        "(default: any if only this computer is served, else only the bundled one)",
    )
    parser.add_argument(
        "--base-path", metavar="PATH", help="path under which a proxy serves the pages"
    )


def run(arguments: argparse.Namespace) -> None:
    """Start the Streamlit server with parsed arguments; return only after Ctrl-C.

    Raises
    ------
    InvalidInputError
        The address does not exist, its port is taken, or a name to allow is malformed.
    """
    flags = _streamlit_flags(arguments)
    if arguments.port is not None or arguments.host is not None:
        _check_free(arguments.host or "localhost", arguments.port)
    from leakscope.dashboard.server import policy

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


def _streamlit_flags(arguments: argparse.Namespace) -> list[str]:
    """Check parsed arguments and convert them into Streamlit's command-line flags."""
    hosts, origins = arguments.allow_host or [], arguments.allow_origin or []
    _check_form("--allow-host", hosts, _HOST, "a name such as leakscope.example.org")
    _check_form("--allow-origin", origins, _ORIGIN, "an origin such as https://example.org")
    _check_form("--base-path", [arguments.base_path or "leakscope"], _BASE, "a path such as /leak")
    if arguments.host in _EVERYWHERE and not hosts:
        raise InvalidInputError(
            f"--host {arguments.host} accepts other computers. Give the host name that they use: "
            "--allow-host NAME."
        )
    shown = next((h for h in hosts if "*" not in h), arguments.host)
    given = [
        ("--server.address", arguments.host),
        ("--server.port", arguments.port),
        ("--server.baseUrlPath", arguments.base_path and arguments.base_path.strip("/")),
        ("--browser.serverAddress", shown),
        *(("--server.allowedHosts", name) for name in _with_local_names(hosts, arguments.host)),
        *(("--server.corsAllowedOrigins", origin.rstrip("/")) for origin in origins),
    ]
    return [str(word) for flag, value in given if value is not None for word in (flag, value)]


def _with_local_names(hosts: list[str], host: str | None) -> list[str]:
    """Return the allowed host names plus this computer's own; [] if no host is listed."""
    if not hosts:
        return []
    own = [] if host is None or host in _EVERYWHERE else [host]
    return list(dict.fromkeys(["localhost", "127.0.0.1", "::1", *own, *hosts]))


def _check_form(option: str, values: list[str], form: re.Pattern[str], what: str) -> None:
    """Raise InvalidInputError if a value of an option does not match its pattern."""
    for value in values:
        if not form.fullmatch(value):
            raise InvalidInputError(f"{option} takes {what}, got {value!r}.")


def _check_free(host: str, port: int | None) -> None:
    """Raise InvalidInputError if the server cannot listen on a host and port."""
    if port is not None and not 1 <= port <= 65535:
        raise InvalidInputError(f"--port must lie in [1, 65535], got {port}.")
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port or 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except (OSError, UnicodeError) as error:  # the latter of a name with an empty or a long part
        where = f"{host}:{port}" if port else host
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(
            f"The server cannot listen on {where}: {reason}. Give another --port or "
            "--host, or leave both out to use a free port of localhost."
        ) from error
