"""Figures with an interval that the documentation prints are figures of a result file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGES = [ROOT / "README.md", RESULTS / "README.md"]
SAID = re.compile(r"\**(\d+(?:\.\d+)?)\**(?: %)? \[(\d+(?:\.\d+)?), (\d+(?:\.\d+)?)\]")


def scores(entries: Any) -> set[tuple[float, float, float]]:
    """Return every (value, low, high) of a result file, however deep it lies."""
    found = set()
    if isinstance(entries, dict):
        for name, value in entries.items():
            ends = entries.get(f"{name}_ci95")
            if name == "value" and "ci95" in entries:
                ends = entries["ci95"]
            if ends and isinstance(value, int | float):
                found.add((value, *ends))
        entries = entries.values()
    elif not isinstance(entries, list):
        return found
    return found.union(*map(scores, entries))


def known() -> set[tuple[float, float, float]]:
    files = [*RESULTS.glob("*.json"), *(ROOT / "assets").glob("*/*.json")]
    return set().union(*(scores(json.loads(path.read_text("utf-8"))) for path in files))


def printed(text: str) -> list[tuple[str, str, str]]:
    return SAID.findall(text)


def stands_in(said: tuple[str, str, str], measured: set[tuple[float, float, float]]) -> bool:
    """Return whether the three figures, rounded as they are printed, are those of one score."""
    digits = [len(figure.partition(".")[2]) for figure in said]
    return any(
        all(
            f"{value:.{n}f}" == figure for value, figure, n in zip(score, said, digits, strict=True)
        )
        for score in measured
    )


@pytest.fixture(scope="module")
def measured() -> set[tuple[float, float, float]]:
    return known()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_figure_with_an_interval_was_measured(
    page: Path, measured: set[tuple[float, float, float]]
) -> None:
    said = printed(page.read_text(encoding="utf-8"))
    assert len(said) > 10
    assert [figures for figures in said if not stands_in(figures, measured)] == []


def test_readme_is_short() -> None:
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) <= 160


def test_the_check_of_figures_can_fail() -> None:
    assert printed("**3.5** [3.1, 3.9] and 89 % [85, 93]") == [
        ("3.5", "3.1", "3.9"), ("89", "85", "93")
    ]  # fmt: skip
    assert stands_in(("3.5", "3.1", "3.9"), {(3.51, 3.14, 3.9)})
    assert not stands_in(("3.5", "3.1", "3.9"), {(3.51, 3.14, 4.0), (3.6, 3.1, 3.9)})
    assert scores([{"f1": 2, "f1_ci95": [1, 3]}, {"x": {"value": 5, "ci95": [4, 6]}}]) == {
        (2, 1, 3), (5, 4, 6)
    }  # fmt: skip
