"""One thing has one scale wherever somebody reads it: words of ten by recall, an AUC of 100."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from leakscope.core.assets import ROOT

SEEN = (
    "core/audit",
    "core/cli",
    "core/figures",
    "core/findings/deniability.py",
    "core/findings/tradeoff.py",
    "core/formatting.py",
    "core/story",
    "core/studies/leak_figures.py",
    "core/studies/tradeoff/summary.py",
    "dashboard",
    "pages",
)
"""What writes the words of pages, slides and the command line."""

OTHER_SCALE = re.compile(r"(?<!100 \* )(?<![\w.])[\w.]*(auc|control)(\.format\(|\.value:)")
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
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "format_out_of_ten"
    ]
    assert calls and not [call for call in calls if "recall" not in call[1]]


def test_an_auc_is_written_from_0_to_100_everywhere() -> None:
    for path, source in sources():
        assert not OTHER_SCALE.search(source), path
        for told in strings(source):
            is_other = re.search(r"× 100|per cent|half|0\.\d", told)
            assert "AUC" not in told or not is_other, (path, told)
