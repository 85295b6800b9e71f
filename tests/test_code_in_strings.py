"""Code that tests and benchmarks hand to another interpreter names modules that exist.

Linters and type checkers do not look into strings: a module that is renamed leaves them behind.
"""

from __future__ import annotations

import ast
import importlib
import textwrap
from collections.abc import Iterator

import pytest
from source_files import offenders, parse_file, python_files


def code_in(tree: ast.Module) -> Iterator[ast.Module]:
    """Yield what is assigned at the top of a module, or follows "-c", and is Python."""
    values = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple):
            before = [getattr(element, "value", None) for element in node.elts]
            values += [node.elts[i + 1] for i, value in enumerate(before[:-1]) if value == "-c"]
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            try:
                yield ast.parse(textwrap.dedent(value.value))
            except SyntaxError:
                continue


def is_there(module: str, name: str | None = None) -> bool:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError:
        return False
    return name is None or hasattr(found, name) or is_there(f"{module}.{name}")


def missing(tree: ast.Module) -> list[str]:
    """Return what the code in a module's strings imports from the project and does not find."""
    found = []
    for code in code_in(tree):
        for node in ast.walk(code):
            if isinstance(node, ast.Import):
                wanted = [(alias.name, None) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                wanted = [(node.module, alias.name) for alias in node.names]
            else:
                continue
            for module, name in wanted:
                if module.startswith("leakscope") and not is_there(module, name):
                    found.append(module if name is None else f"{module}.{name}")
    return found


def test_code_in_strings_names_modules_that_exist() -> None:
    assert (
        offenders(
            python_files("tests", "benchmarks", "tools"), lambda path: missing(parse_file(path))
        )
        == {}
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('RUN = "from leakscope.core.studies import gone"', ["leakscope.core.studies.gone"]),
        ('RUN = "from leakscope.core.gone import name"', ["leakscope.core.gone.name"]),
        ('run(["python", "-c", "import leakscope.gone"])', ["leakscope.gone"]),
        ('RUN = "from leakscope.core.studies import runner"', []),
        ('RUN = "import gone"', []),
    ],
)
def test_the_check_of_code_in_strings_can_fail(source: str, expected: list[str]) -> None:
    assert missing(ast.parse(source)) == expected
