"""The examples in the documentation are run, and say what they claim."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest
from source_files import ROOT, module_name, python_files

WITH_EXAMPLES = [
    path
    for path in python_files("core", "dashboard", "leakscope")
    if ">>> " in path.read_text(encoding="utf-8")
]


def test_there_are_examples() -> None:
    assert len(WITH_EXAMPLES) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_examples_hold(path: Path) -> None:
    module = import_module(module_name(path))
    failed, tried = doctest.testmod(module)
    assert tried, "an example that is never run"
    assert not failed
