"""Damaged input is answered in words: some hundred cases here, 10,000 by `make fuzz`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run_python

from leakscope.core.cli import COMMANDS, listing
from leakscope.core.defences.registry import DEFENCES, all_defences
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.encoders import encrypted_shards, shards
from leakscope.core.errors import ArtifactError
from leakscope.core.storage.encryption import Lock
from leakscope.core.studies.registry import STUDIES
from tools.fuzz import __main__ as fuzz
from tools.fuzz.commands import RIGHT
from tools.fuzz.kit import Kit
from tools.fuzz.play import Case, Verdict, no_long_work, play
from tools.fuzz.readers import stored
from tools.fuzz.targets import run_target, targets

ROOT = Path(__file__).parents[1]
N_CASES = 6
"""Of a target."""


@pytest.fixture
def quick() -> Iterator[None]:
    with no_long_work():
        yield


@pytest.mark.slow
def test_damaged_input_is_answered_in_words(kit: Kit, quick: None) -> None:
    found = [v for cases in targets(kit).values() for v in run_target(cases, N_CASES, 0)]
    assert len(found) == N_CASES * len(targets(kit)) > 300
    wrong = [
        f"{verdict.target}, {verdict.end}: {verdict.problem}"
        for verdict in found
        if verdict.problem
    ]
    assert wrong == [], "\n\n".join(wrong)
    assert {verdict.end for verdict in found} == {"done", "refused", "reached the work"}


def test_the_table_in_docs_is_of_every_target(kit: Kit) -> None:
    path = Path(__file__).parents[1] / "results" / "fuzz.json"
    told = json.loads(path.read_text("utf-8"))
    assert {each["target"] for each in told["counts"]} == set(targets(kit))
    whole, *_ = told["command"].split("; ")  # then targets that came later
    assert whole == "python -m tools.fuzz" and told["n_cases"] >= fuzz.N_CASES


def test_every_command_and_every_study_is_a_target(kit: Kit) -> None:
    names = set(targets(kit))
    of_commands = {name.split()[0] for name in names}
    assert set(COMMANDS) | {"serve"} <= of_commands
    assert {f"study {name}" for name in STUDIES} <= names


@pytest.mark.slow
def test_what_is_right_is_not_refused(kit: Kit, quick: None) -> None:
    from tools.fuzz.commands import lines_of

    for name, line in lines_of(kit).items():
        verdict = play(Case(name, tuple(line), files=kit.files, is_whole=True))
        assert not verdict.problem and verdict.end != "refused", verdict


@pytest.mark.slow
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
    takers = {
        case.words[:2] if case.words[0] == "study" else case.words[0] for case in seen if case.words
    }
    assert takers == {
        "invert",
        "evaluate",
        "attributes",
        "train",
        "list",
        "privatize",
        ("study", "tradeoff"),
    }
    for chain in RIGHT:
        read_defence(chain)
    found = list(run_target(targets(kit)["chain of defences"], 40, 0))
    assert [verdict.problem for verdict in found if verdict.problem] == []
    assert {"refused"} < {verdict.end for verdict in found}


# The harness finds what is planted


def failing(error: BaseException) -> Any:
    def fail(*_: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("planted", "end"),
    [
        (ValueError("planted"), "traceback"),
        (KeyError("planted"), "traceback"),
        (SystemExit(1), "status 1"),
        (RecursionError(), "refused"),
    ],
)
def test_a_fault_of_a_command_is_found(
    planted: BaseException, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "run", failing(planted))
    verdict = play(Case("list", ("list",), is_whole=True))
    assert verdict.end == end and verdict.problem


HANGS = """
import time
from contextlib import suppress
from leakscope.core.cli import listing
from tools.fuzz.play import Case, Hang, play

def run(_):
    with suppress(SUPPRESSED):
        time.sleep(50)
    time.sleep(50)

listing.run = run
print(play(Case("list", ("list",)), patience=2.0).end)
"""


@pytest.mark.slow
@pytest.mark.parametrize("passed_over", ["ZeroDivisionError", "Hang"])
def test_a_command_that_hangs_is_ended_and_again_where_it_passes_over_that(
    passed_over: str,
) -> None:
    """In a process of its own, which it may end."""
    code = HANGS.replace("SUPPRESSED", passed_over)
    done = run_python(code)
    assert done.stdout == "hung\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "place"), [("vectors", shards), ("encrypted vectors", encrypted_shards)], ids=str
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
