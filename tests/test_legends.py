"""No legend lies under the title of an axis, however narrow the screen."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FIGURES = Path(__file__).parents[1] / "core" / "figures"
PRINTED = {"learning", "reconstruct"}
"""Drawn at one size, for the documents alone."""
BUILDERS = sorted({path.stem for path in FIGURES.glob("*.py")} - PRINTED - {"style"})


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_legend_that_is_not_above_its_figure_stands_at_its_foot(builder: str) -> None:
    tree = ast.parse((FIGURES / f"{builder}.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Dict):
            continue
        said = {
            ast.unparse(k): ast.unparse(v) for k, v in zip(node.keys, node.values, strict=True) if k
        }
        if "'orientation'" in said:
            assert float(said["'y'"]) >= 1 and said["'yanchor'"] == "'bottom'", said
