"""Nothing finished is lost: the disk fails at any operation, the same command runs again.

`python -m tools.faults` tries every operation with every kind of fault; here some of each command,
spread over all of them.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.storage.artifacts import META, clear_leftovers, load_artifact, save_artifact
from leakscope.core.storage.atomic_files import (
    TemporaryFile,
    atomic_write,
    make_folder,
    remove_leftovers,
    unfinished,
)
from tools.faults.commands import COMMANDS
from tools.faults.runs import measure
from tools.faults.shim import KINDS, why_not
from tools.faults.tries import Outcome

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
needs_faults = pytest.mark.skipif(bool(why_not()), reason=why_not())
TRIES = int(os.environ.get("LEAKSCOPE_FAULTS", "5"))
"""Of a command; the full run has some thousand."""


@pytest.mark.slow
@needs_faults
def test_no_fault_of_the_disk_loses_what_was_finished() -> None:
    outcomes = list(measure(list(COMMANDS), TRIES))
    assert {outcome.command for outcome in outcomes} == set(COMMANDS)
    assert {outcome.kind for outcome in outcomes} == set(KINDS)
    assert {outcome.first for outcome in outcomes} == {"done", "refused", "killed"}
    wrong = [
        f"{o.command}, {o.what} {o.path} ({o.at}), {o.kind}: {o.problem}"
        for o in outcomes
        if o.problem
    ]
    assert wrong == [], "\n".join(wrong)


CARELESS = """
import sys
from pathlib import Path
import leakscope.core.storage.atomic_files as durable

def careless(target, content, **_):
    target.write_bytes(content)
    return target

durable.atomic_write = careless
import leakscope.core.storage.artifacts
leakscope.core.storage.artifacts.atomic_write = careless
from tools.faults import tries
tries.main(Path(sys.argv[1]), tries.Share(("fit (tf-idf)",), 16))
"""


@pytest.mark.slow
@needs_faults
def test_the_harness_finds_a_writer_that_is_careless(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = list(measure(["fit (tf-idf)"], 16, program=CARELESS))
    torn = [outcome for outcome in outcomes if outcome.problem]
    assert torn and {outcome.kind for outcome in torn} >= {"kill", "torn write"}


def outcome(problem: str = "", **changed: Any) -> Outcome:
    told: dict[str, Any] = {
        "command": "fit",
        "what": "write",
        "path": "a",
        "kind": "kill",
        "at": 1,
        "n_operations": 7,
        "first": "killed",
        "problem": problem,
    }
    return Outcome(**told | changed)


def test_the_table_in_docs_is_of_every_command() -> None:
    told = json.loads((RESULTS / "faults.json").read_text("utf-8"))
    assert list(dict.fromkeys(each["command"] for each in told["counts"])) == list(COMMANDS)
    assert told["command"] == "python -m tools.faults", "every operation is tried"


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

    monkeypatch.setattr("leakscope.core.storage.atomic_files.os.fsync", fsync)
    monkeypatch.setattr(Path, "replace", renamed)
    make_folder(tmp_path / "a" / "b")
    assert done == ["folder", "folder"], "each folder that was made"
    done.clear()
    atomic_write(tmp_path / "a" / "b" / "c", b"content")
    assert done == ["file", "rename", "folder"]


def test_what_a_killed_run_left_is_removed_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        TemporaryFile(tmp_path).path.write_bytes(b"half")
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
    given = shlex.split(
        f"train --encoder mlm:{tiny_bert} --attack prior --corpus {corpus} --out {trained} --json"
    )
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

    from leakscope.core.errors import StorageError
    from leakscope.core.ranges import Uniform
    from leakscope.core.studies.inversion.tuning import open_trials

    with (
        pytest.raises(StorageError, match=r"No space left on device\. Free some disk space"),
        open_trials(tmp_path, {"n": Uniform(1, 5)}, 0),
    ):
        raise sqlite3.OperationalError("database or disk is full")
