"""Run a study: many measurements, resumable, in parallel processes."""

from __future__ import annotations

import argparse
import typing
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.cli.cache import add_no_cache
from leakscope.core.cli.shared.arguments import (
    Parser,
    add_column_arguments,
    add_settings,
    build_from_arguments,
    option_of,
    read_value,
    settings_given,
    takes_pairs,
)
from leakscope.core.cli.shared.output import progress_line, show_json, show_note, show_table
from leakscope.core.cli.shared.study_files import (
    file_settings,
    with_files,
    without_folder,
    without_folders,
)
from leakscope.core.cli.shared.workers import add_worker_arguments, chosen_workers
from leakscope.core.errors import InvalidInputError, MissingDependencyError, similar
from leakscope.core.specs import settings_of
from leakscope.core.studies.registry import STUDIES

if TYPE_CHECKING:
    from leakscope.core.results.rows import Row
    from leakscope.core.studies.registry import StudyEntry

EXAMPLE = "leakscope study audit --out audit.json"
WHEN_STOPPED = "Finished work is saved: the same command resumes."


class _StudyParser(Parser):
    """The parser of one study; its options are added only when that study is chosen."""

    study = ""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the study's options, then parse: importing all studies would be slow."""
        self.declare()
        return super().parse_known_args(args, namespace)

    def declare(self) -> None:
        """Add the study's options to this parser on the first call only."""
        if not self.get_default("is_declared"):
            self.set_defaults(is_declared=True)
            _add_study_options(self, STUDIES[self.study])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a subparser for each study."""
    commands = parser.add_subparsers(
        dest="name", metavar="NAME", required=True, parser_class=_StudyParser
    )
    for name, entry in STUDIES.items():
        summary = f"{entry.summary} ({entry.reference})"
        command = commands.add_parser(name, help=summary, description=summary)
        command.study = name


def options_of(name: str) -> list[str]:
    """Return the command-line options of a study, such as `--target`."""
    parser = Parser(add_help=False)
    _add_study_options(parser, STUDIES[name])
    return [option for action in parser._actions for option in action.option_strings]


def _add_study_options(parser: argparse.ArgumentParser, entry: StudyEntry) -> None:
    """Add the options of a study: its settings, columns, files, workers and outputs."""
    parser.add_argument(
        "--spec",
        metavar="FILE",
        help="JSON file with these arguments; typed arguments take precedence",
    )
    group = parser.add_argument_group("what to measure")
    add_settings(group, entry.kind)
    add_column_arguments(parser)
    parser.add_argument(
        "--files",
        type=Path,
        metavar="DIR",
        help="folder to search for files that are not at the given path",
    )
    add_worker_arguments(parser)
    add_no_cache(parser)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="FILE.json; .md, .parquet and .spec.json are written beside it",
    )
    parser.add_argument("--json", action="store_true", help="write the rows to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Measure the cells of a study that have no stored result, and write its rows."""
    from leakscope.core.storage.artifacts import output_folder

    name = arguments.name
    study = study_from(arguments, STUDIES[name].kind)
    with output_folder(arguments.out):
        _measure(arguments, name, study)


def _measure(arguments: argparse.Namespace, name: str, study: Any) -> None:
    """Run the study, write its rows, table, spec and figures, and print the table or JSON."""
    from leakscope.core.results.rows import ResultTable
    from leakscope.core.results.tables import rows_to_json, write_rows
    from leakscope.core.storage.artifacts import write_json
    from leakscope.core.storage.cache_folder import cache_dir
    from leakscope.core.studies.registry import cells_of, run_study
    from leakscope.core.studies.small_samples import notes_on_size

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
    failed = ResultTable(rows).failed
    if len(failed) < len(rows):  # otherwise keep what an earlier run wrote there
        write_rows(arguments.out, name, rows, table)
        spec = arguments.out.with_suffix(".spec.json")
        write_json(spec, spec_of(name, study), is_public=True)
        _write_figures(entry, rows, arguments.out)
    if arguments.json:
        show_json({"notes": notes, **rows_to_json(name, rows)})
    else:
        show_table(table)
    if failed:
        rest = "; the rest was written" if len(failed) < len(rows) else "; no file was written"
        raise InvalidInputError(
            f"{len(failed)} of {len(rows)} cells failed{rest}. The table shows why. The same "
            "command tries them again."
        )


def _write_figures(entry: StudyEntry, rows: Sequence[Row], out: Path) -> None:
    """Draw a study's figures from its rows as SVG files; if that fails, print a note."""
    from leakscope.core.figures.svg import write_svg

    for suffix, path in entry.figures:
        module, _, function = path.partition(":")
        drawn = getattr(import_module(module), function)(rows)
        try:
            write_svg(drawn, out.with_name(f"{out.stem}{suffix}.svg"))
        except MissingDependencyError as error:
            show_note(str(error))


def study_from(arguments: argparse.Namespace, kind: type) -> Any:
    """Build a study of a class from the parsed arguments, its settings and files checked.

    Raises
    ------
    InvalidInputError
        An unknown name, a number outside its range, or a file that cannot be read.
    """
    hints = typing.get_type_hints(kind)
    given = settings_given(arguments, kind)
    attacks = _chosen_attacks(kind, given)
    pairs = {
        name: tuple(_parse_attack_setting(pair, attacks) for pair in value)
        for name, value in given.items()
        if takes_pairs(hints[name])
    }
    study = build_from_arguments(arguments, kind, **pairs)
    return with_files(study, folder=arguments.files, text_column=arguments.text_column)


def _chosen_attacks(kind: type, given: Mapping[str, Any]) -> Sequence[str]:
    """Check the attack names among a study's arguments and return them."""
    option = "attack" if "attack" in given else "attacks"
    chosen = given.get(option, getattr(kind, option, ()))
    attacks = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    for name in attacks:
        if name not in INVERSION_ATTACKS:
            raise InvalidInputError(
                f"--{option} must be one of {', '.join(INVERSION_ATTACKS)}, got {name!r}."
                + similar(name, INVERSION_ATTACKS)
            )
    return attacks


def _parse_attack_setting(pair: str, attacks: Sequence[str]) -> tuple[str, Any]:
    """Parse `NAME=VALUE` by the type that one of the attacks declares; return name and value."""
    name, equals, text = pair.partition("=")
    if not equals:
        raise InvalidInputError(f"--set and --variant take NAME=VALUE, got {pair!r}.")
    for attack in attacks:
        kind = INVERSION_ATTACKS[attack].kind
        if name in settings_of(kind):
            return name, read_value(name, typing.get_type_hints(kind)[name], text)
    known = sorted({s for attack in attacks for s in settings_of(INVERSION_ATTACKS[attack].kind)})
    raise InvalidInputError(
        f"None of this study's attacks has a setting {name!r}; they have "
        f"{', '.join(known) or 'none'}.{similar(name, known)}"
    )


def _group_by_name(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Collect (name, value) pairs in a dictionary; a repeated name gets a list of its values."""
    found: dict[str, list[Any]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def spec_of(name: str, study: Any) -> dict[str, Any]:
    """Return a study's non-default settings as a dictionary for JSON, as `--spec` reads it."""
    spec: dict[str, Any] = {"study": name}
    hints, files = typing.get_type_hints(type(study)), file_settings(type(study))
    for setting, field in settings_of(type(study)).items():
        value = getattr(study, setting)
        if value == field.default:
            continue
        if setting in files:
            one_by_one = [value] if isinstance(value, str) else value
            named = [without_folder(each, files[setting]) for each in one_by_one]
            value = named[0] if isinstance(value, str) else named
        elif takes_pairs(hints[setting]):
            value = _group_by_name(value)
        elif isinstance(value, tuple):
            value = list(value)
        spec[option_of(setting, type(study)).removeprefix("--").replace("-", "_")] = value
    return spec
