"""The benchmark of many visitors would notice a wrong answer, and one that is slow."""

from __future__ import annotations

import os

import pytest

from benchmarks.sessions import is_mixed, name, rows, sentence


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
    answers = [(8.0, f"{sentence(i)} ls-hit") for i in range(4)]
    waiting, mixed, memory = rows(0.5, answers, 1.5, 0.25)
    assert waiting.value == 8.0 * 2 / (4 * 0.5) and waiting.is_met is False
    assert mixed.value == 0 and mixed.is_met and memory.value == 1.5
    assert rows(2.0, [answers[0], answers[0]], 1.0, 0.0)[1].value == 1
