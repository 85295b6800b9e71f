from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run_python
from source_files import ROOT, offenders, parse_file, python_files, relative_name

LAYERS = {"core": 0, "dashboard": 1, "pages": 2}
FILES = python_files(*LAYERS)
EVERYWHERE = python_files(*LAYERS, "benchmarks", "scripts", "tests", "tools")
UNPICKLERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
# Pipes between processes that this project starts itself, in one place alone
PIPES = {"multiprocessing.connection", "multiprocessing.reduction"}
# joblib's work, which reads no file
PROCESSES = {"Parallel", "ParallelBackendBase", "delayed", "parallel_config"}


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the full names of all modules imported anywhere in a file, functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""


def violations(tree: ast.AST, layer: str) -> list[str]:
    """Return what a file of `layer` imports and may not."""
    found = []
    for module in imported(tree):
        first, _, rest = module.partition(".")
        top = rest.partition(".")[0] if first == "leakscope" else first
        if LAYERS.get(top, -1) > LAYERS[layer] or (layer == "core" and top == "streamlit"):
            found.append(module)
    return found


def unpickling(tree: ast.AST) -> list[str]:
    """Return what in a file could execute code from a data file."""
    found = [m for m in imported(tree) if m.partition(".")[0] in UNPICKLERS - {"joblib"}]
    found += [m for m in imported(tree) if m in PIPES]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("joblib")]
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("joblib"):
            found += [alias.name for alias in node.names if alias.name not in PROCESSES]
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            allows = [k for k in node.keywords if k.arg in ("allow_pickle", "weights_only")]
            if called in ("torch.load", "pd.read_pickle", "pandas.read_pickle"):
                found.append(called)
            if any(k.arg == "allow_pickle" and ast.unparse(k.value) != "False" for k in allows):
                found.append(f"{called}(allow_pickle)")
            if called in ("np.load", "numpy.load") and not allows:
                found.append(f"{called} without allow_pickle=False")
            if called in ("eval", "exec"):
                found.append(called)
    return found


def test_there_is_something_to_check() -> None:
    assert {"core/text.py", "core/cli/__init__.py"} <= set(map(relative_name, FILES))


@pytest.mark.slow
def test_the_project_is_imported_below_its_own_name() -> None:
    """Imported as `core`, a module would be there twice, with two of each class."""

    def short(path: Path) -> set[str]:
        return LAYERS.keys() & {module.partition(".")[0] for module in imported(parse_file(path))}

    assert offenders(EVERYWHERE, short) == {}


def test_imports_run_pages_dashboard_core_and_never_back() -> None:
    def back(path: Path) -> list[str]:
        return violations(parse_file(path), relative_name(path).partition("/")[0])

    assert offenders(FILES, back) == {}


def test_nothing_is_unpickled() -> None:
    def unpickled(path: Path) -> set[str]:
        allowed = PIPES if path.is_relative_to(ROOT / "core" / "jobs") else set()
        return set(unpickling(parse_file(path))) - allowed

    assert offenders(FILES, unpickled) == {}


def test_no_html_is_passed_unescaped() -> None:
    shown = python_files("dashboard", "pages")
    assert offenders(shown, lambda path: "unsafe_allow_html" in path.read_text("utf-8")) == {}


def test_every_file_says_what_it_is() -> None:
    def is_silent(path: Path) -> bool:
        return bool(parse_file(path).body) and not ast.get_docstring(parse_file(path))

    assert offenders(python_files("core", "dashboard"), is_silent) == {}


def test_annotations_are_not_evaluated() -> None:
    def are_evaluated(path: Path) -> bool:
        tree = parse_file(path)
        annotated = any(
            isinstance(node, ast.AnnAssign)
            or (isinstance(node, ast.FunctionDef) and (node.returns or node.args.args))
            for node in ast.walk(tree)
        )
        has_future = any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
        )
        return annotated and not has_future

    assert offenders(EVERYWHERE, are_evaluated) == {}


@pytest.mark.parametrize(
    ("source", "layer", "expected"),
    [
        ("import streamlit as st", "core", ["streamlit"]),
        (
            "def f():\n from leakscope.dashboard.ui.state import x",
            "core",
            ["leakscope.dashboard.ui.state"],
        ),
        ("import leakscope.core.text", "dashboard", []),
        ("import leakscope.pages.inversion", "dashboard", ["leakscope.pages.inversion"]),
        ("import leakscope.dashboard.app, streamlit", "pages", []),
    ],
)
def test_the_import_check_can_fail(source: str, layer: str, expected: list[str]) -> None:
    assert violations(ast.parse(source), layer) == expected


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "from multiprocessing.connection import Client",
        "import joblib",
        "from joblib.numpy_pickle import load",
        "import torch\ntorch.load('x', weights_only=True)",
        "np.load('x')",
        "np.load('x', allow_pickle=True)",
        "eval('1')",
    ],
)
def test_the_unpickling_check_can_fail(source: str) -> None:
    assert len(unpickling(ast.parse(source))) == 1


def test_safe_loading_passes_the_unpickling_check() -> None:
    source = (
        "np.load('x', allow_pickle=False)\nload_file('x')\nfrom joblib import Parallel, delayed"
    )
    assert unpickling(ast.parse(source)) == []


def test_what_is_imported_within_functions_exists() -> None:
    """Of files that seldom run, such as benchmarks, nothing else would notice."""

    def missing(path: Path) -> list[str]:
        found = []
        for node in ast.walk(parse_file(path)):
            if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("leakscope"):
                continue
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if not hasattr(module, alias.name) and importlib.util.find_spec(name) is None:
                    found.append(name)
        return found

    assert offenders(EVERYWHERE, missing) == {}


HEAVY = {"pandas", "plotly.express", "scipy.stats", "sklearn", "torch", "transformers", "umap"}


def test_the_first_page_waits_for_no_library_that_it_does_not_use() -> None:
    """What the page of inversion imports is most of the time from a server's start to its words."""
    page = ast.parse((ROOT / "pages" / "inversion.py").read_text(encoding="utf-8"))
    imports = [n for n in page.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    lines = [
        *map(ast.unparse, imports),
        "import sys, leakscope.dashboard.serve",
        "print(*sys.modules)",
    ]
    code = "\n".join(lines)
    found = run_python(code, check=True)
    assert "leakscope.dashboard.inversion.views" in found.stdout.split()
    assert HEAVY.isdisjoint(found.stdout.split())


@pytest.mark.slow
def test_every_page_finds_pandas_whole() -> None:
    """Plotly takes what lies in `sys.modules`: half of it, while another visitor's page imports."""
    code = """
import sys
from unittest.mock import patch
from streamlit.navigation.page import StreamlitPage
from streamlit.testing.v1 import AppTest
assert "pandas" not in sys.modules
is_whole = lambda _: print(hasattr(sys.modules.get("pandas"), "Series"))
with patch.object(StreamlitPage, "run", is_whole):
    AppTest.from_file("dashboard/app.py", default_timeout=60).run()
"""
    found = run_python(code, check=True)
    assert found.stdout.split() == ["True"]
