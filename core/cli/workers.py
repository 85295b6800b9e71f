"""Where the cells of a study run: in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from core.cli.study_files import bare
from core.errors import InvalidInputError
from core.studies.rows import Cell, Row

__all__ = ["add_worker_arguments", "chosen_workers", "without_folders"]


def add_worker_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what chooses the workers."""
    group = parser.add_argument_group("workers")
    group.add_argument("--jobs", type=int, help="cells side by side (default: 1; on a cluster all)")
    group.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="a Ray cluster: local, auto, HOST:PORT or ray://HOST:PORT; each machine needs "
        "Leakscope and the files at the same paths",
    )


@contextmanager
def chosen_workers(arguments: argparse.Namespace) -> Iterator[int]:
    """Give the number of cells to measure at once, on the workers that were chosen."""
    if arguments.jobs is not None and arguments.jobs < 1:
        raise InvalidInputError(f"--jobs must be at least 1, got {arguments.jobs}.")
    if arguments.ray is None:
        yield 1 if arguments.jobs is None else arguments.jobs
        return
    # One module: Ray is told before it is imported to send no statistics.
    from core.studies.cluster import ray_workers

    with ray_workers(arguments.ray, arguments.jobs) as n_jobs:
        yield n_jobs


def without_folders(rows: Sequence[Row]) -> list[Row]:
    """Name files without their folders, which are nobody's business.

    What texts they were, `contents` says.
    """
    return [replace(row, cell={**row.cell, **_shortened(row.cell)}) for row in rows]


_HELD = {
    "target": "target",
    "other": "corpus",
    "encoder": "encoder",
    "tasks": "labelled",
    "task": "labelled",
    "attributes": "attributes",
    "pairs": "pairs",
    "searches": "searches",
    "auxiliary": "corpus",
    "shipped_texts": "corpus",
    "corpus": "texts",
    "texts": "target",
}
"""What entries of a cell hold that name files."""


def _shortened(cell: Cell) -> Cell:
    short: Cell = {}
    for name, holds in _HELD.items():
        told = cell.get(name)
        if isinstance(told, str):
            short[name] = bare(told, holds)
        elif told is not None:
            short[name] = [bare(each, holds) for each in told]
    return short
