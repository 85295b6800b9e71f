"""The project's source files, and checks over many of them in one test."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below top-level folders of the checkout."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def relative_name(path: Path) -> str:
    """Return a file's path relative to the checkout."""
    return str(path.relative_to(ROOT))


def module_name(path: Path) -> str:
    """Return the name by which a file of the project is imported."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return f"leakscope.{name}".replace("leakscope.leakscope", "leakscope").removesuffix(".__init__")


@cache
def parse_file(path: Path) -> ast.Module:
    """Return the syntax tree of a file, cached."""
    return ast.parse(path.read_text(encoding="utf-8"), relative_name(path))


def offenders(files: Iterable[Path], check: Callable[[Path], Any]) -> dict[str, Any]:
    """Return the result of `check` for each file where it is not empty."""
    return {relative_name(path): found for path in files if (found := check(path))}
