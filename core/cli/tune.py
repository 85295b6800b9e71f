"""Search an attack's best settings on held-out auxiliary texts; a stopped search resumes."""

from __future__ import annotations

import argparse
from pathlib import Path

from leakscope.core.cli.shared.arguments import (
    add_attack_arguments,
    add_column_arguments,
    add_settings,
    attack_spec,
    build_from_arguments,
    columns_of,
)
from leakscope.core.cli.shared.output import progress_line, show_json, show_table
from leakscope.core.cli.shared.sources import checked_reference
from leakscope.core.cli.shared.study_files import without_folders
from leakscope.core.cli.shared.workers import add_worker_arguments, chosen_workers
from leakscope.core.errors import InvalidInputError
from leakscope.core.studies.inversion import tuning
from leakscope.core.studies.inversion.tuning import TuningStudy

EXAMPLE = "leakscope tune --attack msp --target news.parquet --out tuned.json"
WHEN_STOPPED = "Finished work is saved: the same command resumes."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `tune` to its parser."""
    add_attack_arguments(parser)
    add_settings(parser, TuningStudy)
    add_column_arguments(parser)
    add_worker_arguments(parser)
    parser.add_argument(
        "--out", type=Path, required=True, help="FILE.json; .md and .parquet are written beside it"
    )
    parser.add_argument("--json", action="store_true", help="write the rows to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Run the trials of a search that have no stored result, write all, and print the best."""
    target = checked_reference(arguments.target, columns_of(arguments))
    other = checked_reference(arguments.other)
    spec = attack_spec(arguments)
    from leakscope.core.storage.artifacts import output_folder

    named = {"attack": spec.name, "fixed": spec.settings, "target": target, "other": other}
    study = build_from_arguments(arguments, TuningStudy, **named)
    with output_folder(arguments.out):
        _run_trials(arguments, study)


def _run_trials(arguments: argparse.Namespace, study: TuningStudy) -> None:
    """Run the search, write its rows and table, and print the table or JSON."""
    from leakscope.core.results.tables import rows_to_json, write_rows
    from leakscope.core.storage.artifacts import check_writable
    from leakscope.core.storage.cache_folder import cache_dir

    folder = cache_dir("studies", "tuning")
    check_writable(folder)
    with progress_line() as on_progress, chosen_workers(arguments) as n_jobs:
        rows = without_folders(tuning.run(study, folder, n_jobs=n_jobs, on_progress=on_progress))
    write_rows(arguments.out, "tuning", rows, tuning.markdown(rows))
    if arguments.json:
        best = tuning.best_trial(rows)
        show_json({"best": best and best.to_dict(), **rows_to_json("tuning", rows)})
    else:
        show_table(tuning.markdown(rows))
    if tuning.best_trial(rows) is None:
        raise InvalidInputError(
            "Every trial failed. The table shows why; correct the settings and try again."
        )
