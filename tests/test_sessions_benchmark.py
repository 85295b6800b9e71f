"""The benchmark of many visitors would notice a wrong answer, and one that is slow."""

from __future__ import annotations

import inspect
import os
import pkgutil

import pytest

import benchmarks
from benchmarks.sessions import is_mixed, measure, name, rows, sentence


def test_every_visitor_has_a_sentence_of_its_own() -> None:
    assert len({sentence(i) for i in range(100)}) == 100
    assert all(name(i) in sentence(i) for i in range(100))


@pytest.mark.parametrize(
    ("told", "is_wrong"),
    [
        (f"{sentence(1)} ls-hit", False),
        (f"{sentence(1)} ls-hit {name(2)}", True),
        (f"{sentence(2)} ls-hit", True),
        (sentence(1), True),
        ("", True),
    ],
)
def test_a_mixed_or_missing_answer_is_noticed(told: str, is_wrong: bool) -> None:
    assert is_mixed(1, told, 3) is is_wrong


def test_waiting_is_held_against_one_visitor_and_the_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    answers = [(8.0, f"{sentence(i)} ls-hit") for i in range(8)]
    first, second = answers[:4], answers[4:]
    waiting, mixed, memory, more = rows(0.5, first, second, (1.25, 1.5, 2.0))
    assert waiting.value == 8.0 * 2 / (4 * 0.5) and waiting.is_met is False
    assert mixed.value == 0 and mixed.is_met and (memory.value, more.value) == (1.5, 0.5)
    assert memory.is_met and more.is_met is False and "+0.25 GB" in memory.note
    assert rows(2.0, first, [first[0], *second[1:]], (1.0, 1.0, 1.0))[1].value == 1


def test_thirty_come_at_once_unless_told_otherwise() -> None:
    assert inspect.signature(measure).parameters["n_sessions"].default == 30
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    assert "sessions" in names  # what `python -m benchmarks` finds
