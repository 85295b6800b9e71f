"""The planted faults: each can be planted where it says, and its tests are there."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tools import mutate
from tools.mutate import MUTANTS, Mutant, planted

ROOT = Path(__file__).parents[1]


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) > 50


def test_the_table_in_docs_is_of_these() -> None:
    told = json.loads((ROOT / "results" / "mutants.json").read_text("utf-8"))
    assert [each["name"] for each in told] == [mutant.name for mutant in MUTANTS], (
        "run `python -m tools.mutate` with the names that are missing"
    )
    for each in told:
        about = next(mutant for mutant in MUTANTS if mutant.name == each["name"])
        assert each["is_killed"] or about.excuse, f"nothing notices {each['name']}"


def test_no_mutant_is_credited_to_what_any_edit_fails() -> None:
    """The record of versions differs after every change of the engine, be it harmless."""
    for mutant in MUTANTS:
        assert "tests/test_versions.py" not in mutant.tests or "-k" in mutant.tests, mutant.name
    told = json.loads((ROOT / "results" / "mutants.json").read_text("utf-8"))
    by_any = ("test_every_change_raised", "test_every_version_is_recorded")
    assert not [each["name"] for each in told if any(name in each["told"] for name in by_any)]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_stands_where_it_says_and_its_tests_are_there(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    changed = planted(mutant, source)
    ast.parse(changed)
    assert changed != source
    for test in mutant.tests:
        if ".py" in test:  # and no option of pytest
            path, *names = test.split("::")
            found = (ROOT / path).read_text(encoding="utf-8")
            assert all(name.partition("[")[0] in found for name in names), test


@pytest.mark.slow
def test_a_fault_that_brings_the_interpreter_down_is_noticed(tmp_path: Path) -> None:
    """Of whatever else ends a run nobody knows what the tests would have said."""
    (tmp_path / "test_it.py").write_text(
        "import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    status, told = mutate._run_tests(("test_it.py",), tmp_path)
    assert status == 1 and told == "test_it.py, where the interpreter crashes"
    (tmp_path / "test_it.py").write_text("import os\ndef test_it(): os._exit(4)\n")
    with pytest.raises(RuntimeError):
        mutate._run_tests(("test_it.py",), tmp_path)
