"""Damaged input is answered in words: some hundred cases here, 10,000 by `make fuzz`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import core.cli
from core.cli import COMMANDS
from core.defences import told
from core.defences.registry import DEFENCES, all_defences
from core.defences.told import read_defence
from core.encoders import locked, shards
from core.errors import ArtifactError
from core.store import SEAL
from core.studies import kept_cells
from core.studies.registry import STUDIES
from core.vault import Lock
from tools.fuzz import __main__ as fuzz
from tools.fuzz.chains import RIGHT
from tools.fuzz.kit import Kit
from tools.fuzz.play import Case, Verdict, no_long_work, play
from tools.fuzz.readers import _cell, stored
from tools.fuzz.table import counts, write
from tools.fuzz.targets import chosen, run_target, shares, targets

ROOT = Path(__file__).parents[1]
N_CASES = 6
"""Of a target."""


@pytest.fixture
def quick() -> Iterator[None]:
    with no_long_work():
        yield


def test_damaged_input_is_answered_in_words(kit: Kit, quick: None) -> None:
    found = [v for cases in targets(kit).values() for v in run_target(cases, N_CASES, 0)]
    assert len(found) == N_CASES * len(targets(kit)) > 300
    wrong = [f"{verdict.target}, {verdict.end}: {verdict.problem}"
             for verdict in found if verdict.problem]  # fmt: skip
    assert wrong == [], "\n\n".join(wrong)
    assert {verdict.end for verdict in found} == {"done", "refused", "reached the work"}


def test_the_table_in_docs_is_of_every_target(kit: Kit) -> None:
    path = Path(__file__).parents[1] / "docs" / "results" / "fuzz.json"
    told = json.loads(path.read_text("utf-8"))
    assert {each["target"] for each in told["counts"]} == set(targets(kit))
    whole, *_ = told["command"].split("; ")  # then targets that came later
    assert whole == "python -m tools.fuzz" and told["n_cases"] >= fuzz.N_CASES


def test_every_command_and_every_study_is_a_target(kit: Kit) -> None:
    names = set(targets(kit))
    of_commands = {name.split()[0] for name in names}
    assert set(COMMANDS) | {"serve"} <= of_commands
    assert {f"study {name}" for name in STUDIES} <= names


def test_what_is_right_is_not_refused(kit: Kit, quick: None) -> None:
    from tools.fuzz.commands import lines_of

    for name, line in lines_of(kit).items():
        verdict = play(Case(name, tuple(line), files=kit.files, is_whole=True))
        assert not verdict.problem and verdict.end != "refused", verdict


def test_chains_are_drawn_whole_long_and_wrong(kit: Kit, quick: None) -> None:
    """Each command that takes a chain is given some; right ones are taken, others told why."""
    seen: list[Case] = []

    def judge(case: Case) -> Verdict:
        seen.append(case)
        return Verdict(case.target, "done")

    list(run_target(targets(kit)["chain of defences"], 300, 0, judge=judge))
    drawn = [case.words[-1].partition("=")[2] for case in seen if case.words]
    named = [{part.partition(":")[0] for part in chain.split("+")} for chain in drawn]
    assert sum(len(names & {*DEFENCES}) > 1 for names in named) > 60, "chains, not single ones"
    assert {*all_defences()} <= set().union(*named), "each defence stands in one"
    takers = {case.words[:2] if case.words[0] == "study" else case.words[0]
              for case in seen if case.words}  # fmt: skip
    assert takers == {"invert", "evaluate", "attributes", "train", "list", "privatize",
                      ("study", "tradeoff")}  # fmt: skip
    for chain in RIGHT:
        read_defence(chain)
    found = list(run_target(targets(kit)["chain of defences"], 40, 0))
    assert [verdict.problem for verdict in found if verdict.problem] == []
    assert {"refused"} < {verdict.end for verdict in found}


def test_a_chain_that_ends_in_a_traceback_is_found(
    kit: Kit, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told, "_settings", failing(KeyError("planted")))
    found = list(run_target(targets(kit)["chain of defences"], 30, 0))
    assert any(verdict.end == "traceback" and verdict.problem for verdict in found)


# The harness finds what is planted


def failing(error: BaseException) -> Any:
    def fail(*_: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("planted", "end"),
    [(ValueError("planted"), "traceback"), (KeyError("planted"), "traceback"),
     (SystemExit(1), "status 1"), (RecursionError(), "refused")],
)  # fmt: skip
def test_a_fault_of_a_command_is_found(
    planted: BaseException, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.cli.listing, "run", failing(planted))
    verdict = play(Case("list", ("list",), is_whole=True))
    assert verdict.end == end and verdict.problem


HANGS = """
import time
from contextlib import suppress
import core.cli
from tools.fuzz.play import Case, Hang, play

def run(_):
    with suppress(SUPPRESSED):
        time.sleep(50)
    time.sleep(50)

core.cli.listing.run = run
print(play(Case("list", ("list",)), patience=2.0).end)
"""


@pytest.mark.parametrize("passed_over", ["ZeroDivisionError", "Hang"])
def test_a_command_that_hangs_is_ended_and_again_where_it_passes_over_that(
    passed_over: str,
) -> None:
    """In a process of its own, which it may end."""
    code = HANGS.replace("SUPPRESSED", passed_over)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "hung\n", done.stderr


@pytest.mark.parametrize("constant", ["NaN", "Infinity", '{"a": [-Infinity]}'])
def test_what_python_alone_takes_for_json_is_found(
    constant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.cli.listing, "run", lambda _: print(constant))
    assert "--json wrote" in play(Case("list", ("list", "--json"))).problem


def test_a_cell_that_comes_back_altered_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsealed(path: Path, _: str) -> Any:
        return {k: v for k, v in json.loads(path.read_text()).items() if k != SEAL}, True

    def ends() -> list[str]:
        cases = [Case("cell", read=lambda place, n=n: _cell(place, (b"", n))) for n in range(1, 20)]
        return [play(case).end for case in cases]

    assert "done" not in ends() and "traceback" not in ends()
    monkeypatch.setattr(kept_cells, "read_sealed", unsealed)
    assert "traceback" in ends()


@pytest.mark.parametrize(
    ("target", "place"), [("vectors", shards), ("encrypted vectors", locked)], ids=str
)
def test_vectors_that_come_back_altered_are_found(
    target: str, place: Any, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problems() -> list[str]:
        cases = stored(kit)[target]
        return [v.problem for v in run_target(cases, 300, 0) if "and kept was" in v.problem]

    assert not problems()
    monkeypatch.setattr(place, "read_content", Path.read_bytes)
    monkeypatch.setattr(Lock, "seal", lambda lock, plain, context: bytes(12) + plain + bytes(16))
    monkeypatch.setattr(Lock, "open", lambda lock, sealed, context: sealed[12:-16])
    assert problems()


def test_output_that_is_no_json_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.cli.listing, "run", lambda _: print("not JSON"))
    assert "--json wrote" in play(Case("list", ("list", "--json"))).problem
    assert not play(Case("list", ("list",))).problem


@pytest.mark.parametrize(
    ("read", "end", "is_wrong"),
    [
        (lambda folder: None, "done", False),
        (failing(ArtifactError("Restore it.")), "refused", False),
        (failing(ArtifactError("")), "refused", True),
        (failing(IndexError("planted")), "traceback", True),
        (lambda folder: (folder / ".a.unfinished").touch(), "done", True),
    ],
)
def test_a_fault_of_a_reader_is_found(read: Any, end: str, is_wrong: bool) -> None:
    verdict = play(Case("reader", read=read))
    assert (verdict.end, bool(verdict.problem)) == (end, is_wrong)


def test_a_case_that_takes_the_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.fuzz.play.MOST_MEMORY", 2**27)
    for n_bytes, is_wrong in ((2**28, True), (2**24, False), (2**28, True)):
        verdict = play(Case("reader", read=lambda folder, n=n_bytes: len(b"x" * n)))
        assert verdict.end == "done" and ("MB" in verdict.problem) is is_wrong


def test_cases_are_shared_out_and_drawn_alike_each_time(kit: Kit, quick: None) -> None:
    assert shares(["a", "b", "c"], 10) == {"a": 4, "b": 3, "c": 3}
    drawn: list[list[Any]] = []
    for _ in range(2):
        seen: list[Any] = []

        def keep(case: Case, seen: list[Any] = seen) -> Verdict:
            seen.append((case.words, case.files))
            return Verdict(case.target, "done")

        assert len(list(run_target(targets(kit)["specification"], 20, 3, judge=keep))) == 20
        drawn.append(seen)
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--cases", "3"), r"--cases must be \d+ or more, one for each target, got 3"),
        (("--cases", "1", "--only", "map", "cell"), "--cases must be 2 or more"),
        (("--cases", "-5", "--only", "map"), "--cases must be 1 or more, .* got -5"),
        (("--only", "map", "maps"), "There is no target maps: choose from invert, "),
    ],
)
def test_cases_that_cannot_be_shared_out_are_refused(
    given: tuple[str, ...], says: str, kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(fuzz, "_verdicts", lambda given: _refused(given, kit))
    assert fuzz.main([*given, "--out", str(tmp_path / "out" / "fuzz.json")]) == 2
    told = capsys.readouterr().err
    assert re.match(f"error: {says}", told) and told.count("\n") == 1
    assert not (tmp_path / "out").exists(), "nothing is written"


def _refused(given: Sequence[str], kit: Kit) -> Iterator[Verdict]:
    """Share out the cases as the process of its own does, which would make a kit each time."""
    words = fuzz.parser().parse_args(given)
    shares(chosen(targets(kit), words.only), words.cases)
    yield Verdict("map", "done")


@contextmanager
def own_stdout() -> Iterator[None]:
    """Give back the standard output that the process of cases takes away from libraries."""
    before = os.dup(1)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)


def test_a_refusal_comes_through_from_the_process_that_plays(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.fuzz.kit.make_kit", lambda folder: kit)
    given = ["--cases", "1", "--only", "map", "cell"]
    with own_stdout():
        assert fuzz.main([*given, "--worker"]) == 0
    told = capfd.readouterr().out
    assert set(json.loads(told)) == {"refused"}
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat <<'END'\n{told}END\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    assert fuzz.main([*given, "--out", str(tmp_path / "fuzz.json")]) == 2
    assert capfd.readouterr().err == (
        "error: --cases must be 2 or more, one for each target, got 1. Give more cases, or name "
        "fewer targets by --only.\n"
    )
    assert not (tmp_path / "fuzz.json").exists()


def test_after_a_death_another_process_goes_on_with_the_next_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played: list[list[str]] = []

    def process(given: Sequence[str]) -> Iterator[Verdict]:
        played.append(list(given[-2:]))
        names = ["map", "cell", "story"]
        after = names.index(given[-1]) + 1 if given[-2] == "--after" else 0
        for name in names[after:]:
            yield Verdict(name, "done")
            if name == "cell":
                yield Verdict(name, "died", "the process ended with status -11")
                return

    monkeypatch.setattr(fuzz, "_of_process", process)
    assert fuzz.main(["--cases", "3", "--out", str(tmp_path / "fuzz.json")]) == 1
    assert played == [["--out", str(tmp_path / "fuzz.json")], ["--after", "cell"]]
    told = json.loads((tmp_path / "fuzz.json").read_text())
    assert [(each["target"], each["cases"], each["wrong"]) for each in told["counts"]] == [
        ("map", 1, 0), ("cell", 2, 1), ("story", 1, 0)]  # fmt: skip
    assert "cell, died: the process ended" in capsys.readouterr().err


def test_a_process_goes_on_behind_a_target(
    kit: Kit, quick: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.fuzz.kit.make_kit", lambda folder: kit)
    monkeypatch.setattr(fuzz, "bound_memory", lambda: None)
    given = ["--cases", "3", "--only", "list", "cache list", "cache clear", "--worker"]
    with own_stdout():
        assert fuzz.main([*given, "--after", "cache clear"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert {line["target"] for line in lines if "target" in line} == {"list"}


def test_the_table_is_counted(tmp_path: Path) -> None:
    verdicts = [Verdict("a", "done"), Verdict("a", "refused"), Verdict("a", "traceback", "planted"),
                Verdict("b", "reached the work")]  # fmt: skip
    assert counts(verdicts)[0] == {
        "target": "a", "cases": 3, "done": 1, "refused": 1, "reached the work": 0, "wrong": 1,
    }  # fmt: skip
    write(tmp_path / "fuzz.json", verdicts, "python -m tools.fuzz")
    told = json.loads((tmp_path / "fuzz.json").read_text())
    assert told["n_cases"] == 4 and [w["problem"] for w in told["wrong"]] == ["planted"]
    assert "4 cases; 1 were answered wrongly" in (tmp_path / "fuzz.md").read_text()
