"""Serve the pages to the browsers of this computer.

The settings are those of `dashboard/.streamlit/config.toml`, wherever the command runs. Streamlit's
own flags stay out of it; its environment variables, such as STREAMLIT_SERVER_MAX_UPLOAD_SIZE, work.
"""

from __future__ import annotations

import argparse
import socket

from core.assets import ROOT
from core.errors import InvalidInputError

__all__ = ["WHEN_STOPPED", "add_arguments", "run"]

WHEN_STOPPED = "The server has ended."
SERVER = ROOT / "dashboard" / "serve.py"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `serve`."""
    parser.add_argument(
        "--host",
        help="the address to listen on (default: localhost, which other computers do not reach)",
    )
    parser.add_argument(
        "--port", type=int, help="the port to listen on (default: 8501, or the next that is free)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Serve until Ctrl-C.

    Raises
    ------
    InvalidInputError
        There is no such address, or its port is taken.
    """
    if arguments.port is not None or arguments.host is not None:
        _check_free(arguments.host or "localhost", arguments.port)
    flags = [("--server.address", arguments.host), ("--server.port", arguments.port)]
    given = [str(word) for flag, value in flags if value is not None for word in (flag, value)]
    import click
    from streamlit.web import cli

    try:
        cli.main(["run", str(SERVER), *given], prog_name="streamlit", standalone_mode=False)
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:  # of one of Streamlit's environment variables
        raise InvalidInputError(error.format_message()) from error


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
