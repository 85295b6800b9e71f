"""Cells of a study: measured once, kept, side by side on several processes, none losing the rest.

A cell is what one measurement depends on, as JSON-able data; its result lies in a file that is
named by the cell's content. A study that was stopped or killed goes on where it was. Cells run in
processes of this machine, or where `core.studies.cluster` says.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from core.errors import ArtifactError, InvalidInputError, StoppedError
from core.protocols import OnProgress, no_progress
from core.store import check_writable
from core.studies.kept_cells import keep_cell, read_cell
from core.studies.provenance import Stopwatch
from core.studies.rows import Cell, Row

__all__ = ["LOST", "Measure", "cell_key", "run_cells", "use_backend"]

Measure = Callable[[Cell, Path], Sequence[Row]]
"""Measures a cell, with a folder for what several cells share; a function of a module."""

LOST = None
"""What a backend returns in place of an outcome when the process of a cell died each time."""

_LOOK_EVERY = 0.5
"""Seconds after which a worker notices that it was left alone."""

_BACKEND: ContextVar[Any] = ContextVar("backend", default=None)


@dataclass(frozen=True)
class _Outcome:
    """What came of a cell, on its way from the process that measured it to the one that writes."""

    key: str
    seconds: float = 0.0
    rows: tuple[dict[str, Any], ...] = ()
    error: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)


@contextmanager
def use_backend(backend: Any) -> Iterator[None]:
    """Let cells run on a joblib backend of another kind than processes of this machine."""
    token = _BACKEND.set(backend)
    try:
        yield
    finally:
        _BACKEND.reset(token)


def cell_key(cell: Cell) -> str:
    """Return the name of a cell's result: equal content gives equal names.

    Examples
    --------
    >>> cell_key({"a": 1, "b": 2}) == cell_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(cell, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def run_cells(
    cells: Sequence[Cell],
    measure: Measure,
    folder: Path,
    *,
    n_jobs: int = 1,
    n_tries: int = 2,
    on_progress: OnProgress = no_progress,
) -> list[Row]:
    """Return the rows of every cell, in the order of the cells.

    Parameters
    ----------
    measure : callable
        Run once a cell that has no result yet, `n_tries` times where it fails or its process dies.
    folder : Path
        Of the results, which this process alone writes, and of what cells share. On other machines
        the latter lies at the same path, on each machine's own disk.
    n_jobs : int
        Processes side by side; each computes in its share of the processors.

    Returns
    -------
    list of Row
        Each with its cell, its seconds and where it comes from. A cell that failed each time has
        one row with `error`; it is tried anew at the next run.

    Raises
    ------
    InvalidInputError
        n_jobs or n_tries below 1, or two cells are the same.
    ArtifactError
        A finished cell is damaged, which is told before any is measured.
    StorageError
        What is measured could not be kept, which is told before any is.
    StoppedError
        `on_progress` asked to stop; finished cells are kept.
    """
    if n_jobs < 1 or n_tries < 1:
        raise InvalidInputError("n_jobs and n_tries must be at least 1.")
    keys = [cell_key(cell) for cell in cells]
    if len(set(keys)) < len(keys):
        raise InvalidInputError("Two cells of the study are the same.")
    results = folder / "cells"
    by_key = dict(zip(keys, cells, strict=True))
    found = _finished(by_key, results)
    open_cells = [cell for key, cell in by_key.items() if key not in found]
    if open_cells:
        check_writable(results)
    # Closed at once where it is left early, or workers go on with what nobody waits for.
    with closing(_finish(open_cells, measure, folder, n_jobs, n_tries)) as outcomes:
        for outcome in outcomes:
            cell = by_key[outcome.key]
            found[outcome.key] = _kept(outcome, cell, _path(results, outcome.key))
            on_progress(len(found) / len(cells), f"{len(found)} of {len(cells)} cells are measured")
    rows = [row for key in keys for row in found[key]]
    n_failed = sum(bool(row.error) for row in rows)
    on_progress(1.0, "Every cell was measured" + (f", {n_failed} failed" if n_failed else ""))
    return rows


def _finished(cells: Mapping[str, Cell], results: Path) -> dict[str, list[Row]]:
    """Return the rows of each cell that was measured before, or say which are damaged."""
    found: dict[str, list[Row]] = {}
    damaged: dict[str, ArtifactError] = {}
    for key, cell in cells.items():
        path = _path(results, key)
        if path.exists():
            try:
                found[key] = read_cell(path, cell)
            except ArtifactError as error:
                damaged[path.name] = error
    if damaged:
        (_, first), *others = damaged.items()
        also = f" So with {', '.join(name for name, _ in others)}." if others else ""
        raise ArtifactError(f"{first}{also}") from first
    return found


def _kept(outcome: _Outcome, cell: Cell, path: Path) -> list[Row]:
    """Write what was measured and return it as it reads back, or the row of a failure."""
    if outcome.error:
        return [Row(cell, error=outcome.error)]
    keep_cell(path, cell, outcome.rows, seconds=outcome.seconds, provenance=outcome.provenance)
    return read_cell(path, cell)


def _finish(
    cells: Sequence[Cell], measure: Measure, folder: Path, n_jobs: int, n_tries: int
) -> Generator[_Outcome]:
    """Measure cells, yielding what came of each as it ends."""
    work = partial(_measure, measure=measure, folder=folder, n_tries=n_tries)
    if _BACKEND.get() is None and (n_jobs == 1 or len(cells) < 2):
        yield from map(work, cells)
        return
    waiting = {cell_key(cell): cell for cell in cells}
    while waiting:
        try:
            for outcome in _side_by_side(list(waiting.values()), work, n_jobs):
                if outcome is not LOST:
                    del waiting[outcome.key]
                    yield outcome
        except BrokenProcessPool:
            # Cells are begun in order, n_jobs at a time: likely one of these took its process
            # down. If not, the next round breaks as well and comes nearer to it.
            for key in list(waiting)[:n_jobs]:
                yield _alone(waiting.pop(key), work, n_tries)
            continue
        for key in waiting:
            yield _died(key, n_tries)
        return


def _side_by_side(
    cells: Sequence[Cell], work: Callable[[Cell], _Outcome], n_jobs: int
) -> Iterator[_Outcome | None]:
    from joblib import Parallel, delayed, parallel_config

    backend = _BACKEND.get()
    config: dict[str, Any] = {}
    if backend is None:
        backend = "loky"
        config = {
            "inner_max_num_threads": max(1, (os.cpu_count() or 1) // n_jobs),
            "initializer": _end_with,
            "initargs": (os.getpid(),),
        }
    with parallel_config(backend=backend, **config):
        outcomes = Parallel(
            n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs"
        )(delayed(work)(cell) for cell in cells)
    yield from outcomes


def _end_with(parent: int) -> None:
    """Have this worker end when the process that started it has; loky's go on for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def _alone(cell: Cell, work: Callable[[Cell], _Outcome], n_tries: int) -> _Outcome:
    """Measure a cell with no other beside it, so that its death is its own."""
    for _ in range(n_tries):
        try:
            outcomes = list(_side_by_side([cell], work, 2))
        except BrokenProcessPool:
            continue
        if outcomes[0] is not LOST:
            return outcomes[0]
    return _died(cell_key(cell), n_tries)


def _died(key: str, n_tries: int) -> _Outcome:
    told = f"its process died {n_tries} times: killed, or out of memory. Try fewer at once."
    return _Outcome(key, error=told)


def _measure(cell: Cell, measure: Measure, folder: Path, n_tries: int) -> _Outcome:
    key, error = cell_key(cell), ""
    for _ in range(n_tries):
        watch, start = Stopwatch(), time.perf_counter()
        try:
            # What is no JSON is found here, as this cell's fault.
            rows = json.loads(json.dumps([row.to_dict() for row in measure(cell, folder)]))
        except StoppedError:
            raise
        except Exception as fault:  # one bad cell must not lose the rest
            error = f"{type(fault).__name__}: {fault}"
            continue
        seconds, found = round(time.perf_counter() - start, 3), watch.provenance()
        return _Outcome(key, seconds, tuple(rows), provenance=found.to_dict())
    return _Outcome(key, error=error)


def _path(results: Path, key: str) -> Path:
    return results / f"{key}.json"
