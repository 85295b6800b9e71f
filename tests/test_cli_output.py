from __future__ import annotations

import io

import pytest

from leakscope.core.cli.shared.output import jsonable, progress_line


def test_json_knows_no_nan() -> None:
    data = {"a": (float("nan"), float("-inf"), 1.5), 2: frozenset({"b", "a"}), "c": None}
    assert jsonable(data) == {"a": [None, None, 1.5], "2": ["a", "b"], "c": None}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_redraws_one_line_of_a_terminal_and_removes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    now = iter([0.0, 0.05, 0.2, 0.4])
    monkeypatch.setattr("leakscope.core.cli.shared.output.time.monotonic", lambda: next(now))
    stream = Terminal()
    with progress_line(stream) as show:
        for i in range(4):  # the second comes too soon after the first
            show(i / 4, f"step {i}\nof a very long message")
    drawn = stream.getvalue().split("\r\x1b[2K")
    assert drawn == [
        "",
        "  0%  step 0 of a ver"[:19],
        " 50%  step 2 of a ver"[:19],
        " 75%  step 3 of a ver"[:19],
        "",
    ]


def test_progress_is_quiet_off_a_terminal_unless_it_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter([0.0, 1.0, 31.0, 40.0, 62.0])
    monkeypatch.setattr("leakscope.core.cli.shared.output.time.monotonic", lambda: next(now))
    stream = io.StringIO()
    with progress_line(stream) as show:
        for i in range(4):
            show(i / 4, f"step {i}")
    assert stream.getvalue() == " 25%  step 1\n 75%  step 3\n"
