"""Output of commands: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from leakscope.core.protocols import OnProgress

_QUIET_SECONDS = 30.0
_REDRAW_SECONDS = 0.1


def show_error(message: str) -> None:
    """Print an error as one line on standard error."""
    print("error:", " ".join(message.split()), file=sys.stderr)


def show_note(message: str) -> None:
    """Print a note as one line on standard error."""
    print("note:", " ".join(message.split()), file=sys.stderr)


def show_json(data: Any) -> None:
    """Print data as UTF-8 JSON on standard output; NaN and infinity become null."""
    text = json.dumps(jsonable(data), ensure_ascii=False, allow_nan=False, indent=1)
    sys.stdout.flush()
    # A lone surrogate, such as from a path that is not UTF-8, is written as a JSON escape.
    sys.stdout.buffer.write(text.encode(errors="backslashreplace") + b"\n")


def jsonable(data: Any) -> Any:
    """Convert nested data for JSON: NaN and infinity to None, sets and tuples to lists."""
    if isinstance(data, dict):
        return {str(key): jsonable(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [jsonable(value) for value in data]
    if isinstance(data, set | frozenset):
        return sorted(jsonable(value) for value in data)
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def show_table(markdown: str) -> None:
    """Print a Markdown text on standard output with its table columns aligned."""
    for is_table, group in groupby(markdown.splitlines(), lambda line: line.startswith("|")):
        lines = list(group)
        print(*(_align(lines) if is_table else lines), sep="\n")


def _align(lines: list[str]) -> list[str]:
    r"""Return the lines of a Markdown table with cells padded to equal column widths.

    Examples
    --------
    >>> _align(["| a | b |", "|---|---|", "| long | x\\|y |"])
    ['| a    | b    |', '|------|------|', '| long | x\\|y |']
    """
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    return [
        "".join(
            "|" + cell.ljust(width, "-" if set(cell) == {"-"} else " ")
            for cell, width in zip(row, widths, strict=False)
        )
        + "|"
        for row in rows
    ]


@contextmanager
def progress_line(stream: TextIO | None = None) -> Iterator[OnProgress]:
    """Yield an `on_progress` callback that redraws one line; clear the line at the end.

    If standard error is not a terminal, it prints a line every 30 seconds instead.
    """
    stream = sys.stderr if stream is None else stream
    is_terminal = stream.isatty()
    shown_at = time.monotonic() if not is_terminal else -math.inf

    def show(fraction: float, message: str) -> None:
        """Redraw the progress line, unless the last one is too recent."""
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at < (_REDRAW_SECONDS if is_terminal else _QUIET_SECONDS):
            return
        shown_at = now
        line = f"{fraction:4.0%}  {' '.join(message.split())}"
        if is_terminal:
            line = line[: shutil.get_terminal_size().columns - 1]
        print(
            f"\r\x1b[2K{line}" if is_terminal else line,
            end="" if is_terminal else "\n",
            file=stream,
            flush=True,
        )

    try:
        yield show
    finally:
        if is_terminal:
            print("\r\x1b[2K", end="", file=stream, flush=True)
