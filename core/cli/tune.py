"""Search an attack's best settings on held-out auxiliary texts; a stopped search resumes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from core.cli.arguments import (
    add_attack_arguments,
    add_column_arguments,
    attack_spec,
    columns_of,
    seed_number,
)
from core.cli.output import progress_line, show_json
from core.cli.sources import checked_reference
from core.cli.workers import add_worker_arguments, chosen_workers, without_folders
from core.errors import InvalidInputError

if TYPE_CHECKING:
    from core.studies.tuning import TuningStudy

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "What is finished is kept: the same command resumes."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `tune`."""
    add_attack_arguments(parser)
    parser.add_argument("--encoder", default="minilm", help="as in `study` (default: minilm)")
    parser.add_argument("--target", required=True, help="the collection under study, a file")
    add_column_arguments(parser)
    parser.add_argument("--other", default="wikipedia", help="the cross-domain corpus")
    parser.add_argument("--domain", default="in", choices=["in", "cross"],
                        help="whose texts the attacker has (default: in)")  # fmt: skip
    parser.add_argument("--n-auxiliary", type=int, default=40_000,
                        help="sentences, a fifth of them held out (default: 40000)")  # fmt: skip
    parser.add_argument("--n-validation", type=int, default=2_000,
                        help="most held-out sentences (default: 2000)")  # fmt: skip
    parser.add_argument("--trials", type=int, default=32, help="(default: 32, as C22 §4.3.3)")
    parser.add_argument("--seed", type=seed_number, default=0, help="(default: 0)")
    add_worker_arguments(parser)
    parser.add_argument(
        "--out", type=Path, required=True, help="FILE.json; .md and .parquet beside"
    )
    parser.add_argument("--json", action="store_true", help="write the rows to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Measure the trials that are not measured yet, write them all and name the best."""
    target = checked_reference(arguments.target, columns_of(arguments))
    other = checked_reference(arguments.other)
    spec = attack_spec(arguments)
    from core.store import prepared_place
    from core.studies import tuning

    study = tuning.TuningStudy(
        attack=spec.name,
        target=target,
        other=other,
        domain=arguments.domain,
        encoder=arguments.encoder,
        n_auxiliary=arguments.n_auxiliary,
        n_validation=arguments.n_validation,
        n_trials=arguments.trials,
        fixed=spec.settings,
        seed=arguments.seed,
    )
    with prepared_place(arguments.out):
        _search(arguments, study)


def _search(arguments: argparse.Namespace, study: TuningStudy) -> None:
    from core.store import cache_dir, check_writable
    from core.studies import tuning
    from core.studies.tables import table_of, write_rows

    folder = cache_dir("studies", "tuning")
    check_writable(folder)
    with progress_line() as on_progress, chosen_workers(arguments) as n_jobs:
        rows = without_folders(tuning.run(study, folder, n_jobs=n_jobs, on_progress=on_progress))
    write_rows(arguments.out, "tuning", rows, tuning.markdown(rows))
    if arguments.json:
        best = tuning.best_trial(rows)
        show_json({"best": best and best.to_dict(), **table_of("tuning", rows)})
    else:
        print(tuning.markdown(rows), end="")
    if tuning.best_trial(rows) is None:
        raise InvalidInputError("Every trial failed. The table says why.")
