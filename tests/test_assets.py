from __future__ import annotations

import ast

import pytest
from source_files import offenders, python_files

from leakscope.core.assets import ASSETS, ROOT

FILES = python_files("core", "dashboard")


def finds_its_own_place(source: str) -> bool:
    """Return whether a file looks for others from where it lies itself."""
    return any(
        isinstance(node, ast.Name) and node.id == "__file__" for node in ast.walk(ast.parse(source))
    )


def test_what_ships_is_there() -> None:
    assert (ASSETS / "stop_words_en.txt").is_file()
    assert (ASSETS / "weights" / "minilm" / "msp" / "model.json").is_file()


@pytest.mark.slow
def test_one_file_alone_knows_where_assets_lie() -> None:
    """A file that counts folders up from itself breaks in silence when it is moved."""
    files = [path for path in FILES if path != ROOT / "core" / "assets.py"]
    assert offenders(files, lambda path: finds_its_own_place(path.read_text("utf-8"))) == {}


def test_the_check_of_places_can_fail() -> None:
    assert finds_its_own_place("HERE = Path(__file__).parents[2]")
    assert not finds_its_own_place("HERE = ASSETS / 'weights'")
