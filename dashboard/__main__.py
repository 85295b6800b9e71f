"""The command `leakscope`: the pages beside all commands of the engine. `leakscope --help`."""

from __future__ import annotations

import sys

from core import cli
from dashboard import command

__all__ = ["main"]


def main() -> int:
    """Run one command, `serve` or one of `python -m core`, and return its exit status."""
    return cli.main(prog="leakscope", more={"serve": command})


if __name__ == "__main__":
    sys.exit(main())
