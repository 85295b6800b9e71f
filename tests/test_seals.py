"""Cells are sealed: what was altered is refused by name, and says what alone is measured again."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_runner
from test_runner import trace

from leakscope.core.errors import ArtifactError
from leakscope.core.results import Score, provenance
from leakscope.core.results.provenance import Provenance, Stopwatch, describe_measured
from leakscope.core.results.rows import Cell, Row
from leakscope.core.results.tables import read_rows, rows_from_json, rows_to_json, write_rows
from leakscope.core.storage.artifacts import read_sealed, write_sealed
from leakscope.core.studies.runner import cell_key, run_cells

CELLS: list[Cell] = [{"x": x, "settings": {"b": 1.5, "a": [x, "ü"]}} for x in range(3)]


def squared(cell: Cell, folder: Path) -> list[Row]:
    """Measure a cell and leave a trace of each time that it ran."""
    test_runner.squared(cell, folder)
    return [Row(scores={"y": Score(cell["x"] ** 2 + 0.1, n=7)}, facts={"n": 7})]


def place(folder: Path, cell: Cell) -> Path:
    return folder / "cells" / f"{cell_key(cell)}.json"


def test_what_is_sealed_comes_back_and_what_was_changed_does_not(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    data = {"numbers": {2: float("nan"), 10: 0.1}, "words": ("\ud800", "ü"), "n": None}
    write_sealed(path, data)
    found = read_sealed(path)
    assert found["numbers"]["10"] == 0.1 and found["words"] == ["\ud800", "ü"]
    path.write_text(path.read_text().replace("0.1", "0.2"))
    with pytest.raises(ArtifactError, match=r"a\.json was altered"):
        read_sealed(path)
    path.write_text('{"n": 1}')
    with pytest.raises(ArtifactError, match="has lost its seal"):
        read_sealed(path)


def edited(path: Path) -> str:
    return path.read_text().replace("0.1", "9.1")


def without_seal(path: Path) -> str:
    return json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "seal"})


DAMAGES: dict[str, Callable[[Path], str]] = {
    "edited": edited,
    "its time edited": lambda path: path.read_text().replace('"begun": "2', '"begun": "1'),
    "truncated": lambda path: path.read_text()[:-20],
    "empty": lambda path: "",
    "without its seal": without_seal,
    "without anything": lambda path: "{}",
    "of another cell": lambda path: place(path.parents[1], CELLS[1]).read_text(),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_cell_that_was_altered_is_refused_and_alone_measured_again(
    tmp_path: Path, how: str
) -> None:
    run_cells(CELLS, squared, tmp_path)
    bad = place(tmp_path, CELLS[0])
    before = bad.read_text()
    bad.write_text(DAMAGES[how](bad))
    assert bad.read_text() != before
    with pytest.raises(ArtifactError) as told:
        run_cells(CELLS, squared, tmp_path)
    assert str(bad) in str(told.value) and "this cell alone is measured again" in str(told.value)
    assert trace(tmp_path) == ["0", "1", "2"]
    bad.rename(tmp_path / "aside.json")
    assert [row["y"]["value"] for row in run_cells(CELLS, squared, tmp_path)] == [0.1, 1.1, 4.1]
    assert trace(tmp_path) == ["0", "1", "2", "0"]


def test_all_damaged_cells_are_told_before_anything_is_measured(tmp_path: Path) -> None:
    run_cells(CELLS[:2], squared, tmp_path)
    damaged = [place(tmp_path, cell) for cell in CELLS[:2]]
    for path in damaged:
        path.write_text(edited(path))
    with pytest.raises(ArtifactError) as told:
        run_cells(CELLS, squared, tmp_path)
    assert all(path.name in str(told.value) for path in damaged)
    assert trace(tmp_path) == ["0", "1"], "hours of work would have come before the refusal"


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_cell_tells_when_by_what_and_where_it_was_measured(tmp_path: Path, n_jobs: int) -> None:
    rows = run_cells(CELLS, squared, tmp_path, n_jobs=n_jobs)
    again = run_cells(CELLS, squared, tmp_path)
    assert [row.provenance for row in again] == [row.provenance for row in rows]
    for row in rows:
        found = row.provenance
        assert found is not None and row.seconds is not None
        assert found.begun.startswith("20") and found.begun.endswith("+00:00")
        assert {"leakscope", "python", "numpy", "scikit-learn", "torch"} <= found.versions.keys()
        assert found.machine.keys() == {"chip", "n_cpus", "device"} and found.machine["chip"]
        assert "torch" in found.backends
    assert [cell_key(row.cell) for row in rows] == [cell_key(cell) for cell in CELLS]


def _git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_the_commit_is_told_and_whether_files_were_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        _git(tmp_path, "init")
    except OSError:
        pytest.skip("there is no git here")
    (tmp_path / "a.py").write_text("x = 1\n")
    _git(tmp_path, "add", "a.py")
    _git(tmp_path, "commit", "-m", "one")
    look = provenance._git_commit.__wrapped__
    commit, is_changed = look(tmp_path)
    assert len(commit) == 12 and not is_changed
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert look(tmp_path) == (commit, False), "a hook's repository does not mislead"
    (tmp_path / "a.py").write_text("x = 2\n")
    assert look(tmp_path) == (commit, True)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look(tmp_path) == ("", False), "without git nothing fails"


def test_without_a_checkout_or_with_a_broken_one_nothing_fails(tmp_path: Path) -> None:
    look = provenance._git_commit.__wrapped__
    assert look(tmp_path) == ("", False)
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert look(tmp_path) == ("", False)


def row(begun: str, chip: str = "a chip", **more: Any) -> Row:
    found = Provenance(begun, {"leakscope": "0.1.0"}, machine={"chip": chip, "n_cpus": 2})
    return Row({"x": begun}, {}, {"n": 1}, provenance=found, **more)


def test_a_table_tells_once_what_all_rows_share(tmp_path: Path) -> None:
    rows = [row("2026-01-01"), row("2026-01-02"), Row({"x": 3}, error="failed")]
    table = rows_to_json("dice", rows)
    assert len(table["provenances"]) == 1
    assert all("provenance" not in each for each in table["rows"])
    assert [each.get("cell_begun") for each in table["rows"]] == ["2026-01-01", "2026-01-02", None]
    write_rows(tmp_path / "t.json", "dice", rows, "a table")
    back = read_rows(tmp_path / "t.json", "dice")
    assert [each.provenance for each in back] == [each.provenance for each in rows]


def test_rows_of_different_origins_name_their_own(tmp_path: Path) -> None:
    rows = [
        row("2026-01-01"),
        row("2026-01-02", "another"),
        row("2026-01-03"),
        Row({"x": 4}),
    ]
    table = rows_to_json("dice", rows)
    assert [each["provenance"] for each in table["rows"]] == [0, 1, 0, None]
    back = rows_from_json(json.loads(json.dumps(table)))
    assert [each.provenance for each in back] == [each.provenance for each in rows]
    said = describe_measured(each.provenance for each in back)
    assert said == (
        "measured from 2026-01-01 to 2026-01-03 by Leakscope 0.1.0 on 2 cores of a chip and "
        "2 cores of another"
    )
    some = rows_to_json("dice", [row("2026-01-01"), Row({"x": 4})])
    assert [each.provenance is None for each in rows_from_json(some)] == [False, True]


@pytest.mark.parametrize("bad", [{"provenances": [3]}, {"provenances": {"a": 1}}])
def test_a_table_with_damaged_origins_is_refused_by_name(tmp_path: Path, bad: Any) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"study": "dice", "rows": [{"x": 1, "provenance": 0}], **bad}))
    with pytest.raises(ArtifactError, match=r"t\.json"):
        read_rows(path, "dice")


def test_the_command_tells_where_its_rows_come_from(
    core: Any, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "t.json"
    given = shlex.split(
        f"study encoders --target {corpus} --other {corpus} --encoders hashing "
        f"--attacks prior --n-targets 10 --out {out} --json"
    )
    told = core(*given).json()
    again = core(*given).json()
    assert told.pop("notes") == again.pop("notes") != []
    assert told == json.loads(out.read_text()) == again
    (found,) = told["provenances"]
    assert found["versions"]["leakscope"] and found["machine"]["n_cpus"]
    assert all(each["cell_begun"] for each in told["rows"])
    assert Stopwatch().provenance().versions == found["versions"]
