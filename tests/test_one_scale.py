"""One thing has one scale wherever somebody reads it: words of ten by recall, an AUC of 100."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from core.assets import ROOT
from core.figures.training_private import private_figure
from core.story.views_many import news
from core.story.views_read import held_out_records, shipped
from core.studies.training_summary import load_part

SEEN = ("core/cli", "core/figures", "core/said.py", "core/story", "core/studies/leak_figures.py",
        "core/studies/eta_outlook.py", "core/studies/tradeoff_point.py", "dashboard",
        "pages")  # fmt: skip
"""What writes the words of pages, slides and the command line."""

OTHER_SCALE = re.compile(r"(?<!100 \* )(?<![\w.])[\w.]*(auc|control)(\.said\(|\.value:)")
"""Code that would tell an AUC from 0 to 1."""


@cache
def sources() -> tuple[tuple[Path, str], ...]:
    found = [path for place in SEEN for path in [ROOT / place, *(ROOT / place).rglob("*.py")]]
    return tuple((path, path.read_text("utf-8")) for path in found if path.suffix == ".py")


def strings(source: str) -> Iterator[str]:
    """Yield what is written in code, without what is written about it."""
    tree = ast.parse(source)
    about = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in about:
            yield node.value


def test_words_of_ten_are_counted_by_recall_alone() -> None:
    calls = [
        (path.name, ast.unparse(node.args[0]))
        for path, source in sources()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "of_ten"
    ]
    assert calls and not [call for call in calls if "recall" not in call[1]]


def test_an_auc_is_written_from_0_to_100_everywhere() -> None:
    for path, source in sources():
        assert not OTHER_SCALE.search(source), path
        for told in strings(source):
            is_other = re.search(r"× 100|per cent|half|0\.\d", told)
            assert "AUC" not in told or not is_other, (path, told)


@pytest.mark.parametrize("attack", ["mlc", "msp", "probe_mlc"])
def test_the_bars_that_ship_bear_the_f1_that_they_are_as_long_as(attack: str) -> None:
    f1 = held_out_records()[attack]["held_out"]["token_set_f1"]
    figure = shipped().figure
    assert figure is not None
    at = list(held_out_records()).index(attack)
    assert figure["layout"]["annotations"][at]["text"] == f"<b>F1 {f1:.0f}</b>"


def test_words_of_news_are_of_ten_in_a_sentence_and_f1_in_the_figure() -> None:
    figure = news().figure
    assert figure is not None and "of 10 words** (F1" in news().body
    told = [note["text"] for note in figure["layout"]["annotations"]]
    assert all(note.startswith("<b>F1 ") for note in told[:-1])
    assert told[-1].startswith("guessing alone: F1")


def test_the_figure_of_private_training_draws_its_auc_of_100() -> None:
    found = load_part("private-training")
    figure = private_figure(found.of(found.tasks[0]))
    aucs = [value for trace in figure.data if trace.yaxis == "y2" for value in trace.y]
    assert aucs and all(30 < value <= 100 for value in aucs)
