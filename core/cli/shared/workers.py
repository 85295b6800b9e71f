"""Where work runs in parallel: processes of this machine, or a Ray cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from leakscope.core.errors import InvalidInputError


def add_worker_arguments(parser: argparse.ArgumentParser, pieces: str = "cells") -> None:
    """Add the options for the number of parallel jobs and the Ray cluster."""
    group = parser.add_argument_group("workers")
    group.add_argument(
        "--jobs",
        type=int,
        help=f"number of {pieces} to run in parallel (default: 1; on a cluster: all)",
    )
    group.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="a Ray cluster: local, auto, HOST:PORT or ray://HOST:PORT; each machine needs "
        "Leakscope and the files at the same paths",
    )


@contextmanager
def chosen_workers(arguments: argparse.Namespace) -> Iterator[int]:
    """Start the chosen workers; yield how many cells to measure at once."""
    if arguments.jobs is not None and arguments.jobs < 1:
        raise InvalidInputError(f"--jobs must be at least 1, got {arguments.jobs}.")
    if arguments.ray is None:
        yield 1 if arguments.jobs is None else arguments.jobs
        return
    # This module turns Ray's usage statistics off before it imports Ray.
    from leakscope.core.studies.cluster import ray_workers

    with ray_workers(arguments.ray, arguments.jobs) as n_jobs:
        yield n_jobs
