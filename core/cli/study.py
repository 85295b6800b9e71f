"""Run a study: many measurements, resumable, several processes side by side."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.cli.output import progress_line, show_json
from core.errors import InvalidInputError

__all__ = ["STUDIES", "add_arguments", "run"]

WHEN_STOPPED = "What is finished is kept: the same command resumes."


def _inversion(given: argparse.Namespace) -> tuple[Any, Any]:
    from core.studies import representations

    defaults = representations.RepresentationStudy(target=given.target)
    study = representations.RepresentationStudy(
        target=given.target,
        other=given.other,
        encoders=tuple(given.encoders or defaults.encoders),
        attacks=tuple(given.attacks or defaults.attacks),
        domains=tuple(given.domains),
        sizes=tuple(given.n_auxiliary),
        n_targets=given.n_targets,
        seeds=tuple(given.seeds),
        attack_settings=tuple(_settings(given.settings)),
        variants=tuple(_settings(given.variants)),
    )
    return representations, study


def _classification(given: argparse.Namespace) -> tuple[Any, Any]:
    from core.studies import classification

    defaults = classification.ClassificationStudy(target=given.target)
    study = classification.ClassificationStudy(
        target=given.target,
        title_column=given.title_column,
        label_column=given.label_column,
        other=given.other,
        encoders=tuple(given.encoders or defaults.encoders),
        domains=tuple(given.domains),
        grid=given.grid,
        seeds=tuple(given.seeds),
    )
    return classification, study


def _names(given: argparse.Namespace) -> tuple[Any, Any]:
    from core.studies import names

    defaults = names.NameStudy(target=given.target)
    study = names.NameStudy(
        target=given.target,
        other=given.other,
        names=_listed(given.names),
        encoders=tuple(given.encoders or defaults.encoders),
        attacks=tuple(given.attacks or defaults.attacks),
        domains=tuple(given.domains),
        n_auxiliary=given.n_auxiliary[0],
        n_targets=given.n_targets,
        label_column=given.label_column,
        seeds=tuple(given.seeds),
        attack_settings=tuple(_settings(given.settings)),
        is_anonymous=given.anonymous,
        sizes=tuple(given.sizes or defaults.sizes),
        name_sentences=tuple(given.name_sentences),
    )
    return names, study


STUDIES: dict[str, tuple[str, Callable[[argparse.Namespace], tuple[Any, Any]]]] = {
    "inversion": ("encoders × attacks: how much leaks (C22 Table 5.2)", _inversion),
    "classification": ("encoders: how well news is sorted (C22 Table 5.1)", _classification),
    "names": ("names of people: how often they are recovered (C22 Table 5.6)", _names),
}
"""What can be run: in a line, and what makes the study from the arguments."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `study`."""
    known = "; ".join(f"{name}: {about}" for name, (about, _) in STUDIES.items())
    parser.add_argument("name", metavar="NAME", help=known)
    parser.add_argument("--target", required=True, help="the collection under study, a file")
    parser.add_argument("--other", default="wikipedia", help="the cross-domain corpus")
    parser.add_argument("--encoders", nargs="+", help="names; all by default")
    parser.add_argument("--attacks", nargs="+", help="names (inversion)")
    parser.add_argument("--domains", nargs="+", default=["in", "cross"], choices=["in", "cross"])
    parser.add_argument("--n-auxiliary", type=int, nargs="+", default=[40_000],
                        help="sentences to train on; several make a curve")  # fmt: skip
    parser.add_argument("--n-targets", type=int, default=500, help="sentences under attack")
    parser.add_argument("--set", dest="settings", action="append", default=[],
                        metavar="NAME=VALUE", help="of every attack that has it")  # fmt: skip
    parser.add_argument("--variant", dest="variants", action="append", default=[],
                        metavar="NAME=VALUE", help="measured besides (end_token=1)")  # fmt: skip
    parser.add_argument("--title-column", default="title", help="(classification)")
    parser.add_argument("--label-column", default="label_name", help="(classification)")
    parser.add_argument("--grid", default="c22", choices=["c22", "short"], help="(classification)")
    parser.add_argument("--names", nargs="+", default=[],
                        help="people, or a file with one a line; else found (names)")  # fmt: skip
    parser.add_argument("--sizes", type=int, nargs="+", help="people in each matrix (names)")
    parser.add_argument("--name-sentences", type=int, nargs="+", default=[0, 4000],
                        help="training sentences with the names put in (names)")  # fmt: skip
    parser.add_argument("--anonymous", action=argparse.BooleanOptionalAction, default=True,
                        help="write name 1, name 2, … (names)")  # fmt: skip
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument(
        "--out", type=Path, required=True, help="FILE.json; .md and .parquet beside"
    )
    parser.add_argument("--json", action="store_true", help="write the rows to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Measure what is not measured yet and write the rows."""
    from core.store import cache_dir
    from core.studies.runner import failures
    from core.studies.tables import write_rows

    if arguments.name not in STUDIES:
        raise InvalidInputError(
            f"the study must be one of {', '.join(STUDIES)}, got {arguments.name!r}."
        )
    module, study = STUDIES[arguments.name][1](arguments)
    with progress_line() as on_progress:
        rows = module.run(
            study,
            cache_dir("studies", arguments.name),
            n_jobs=arguments.jobs,
            on_progress=on_progress,
        )
    # A file's folder is nobody's business; `contents` says which texts they were.
    rows = [row | {name: Path(row[name]).name for name in ("target", "other")} for row in rows]
    write_rows(arguments.out, arguments.name, rows, module.markdown(rows))
    if arguments.json:
        show_json({"study": arguments.name, "rows": rows})
    else:
        print(module.markdown(rows), end="")
    if failures(rows):
        raise InvalidInputError(
            f"{len(failures(rows))} of {len(rows)} cells failed; the rest is written. The table "
            "says why. The same command tries them again."
        )


def _listed(given: list[str]) -> tuple[str, ...]:
    """Return the names given, or the lines of the file that is given."""
    if len(given) == 1 and Path(given[0]).is_file():
        try:
            return tuple(Path(given[0]).read_text(encoding="utf-8-sig").splitlines())
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{given[0]} is not a text file in UTF-8: {error}.") from error
    return tuple(given)


def _settings(pairs: list[str]) -> list[tuple[str, Any]]:
    """Read NAME=VALUE pairs: numbers where they are numbers."""
    read: list[tuple[str, Any]] = []
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InvalidInputError(f"--set takes NAME=VALUE, got {pair!r}.")
        value: Any = text
        for kind in (int, float):
            try:
                value = kind(text)
                break
            except ValueError:
                continue
        read.append((name, value))
    return read
