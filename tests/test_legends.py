"""No legend lies under the title of an axis, however narrow the screen."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from core.figures.style import BELOW
from core.figures.training_noise import utility_figure
from core.figures.training_private import exposure_figure, private_figure
from core.studies.training_summary import load_part

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
        said = {ast.unparse(k): ast.unparse(v) for k, v in zip(node.keys, node.values, strict=True)
                if k}  # fmt: skip
        if "'orientation'" in said:
            assert float(said["'y'"]) >= 1 and said["'yanchor'"] == "'bottom'", said


def test_figures_of_training_have_their_legend_at_the_foot() -> None:
    private, noise = load_part("private-training"), load_part("constrained")
    task = noise.tasks[0]
    for figure in (
        private_figure(private.of(private.tasks[0])),
        exposure_figure(private.models),
        utility_figure(noise.of(task, noise.readers_of(task)[0])),
    ):
        assert figure.layout.legend.to_plotly_json() == BELOW
