"""Functions stay short enough to be read in one go."""

from __future__ import annotations

import ast
from pathlib import Path

CORE = Path(__file__).parent.parent / "core"
MOST_LINES = 40
MOST_LONG = 5
"""Numba and one or two tables need more: a step of theirs is no idea of its own."""


def long_functions(source: str, name: str) -> list[str]:
    """Return the functions of a file that take more than 40 lines, docstring aside."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                n_lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            if n_lines > MOST_LINES:
                found.append(f"{name}: {node.name} has {n_lines} lines")
    return found


def test_hardly_a_function_is_longer_than_forty_lines() -> None:
    found = [
        line
        for path in sorted(CORE.rglob("*.py"))
        for line in long_functions(path.read_text(encoding="utf-8"), str(path.relative_to(CORE)))
    ]
    assert len(found) <= MOST_LONG, "\n".join(["split some of these:", *found])


def test_the_check_can_fail_and_leaves_docstrings_out() -> None:
    body = "\n".join(["    x = 1"] * 40)
    assert long_functions(f"def f():\n{body}", "a.py") == ["a.py: f has 41 lines"]
    told = '    """\n' + "    Say.\n" * 50 + '    """\n'
    short = "\n".join(["    x = 1"] * 39)
    assert long_functions(f"def f():\n{told}{short}", "a.py") == []
