"""Studies on a Ray cluster of two nodes on this machine."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from test_runner import deadly

from leakscope.core.errors import InvalidInputError, StoppedError
from leakscope.core.results.rows import Cell, ResultTable, Row
from leakscope.core.storage.encryption import KEY, KEY_FILE, NO_CACHE, is_cache_off
from leakscope.core.studies import runner
from leakscope.core.studies.cluster import NEEDS_KEY, _run_batch, _worker_variables, ray_workers
from leakscope.core.studies.runner import run_cells

TESTS = Path(__file__).parent
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: cluster")


def where(cell: Cell, folder: Path) -> list[Row]:
    """Say on which node the cell was measured, slowly enough that both are used."""
    import ray

    time.sleep(0.4)
    row = {"node": ray.get_runtime_context().get_node_id(), "pid": os.getpid()}
    return [Row(facts=row | {"threads": os.environ.get("OMP_NUM_THREADS")})]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster of two nodes of one processor each."""
    # What the nodes' processes inherit: this folder, and no number of threads.
    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent)]))
    patch.delenv("OMP_NUM_THREADS", raising=False)
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    nodes = Cluster(
        initialize_head=True, head_node_args={**node, "include_dashboard": False}, connect=False
    )
    nodes.add_node(**node)
    nodes.wait_for_nodes()
    yield nodes.address
    nodes.shutdown()
    patch.undo()


@pytest.mark.slow
@needs_ray
def test_both_nodes_measure_and_this_process_alone_writes(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    write = runner.write_sealed
    monkeypatch.setattr(runner, "write_sealed", lambda p, d: (written.append(p), write(p, d)))
    cells = [{"x": x} for x in range(6)]
    with ray_workers(cluster) as n_jobs:
        assert n_jobs == 2
        rows = run_cells(cells, where, tmp_path, n_jobs=n_jobs)
        again = run_cells(cells, where, tmp_path, n_jobs=n_jobs)
    assert [row["x"] for row in rows] == list(range(6)) and again == rows
    assert len({row["node"] for row in rows}) == 2
    assert os.getpid() not in {row["pid"] for row in rows}
    assert {row["threads"] for row in rows} == {"1"}, "each worker keeps to its processor"
    assert len(written) == 6, "nothing is measured twice, and rows travel to the driver"


@pytest.mark.slow
@needs_ray
def test_a_worker_that_dies_is_replaced_and_one_bad_cell_loses_nothing(
    cluster: str, tmp_path: Path
) -> None:
    cells: list[Cell] = [{"x": x} for x in range(6)]
    cells[1]["dies"] = "always"
    cells[2]["dies"] = "once"
    cells[4]["is_bad"] = True
    with ray_workers(cluster) as n_jobs:
        rows = run_cells(cells, deadly, tmp_path, n_jobs=n_jobs)
    assert [row.get("y") for row in rows] == [0, None, 4, 9, None, 25]
    told = [row["error"] for row in ResultTable(rows).failed]
    assert "died" in told[0] and "cannot measure 4" in told[1]


@pytest.mark.slow
@needs_ray
def test_a_study_that_is_stopped_frees_the_cluster_and_goes_on(
    cluster: str, tmp_path: Path
) -> None:
    def stop(fraction: float, message: str) -> None:
        raise StoppedError("Stopped.")

    cells = [{"x": x} for x in range(4)]
    with ray_workers(cluster) as n_jobs:
        with pytest.raises(StoppedError):
            run_cells(cells, where, tmp_path, n_jobs=n_jobs, on_progress=stop)
        kept = len(list((tmp_path / "cells").glob("*.json")))
        rows = run_cells(cells, where, tmp_path, n_jobs=n_jobs)
    assert kept == 1 and len(rows) == 4 and not ResultTable(rows).failed


@pytest.mark.slow
@needs_ray
def test_workers_without_the_code_are_told(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def measure(cell, folder):\n    return []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    only_here = import_module("only_here")
    with (
        ray_workers(cluster) as n_jobs,
        pytest.raises(InvalidInputError, match="Install the same Leakscope on each machine"),
    ):
        run_cells([{"x": 1}, {"x": 2}], only_here.measure, tmp_path, n_jobs=n_jobs)


def cache_told(cell: Cell, folder: Path) -> list[Row]:
    """Say what a worker knows of the cache, within a cell."""
    return [Row(facts={"off": is_cache_off(), "file": os.environ.get(KEY_FILE, "")})]


@pytest.mark.slow
@needs_ray
def test_workers_are_told_of_the_cache_cell_by_cell(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(NO_CACHE, raising=False)
    with ray_workers(cluster) as n_jobs:
        monkeypatch.setenv(KEY_FILE, "key")
        (first,) = run_cells([{"x": 1}], cache_told, tmp_path / "a", n_jobs=n_jobs)
        monkeypatch.delenv(KEY_FILE)
        monkeypatch.setenv(NO_CACHE, "1")
        (second,) = run_cells([{"x": 1}], cache_told, tmp_path / "b", n_jobs=n_jobs)
        monkeypatch.delenv(NO_CACHE)
        (third,) = run_cells([{"x": 1}], cache_told, tmp_path / "c", n_jobs=n_jobs)
    assert (first["off"], first["file"]) == (False, str(tmp_path / "key"))
    assert (second["off"], second["file"]) == (True, "")
    assert (third["off"], third["file"]) == (False, "")


def test_a_worker_with_a_key_of_its_own_keeps_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "a key of this machine")
    assert _run_batch(lambda: dict(os.environ), {KEY_FILE: "/there"}).get(KEY_FILE) is None
    monkeypatch.delenv(KEY)
    assert _run_batch(lambda: dict(os.environ), {KEY_FILE: "/there"})[KEY_FILE] == "/there"
    assert KEY_FILE not in os.environ


def test_a_phrase_stays_here_and_workers_without_a_key_keep_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (KEY, KEY_FILE, NO_CACHE):
        monkeypatch.delenv(name, raising=False)
    assert _worker_variables() == {}
    monkeypatch.setenv(KEY, "a phrase")
    told = _worker_variables()
    assert told == {NEEDS_KEY: "1"} and "a phrase" not in told.values()
    assert not _run_batch(is_cache_off, told), "this machine has the key itself"
    monkeypatch.delenv(KEY)
    assert _run_batch(is_cache_off, told) and NO_CACHE not in os.environ
    monkeypatch.setenv(KEY_FILE, "/a/key")
    assert not _run_batch(is_cache_off, told)


@pytest.mark.slow
@needs_ray
def test_a_study_runs_on_local_ray_workers(
    core: Any, tmp_path: Path, small_texts: list[str]
) -> None:
    table = tmp_path / "news.csv"
    bodies = [" ".join(small_texts[i : i + 4]) for i in range(0, 200, 4)]
    table.write_text("text\n" + "\n".join(f'"{body}"' for body in bodies), encoding="utf-8")
    given = shlex.split(
        f"study encoders --target {table} --other {table} --encoders tfidf hashing "
        "--attacks probe --domains in --n-targets 10"
    )
    there = core(*given, "--ray", "local", "--jobs", 2, "--out", tmp_path / "a.json", "--json")
    rows = there.json()["rows"]
    here = core(*given, "--out", tmp_path / "b.json", "--json").json()["rows"]
    assert rows == here and len(rows) == 2 and all(row["token_set_f1"] > 60 for row in rows)


@pytest.mark.slow
@needs_ray
@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "somewhere"])
def test_a_missing_cluster_is_told_at_once(address: str) -> None:
    with (
        pytest.raises(InvalidInputError, match=r"No Ray cluster answers at .*ray start"),
        ray_workers(address),
    ):
        pass
