"""Cells of a study: measured once, kept, side by side on several processes, none losing the rest.

A cell is what one measurement depends on, as JSON-able data; its result lies in a file that is
named by the cell's content. A study that was stopped or killed goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from core.errors import InvalidInputError, StoppedError
from core.protocols import OnProgress, no_progress
from core.store import read_json, write_json

__all__ = ["Cell", "Measure", "cell_key", "failures", "run_cells"]

Cell = dict[str, Any]
"""What a measurement depends on; JSON-able."""

Measure = Callable[[Cell, Path], list[dict[str, Any]]]
"""Measures a cell, with a folder for what several cells share; a function of a module."""


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
) -> list[dict[str, Any]]:
    """Return the rows of every cell, in the order of the cells.

    Parameters
    ----------
    measure : callable
        Run once a cell that has no result yet, `n_tries` times where it fails.
    folder : Path
        Of the results, and of what cells share.
    n_jobs : int
        Processes side by side; each computes in its share of the processors.

    Returns
    -------
    list of dict
        Each row holds its cell's entries, its own, and `cell_seconds`. A cell that failed each
        time has one row with `error`; it is tried anew at the next run.

    Raises
    ------
    InvalidInputError
        n_jobs or n_tries below 1, or two cells are the same.
    StoppedError
        `on_progress` asked to stop; finished cells are kept.
    """
    if n_jobs < 1 or n_tries < 1:
        raise InvalidInputError("n_jobs and n_tries must be at least 1.")
    keys = [cell_key(cell) for cell in cells]
    if len(set(keys)) < len(keys):
        raise InvalidInputError("Two cells of the study are the same.")
    results = folder / "cells"
    open_cells = [c for c, k in zip(cells, keys, strict=True) if not _path(results, k).exists()]
    failed: dict[str, str] = {}
    n_done = len(cells) - len(open_cells)
    for key, error in _finish(open_cells, measure, folder, n_jobs, n_tries):
        n_done += 1
        if error:
            failed[key] = error
        on_progress(n_done / len(cells), f"{n_done} of {len(cells)} cells are measured")
    on_progress(1.0, "Every cell was measured" + (f", {len(failed)} failed" if failed else ""))
    return [
        row
        for cell, key in zip(cells, keys, strict=True)
        for row in _rows(cell, results, key, failed)
    ]


def failures(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of cells that could not be measured."""
    return [row for row in rows if "error" in row]


def _finish(
    cells: Sequence[Cell], measure: Measure, folder: Path, n_jobs: int, n_tries: int
) -> Iterator[tuple[str, str]]:
    """Measure cells, yielding each one's key and error as it ends."""
    if n_jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield _measure(cell, measure, folder, n_tries)
        return
    from joblib import Parallel, delayed, parallel_config

    n_threads = max(1, (os.cpu_count() or 1) // n_jobs)
    with parallel_config(backend="loky", inner_max_num_threads=n_threads):
        work = (delayed(_measure)(cell, measure, folder, n_tries) for cell in cells)
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(work)


def _measure(cell: Cell, measure: Measure, folder: Path, n_tries: int) -> tuple[str, str]:
    key, error = cell_key(cell), ""
    for _ in range(n_tries):
        start = time.perf_counter()
        try:
            rows = measure(cell, folder)
        except StoppedError:
            raise
        except Exception as fault:  # one bad cell must not lose the rest
            error = f"{type(fault).__name__}: {fault}"
            continue
        seconds = round(time.perf_counter() - start, 3)
        write_json(_path(folder / "cells", key), {"cell": cell, "seconds": seconds, "rows": rows})
        return key, ""
    return key, error


def _rows(cell: Cell, results: Path, key: str, failed: dict[str, str]) -> list[dict[str, Any]]:
    if key in failed:
        return [{**cell, "error": failed[key]}]
    stored = read_json(_path(results, key))
    return [{**cell, **row, "cell_seconds": stored["seconds"]} for row in stored["rows"]]


def _path(results: Path, key: str) -> Path:
    return results / f"{key}.json"
