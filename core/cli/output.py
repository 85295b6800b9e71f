"""What the commands write: JSON or lines to standard output, progress to standard error."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from core.protocols import OnProgress

__all__ = ["jsonable", "progress_line", "show_error", "show_json", "show_note"]

_QUIET_SECONDS = 30.0
_REDRAW_SECONDS = 0.1


def show_error(message: str) -> None:
    """Write one line to standard error."""
    print("error:", " ".join(message.split()), file=sys.stderr)


def show_note(message: str) -> None:
    """Write one line to standard error that is no error."""
    print("note:", " ".join(message.split()), file=sys.stderr)


def show_json(data: Any) -> None:
    """Write JSON as UTF-8 to standard output; what is not a number becomes null."""
    text = json.dumps(jsonable(data), ensure_ascii=False, allow_nan=False, indent=1)
    sys.stdout.flush()
    # Half a character, such as in a path that is not UTF-8, stands as JSON writes one.
    sys.stdout.buffer.write(text.encode(errors="backslashreplace") + b"\n")


def jsonable(data: Any) -> Any:
    """Return nested data with NaN and infinity as None and sets and tuples as lists."""
    if isinstance(data, dict):
        return {str(key): jsonable(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [jsonable(value) for value in data]
    if isinstance(data, set | frozenset):
        return sorted(jsonable(value) for value in data)
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


@contextmanager
def progress_line(stream: TextIO | None = None) -> Iterator[OnProgress]:
    """Give an `on_progress` that redraws one line, and remove the line at the end.

    Where standard error is no terminal it stays silent, but for a line every 30 seconds.
    """
    stream = sys.stderr if stream is None else stream
    is_terminal = stream.isatty()
    shown_at = time.monotonic() if not is_terminal else -math.inf

    def show(fraction: float, message: str) -> None:
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
