from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_reading import READING

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.figures.inversion import scores_beside_prior, vector_strip
from leakscope.core.figures.inversion import word_scores as plot_words
from leakscope.core.figures.style import LEAKED, MISSED, attack_look
from leakscope.core.results import RecoveredWord, Recovery


def test_every_attack_has_a_look_of_its_own() -> None:
    looks = {name: attack_look(name) for name in INVERSION_ATTACKS}
    assert len(set(looks.values())) == len({look.symbol for look in looks.values()}) == len(looks)
    assert all(entry.colour and entry.symbol for entry in INVERSION_ATTACKS.values())


def test_bars_tell_hits_from_errors_by_colour_and_shape() -> None:
    nearly = RecoveredWord("said", 0.25)
    recovery = replace(READING.recovery, runners_up=(RecoveredWord("other", 0.3), nearly))
    hit, wrong, close = plot_words(replace(READING, recovery=recovery)).data
    assert (list(hit.y), list(hit.x), hit.marker.color) == (["minister ●"], [0.75], LEAKED)
    assert (list(wrong.y), list(wrong.x)) == (["-1+1 ✕"], [0.5])
    assert wrong.marker.pattern.shape == "/"
    assert (list(close.y), close.marker.line.color) == (["said ○"], MISSED)


def test_words_are_no_markup_in_a_figure() -> None:
    words = (RecoveredWord("<b>x</b>", 0.5),)
    figure = plot_words(replace(READING, hits=(), recovery=Recovery(words)))
    assert list(figure.data[1].y) == ["&lt;b&gt;x&lt;/b&gt; ✕"]


@pytest.mark.parametrize(
    "figure",
    [plot_words(READING), scores_beside_prior([READING]), vector_strip(np.ones((1, 8)))],
    ids=["words", "comparison", "strip"],
)
def test_figures_fit_both_themes_and_never_trap_a_finger(figure) -> None:
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.dragmode is False
    assert figure.layout.xaxis.fixedrange and figure.layout.yaxis.fixedrange
    assert figure.layout.font.color is None


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
