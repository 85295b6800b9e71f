"""The command `leakscope`: the pages and every command of the engine. `leakscope --help`."""

from __future__ import annotations

import sys

from leakscope.core import cli
from leakscope.dashboard.server import command


def main() -> int:
    """Run the command that the command line names and return its exit status."""
    return cli.main(more={"serve": command})


if __name__ == "__main__":
    sys.exit(main())
