"""A number with its interval: one class, one way to print it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from source_files import offenders, parse_file, python_files, relative_name

from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Row

FILES = python_files("core", "dashboard", "leakscope", "pages")
KEPT = {"Score", "Scores"}
"""The number with its interval, and the flat record of an evaluation, whose JSON stays."""
_DOUBT = re.compile(r"ci95|(^|_)interval($|_)")
_IN_HOVER = re.compile(r"\[%\{[^}]+\}, ?%\{[^}]+\}\]")


def doubles(tree: ast.AST) -> list[str]:
    """Return the classes of a file, but for those kept, that hold a number and its interval."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name in KEPT:
            continue
        fields = [
            (field.target.id, re.findall(r"\w+", ast.unparse(field.annotation)))
            for field in node.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        ]
        has_doubt = any(_DOUBT.search(name) or "Interval" in words for name, words in fields)
        has_number = any(words in (["float"], ["float", "None"]) for _, words in fields)
        if has_doubt and has_number:
            found.append(node.name)
    return found


def bounds(node: ast.AST) -> Iterator[ast.Attribute]:
    """Yield where an expression asks for a bound of something."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr in ("low", "high"):
            yield part


def is_spelt_out(told: ast.JoinedStr) -> bool:
    """Return whether an f-string writes two numbers as an interval, whatever they are called."""
    parts = [*told.values, ast.Constant("")]
    for before, one, between, two, after in zip(*(parts[i:] for i in range(5)), strict=False):
        words = [p.value for p in (before, between, after) if isinstance(p, ast.Constant)]
        numbers = [p for p in (one, two) if isinstance(p, ast.FormattedValue) and p.format_spec]
        if len(words) != 3 or len(numbers) != 2:
            continue
        start, link, end = map(str, words)
        if start.endswith("[") and link == ", " and end.startswith("]"):
            return True
        if start.endswith("interval ") and re.fullmatch(r" ?%? to ", link):
            return True
    return False


def spelt(tree: ast.AST) -> list[str]:
    """Return the texts of a file that write an interval by hand."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            values = [v.value for v in node.values if isinstance(v, ast.FormattedValue)]
            if any(any(bounds(value)) for value in values) or is_spelt_out(node):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Constant) and _IN_HOVER.search(str(node.value)):
            found.append(str(node.value))
    return found


@pytest.mark.slow
def test_a_number_with_its_interval_is_a_score() -> None:
    found = offenders(FILES, lambda path: doubles(parse_file(path)))
    assert found == {}, "let it hold a leakscope.core.results.Score"


@pytest.mark.slow
def test_an_interval_is_written_by_its_own_class() -> None:
    files = [path for path in FILES if relative_name(path) != "core/results/scores.py"]
    found = offenders(files, lambda path: spelt(parse_file(path)))
    assert found == {}, "take Score.format, Interval.format or str(Interval)"


@pytest.mark.parametrize(
    "fields",
    [
        "value: float\n ci95: Interval",
        "value: float | None\n ci95: tuple[float, float]",
        "bounds: Interval | None\n share: float",
        "linked: float\n linked_ci95: Interval",
    ],
)
def test_another_class_for_it_is_found(fields: str) -> None:
    assert doubles(ast.parse(f"class Other:\n {fields}")) == ["Other"]
    assert doubles(ast.parse(f"class Score:\n {fields}")) == []


def test_bounds_and_scores_alone_are_no_second_class() -> None:
    assert doubles(ast.parse("class A:\n score: Score\n seconds: float")) == []
    assert doubles(ast.parse("class A:\n limits: dict[str, Interval]\n k: int")) == []


@pytest.mark.parametrize(
    "text",
    [
        'f"{score.ci95.low:.1f} to"',
        'f"from {a.low} on"',
        'f"{v:.1f} [{lo:.1f}, {hi:.1f}] of"',
        'f"95 % interval {lo:.0%} to {hi:.0%}"',
        'f"{100 * x.high:.0f}"',
        '"F1 %{y} [%{customdata[1]:.1f}, %{customdata[2]:.1f}]"',
    ],
)
def test_an_interval_written_by_hand_is_found(text: str) -> None:
    assert spelt(ast.parse(text))


@pytest.mark.parametrize(
    "text", ['f"{low:g} to {high:g}"', 'f"{score.format()}, {name.lower()}"', '"[%{y}]"']
)
def test_other_texts_may_hold_two_numbers(text: str) -> None:
    assert spelt(ast.parse(text)) == []


def test_a_score_comes_back_from_a_flat_record() -> None:
    score = Score(41.5, Interval(40.0, 43.25), 300, 6.0)
    flat = {**score.to_record("token_set_f1"), "n": 300, "prior_f1": 6.0}
    assert list(flat)[:2] == ["token_set_f1", "token_set_f1_ci95"]
    assert flat["token_set_f1_ci95"] == [40.0, 43.25]
    assert Score.of_record(flat, "token_set_f1", chance="prior_f1") == score
    with pytest.raises(KeyError):
        Score.of_record(flat, "recall")
    with pytest.raises((TypeError, ValueError)):
        Score.of_record(flat | {"token_set_f1_ci95": [1.0]}, "token_set_f1")


def test_a_score_comes_back_whole() -> None:
    for score in (
        Score(5.0, n=10, chance=1.0),
        Score(5.0, Interval(1.0, 9.0), 10, 1.0, n_seeds=3, n_trials=99),
    ):
        assert Score.from_dict(score.to_dict()) == score
        row = Row(scores={"bleu": score}, facts={"n": 10})
        assert Row.from_dict(row.to_dict()).scores["bleu"] == score
