"""Nothing finished is lost: the disk fails at any operation, the same command runs again.

`python -m tools.faults` tries every operation with every kind of fault; here some of each command,
spread over all of them.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from core.durable import Unfinished, make_folder, remove_leftovers, unfinished, write_whole
from core.store import META, clear_leftovers, load_artifact, save_artifact
from tools.faults.commands import COMMANDS
from tools.faults.runs import measure
from tools.faults.shim import KINDS, Operation, why_not
from tools.faults.table import UPLOADS, markdown, told_of, write
from tools.faults.tries import Outcome, Share, spread
from tools.kept import Kept

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
needs_faults = pytest.mark.skipif(bool(why_not()), reason=why_not())
TRIES = int(os.environ.get("LEAKSCOPE_FAULTS", "5"))
"""Of a command; the full run has some thousand."""


@needs_faults
def test_no_fault_of_the_disk_loses_what_was_finished() -> None:
    outcomes = list(measure(list(COMMANDS), TRIES))
    assert {outcome.command for outcome in outcomes} == set(COMMANDS)
    assert {outcome.kind for outcome in outcomes} == set(KINDS)
    assert {outcome.first for outcome in outcomes} == {"done", "refused", "killed"}
    wrong = [f"{o.command}, {o.what} {o.path} ({o.at}), {o.kind}: {o.problem}"
             for o in outcomes if o.problem]  # fmt: skip
    assert wrong == [], "\n".join(wrong)


CARELESS = """
import sys
from pathlib import Path
import core.durable as durable

def careless(target, content, **_):
    target.write_bytes(content)
    return target

durable.write_whole = careless
import core.store
core.store.write_whole = careless
from tools.faults import tries
tries.main(Path(sys.argv[1]), tries.Share(("fit (tf-idf)",), 16))
"""


@needs_faults
def test_the_harness_finds_a_writer_that_is_careless(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = list(measure(["fit (tf-idf)"], 16, program=CARELESS))
    torn = [outcome for outcome in outcomes if outcome.problem]
    assert torn and {outcome.kind for outcome in torn} >= {"kill", "torn write"}


def test_tries_are_spread_over_operations_and_kinds() -> None:
    asked = [Operation("open", "a"), Operation("write", "a"), Operation("unlink", "a")]
    every = list(spread(asked, None))
    assert (2, "torn write") in every and (3, "full disk") not in every and len(every) == 10
    for most in (1, 2, 4, 9):
        some = list(spread(asked, most))
        assert len(set(some)) == most and set(some) <= set(every)
    assert {kind for _, kind in spread(asked, 6)} == set(KINDS)


def test_the_tries_are_shared_out_and_none_is_made_twice() -> None:
    asked = [Operation("open", "a"), Operation("write", "a"), Operation("unlink", "a")]
    shares = [Share(("fit",), part=part, of=2) for part in range(2)]
    made = [pair for share in shares for pair in share.of_command("fit", asked)]
    assert sorted(made) == sorted(spread(asked, None))
    going_on = Share(("fit",), known=frozenset({("fit", 2, "kill"), ("train", 1, "kill")}))
    assert Share.from_json(going_on.to_json()) == going_on
    left = list(going_on.of_command("fit", asked))
    assert (2, "kill") not in left and (1, "kill") in left and len(left) == len(made) - 1


def test_a_run_that_was_ended_goes_on_and_other_code_begins_anew(tmp_path: Path) -> None:
    path, code = tmp_path / "faults.tries.jsonl", tmp_path / "code"
    code.mkdir()
    (code / "engine.py").write_text("1")

    def kept() -> Kept[Outcome]:
        return Kept(path, Outcome, [code])

    kept().add(outcome())
    with path.open("a") as file:
        file.write('{"command": "fi')  # killed while it wrote
    again = kept()
    assert again.known == (outcome(),)
    again.add(outcome(at=2))
    assert kept().known == (outcome(), outcome(at=2))
    (code / "engine.py").write_text("2")
    other = kept()
    assert other.known == ()
    other.remove()
    assert not path.exists()


def outcome(problem: str = "", **changed: Any) -> Outcome:
    told: dict[str, Any] = {"command": "fit", "what": "write", "path": "a", "kind": "kill", "at": 1,
                            "n_operations": 7, "first": "killed", "problem": problem}  # fmt: skip
    return Outcome(**told | changed)


def test_the_table_counts_what_was_lost(tmp_path: Path) -> None:
    outcomes = [outcome(), outcome("does not go on"), outcome(kind="error", first="refused")]
    assert "| fit | 7 | 1 of 1 | 1 of 2 | – | – | – |" in markdown(told_of(outcomes))
    write(tmp_path / "faults.json", outcomes)
    told = json.loads((tmp_path / "faults.json").read_text())
    assert told["n_tries"] == 3 and [each["problem"] for each in told["lost"]] == ["does not go on"]
    assert markdown(told) == (tmp_path / "faults.md").read_text("utf-8")


def test_the_table_in_docs_is_of_every_command() -> None:
    told = json.loads((RESULTS / "faults.json").read_text("utf-8"))
    assert list(dict.fromkeys(each["command"] for each in told["counts"])) == list(COMMANDS)
    assert told["command"] == "python -m tools.faults", "every operation is tried"


def test_the_page_says_why_uploads_have_no_row() -> None:
    assert f"\n\n{UPLOADS}\n\n" in (RESULTS / "faults.md").read_text("utf-8")
    file, _, test = UPLOADS.split("`")[1].partition("::")
    assert f"def {test}(" in (ROOT / file).read_text("utf-8")


def test_a_file_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, Path.replace

    def fsync(handle: int) -> None:
        done.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")  # noqa: PTH112
        sync(handle)

    def renamed(self: Path, target: Path) -> Path:
        done.append("rename")
        return replace(self, target)

    monkeypatch.setattr("core.durable.os.fsync", fsync)
    monkeypatch.setattr(Path, "replace", renamed)
    make_folder(tmp_path / "a" / "b")
    assert done == ["folder", "folder"], "each folder that was made"
    done.clear()
    write_whole(tmp_path / "a" / "b" / "c", b"content")
    assert done == ["file", "rename", "folder"]


def test_what_a_killed_run_left_is_removed_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        Unfinished(tmp_path).path.write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    with unfinished(tmp_path) as begun:
        assert not left.exists()
        remove_leftovers(tmp_path)
        assert begun.path.exists()
    assert list(tmp_path.iterdir()) == []


def test_arrays_without_a_seal_are_leftovers(tmp_path: Path) -> None:
    import numpy as np

    save_artifact(tmp_path, {"w": np.zeros(3)}, {})
    left = tmp_path / "model-0123456789ab.safetensors"
    left.write_bytes(b"half")
    clear_leftovers(tmp_path)
    assert not left.exists() and load_artifact(tmp_path)[0]["w"].shape == (3,)
    (tmp_path / META).unlink()
    clear_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_never_takes_the_place_of_another(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with unfinished(tmp_path) as file, pytest.raises(FileExistsError):
        file.seal(tmp_path / "a", is_new=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "mine"


def test_a_training_whose_weights_are_gone_is_not_done(
    core: Any, corpus: Path, tiny_bert: Path, trained: Path
) -> None:
    (weights,) = trained.glob("model-*.safetensors")
    content = weights.read_bytes()
    given = ["train", "--encoder", f"mlm:{tiny_bert}", "--attack", "prior", "--corpus", corpus,
             "--out", trained, "--json"]  # fmt: skip
    for damaged in (None, content[:-1]):
        weights.unlink()
        if damaged is not None:
            weights.write_bytes(damaged)
        core(*given).json()
        assert weights.read_bytes() == content, "it was trained anew"


def test_a_fit_whose_weights_are_gone_is_made_anew(core: Any, corpus: Path, tmp_path: Path) -> None:
    given = ["fit", "--encoder", "tfidf", "--corpus", corpus, "--out", tmp_path / "out", "--json"]
    told = core(*given).json()
    (weights,) = (tmp_path / "out").glob("model-*.safetensors")
    weights.unlink()
    assert core(*given).json() == told and weights.exists()


def test_a_full_disk_in_a_search_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    from core.errors import StorageError
    from core.ranges import Between
    from core.studies.trials import open_trials

    with (
        pytest.raises(StorageError, match=r"No space left on device\. Free some disk space"),
        open_trials(tmp_path, {"n": Between(1, 5)}, 0),
    ):
        raise sqlite3.OperationalError("database or disk is full")
