"""Run a study: many measurements, resumable, several processes side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cli.arguments import Parser, add_column_arguments
from core.cli.cache import add_no_cache
from core.cli.output import progress_line, show_json, show_note
from core.cli.study_settings import add_settings, spec_of, study_from
from core.cli.workers import add_worker_arguments, chosen_workers, without_folders
from core.errors import InvalidInputError, MissingDependencyError
from core.studies.registry import STUDIES

if TYPE_CHECKING:
    from core.studies.registry import StudyEntry
    from core.studies.rows import Row

__all__ = ["FORMER_NAMES", "add_arguments", "options_of", "run", "study_name"]

WHEN_STOPPED = "What is finished is kept: the same command resumes."

FORMER_NAMES = {"inversion": "encoders"}
"""What studies were called, and are called now."""


class _StudyParser(Parser):
    """The arguments of one study: derived from its class, once it is the one that is asked for."""

    study = ""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Declare the arguments, then parse: a study's libraries are heavy."""
        self.declare()
        return super().parse_known_args(args, namespace)

    def declare(self) -> None:
        """Declare the arguments of the study, once."""
        if not self.get_default("is_declared"):
            self.set_defaults(is_declared=True)
            _declare(self, STUDIES[self.study])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the studies; each declares its arguments when it is asked for."""
    commands = parser.add_subparsers(
        dest="name", metavar="NAME", required=True, parser_class=_StudyParser
    )
    former = {now: before for before, now in FORMER_NAMES.items()}
    for name, entry in STUDIES.items():
        also = [former[name]] if name in former else []
        told = f"{entry.summary} ({entry.reference})"
        command = commands.add_parser(name, help=told, description=told, aliases=also)
        command.study = name


def study_name(name: str) -> str:
    """Return today's name of a study."""
    return FORMER_NAMES.get(name, name)


def options_of(name: str) -> list[str]:
    """Return the options of a study, such as `--target`."""
    parser = Parser(add_help=False)
    _declare(parser, STUDIES[name])
    return [option for action in parser._actions for option in action.option_strings]


def _declare(parser: argparse.ArgumentParser, entry: StudyEntry) -> None:
    parser.add_argument("--spec", metavar="FILE", help="JSON with these arguments; others win")
    group = parser.add_argument_group("what to measure")
    add_settings(group, entry.kind)  # type: ignore[arg-type]
    add_column_arguments(parser)
    parser.add_argument(
        "--files", type=Path, metavar="DIR", help="where files lie that are not found as named"
    )
    add_worker_arguments(parser)
    add_no_cache(parser)
    parser.add_argument(
        "--out", type=Path, required=True, help="FILE.json; .md, .parquet and .spec.json beside"
    )
    parser.add_argument("--json", action="store_true", help="write the rows to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Measure what is not measured yet and write the rows."""
    from core.store import prepared_place

    name = study_name(arguments.name)
    study = study_from(arguments, STUDIES[name].kind)
    with prepared_place(arguments.out):
        _measure(arguments, name, study)


def _measure(arguments: argparse.Namespace, name: str, study: Any) -> None:
    from core.store import cache_dir, write_json
    from core.studies.registry import cells_of, run_study
    from core.studies.rows import failures
    from core.studies.small_samples import notes_on_size
    from core.studies.tables import table_of, write_rows

    entry = STUDIES[name]
    folder = cache_dir("studies", entry.folder or name)
    cells = cells_of(name, study)
    notes = notes_on_size(cells)
    for note in notes:
        show_note(note)
    with progress_line() as on_progress, chosen_workers(arguments) as n_jobs:
        rows = run_study(name, study, folder, cells=cells, n_jobs=n_jobs, on_progress=on_progress)
    rows = without_folders(rows)
    table = entry.markdown(rows)
    failed = failures(rows)
    if len(failed) < len(rows):  # else what an earlier run wrote there is worth more
        write_rows(arguments.out, name, rows, table)
        spec = arguments.out.with_suffix(".spec.json")
        write_json(spec, spec_of(name, study), is_public=True)
        _draw(entry, rows, arguments.out)
    if arguments.json:
        show_json({"notes": notes, **table_of(name, rows)})
    else:
        print(table, end="")
    if failed:
        rest = "; the rest is written" if len(failed) < len(rows) else "; no file was written"
        raise InvalidInputError(
            f"{len(failed)} of {len(rows)} cells failed{rest}. The table says why. The same "
            "command tries them again."
        )


def _draw(entry: StudyEntry, rows: Sequence[Row], out: Path) -> None:
    """Write the figures of a study, or say why there is none."""
    from core.figures.svg import write_svg

    for suffix, path in entry.figures:
        module, _, function = path.partition(":")
        drawn = getattr(import_module(module), function)(rows)
        try:
            write_svg(drawn, out.with_name(f"{out.stem}{suffix}.svg"))
        except MissingDependencyError as error:
            show_note(str(error))
