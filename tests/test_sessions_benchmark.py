"""The benchmark of many visitors would notice a wrong answer, and one that is slow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import benchmark_modules
from benchmarks.dashboard.sessions import (
    Wave,
    is_mixed,
    name,
    rows,
    sentence,
    used_gigabytes,
)


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
    answers = [(8.0, f"{sentence(i)} ls-hit") for i in range(10)]
    waves = [Wave(answers[:2], 1.25), Wave(answers[2:6], 1.5), Wave(answers[6:], 2.0)]
    few, held, waiting, more_held, mixed, more = rows(0.5, waves)
    assert few.value == 8.0 * 2 / (2 * 0.5) and waiting.value == 8.0 * 2 / (4 * 0.5)
    assert few.is_met is waiting.is_met is False and "longest 8.00 s" in few.note
    assert (held.value, more_held.value, more.value) == (1.25, 1.5, 0.5)
    assert held.is_met and more_held.is_met and more.is_met is False
    assert mixed.value == 0 and mixed.is_met and mixed.n == 10
    waves[1] = Wave([answers[2], answers[2], *answers[4:6]], 1.5)
    assert rows(2.0, waves)[4].value == 1
    assert rows(2.0, [Wave(answers[:2], 1.6), *waves[1:]])[1].is_met is False


def test_memory_counts_the_processes_that_were_started() -> None:
    alone = used_gigabytes(os.getpid())
    block = "import sys; held = b'x' * 200_000_000; print(flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", block], stdin=pipe, stdout=pipe) as other:
        assert other.stdout and other.stdout.readline()
        assert used_gigabytes(os.getpid()) > alone + 0.15
        other.communicate()


def test_every_benchmark_is_found_by_its_name() -> None:
    modules = benchmark_modules()
    assert {"alignment", "sessions"} < modules.keys()
    results = Path(__file__).parents[1] / "benchmarks" / "results.json"
    recorded = json.loads(results.read_text(encoding="utf-8"))
    assert recorded.keys() <= modules.keys(), "what was measured can be measured again"
