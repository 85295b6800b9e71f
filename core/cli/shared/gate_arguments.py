"""Options that turn a measurement into a CI gate: thresholds, a baseline and check files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core.cli.shared.output import jsonable, show_json, show_note
from leakscope.core.errors import InvalidInputError
from leakscope.core.storage.artifacts import check_folder, read_json
from leakscope.core.storage.atomic_files import atomic_write

if TYPE_CHECKING:
    from leakscope.core.audit.gate import Check, Measured

EXIT_STATUS = """exit status: 0 if every threshold is met; 1 if the vectors leak more than allowed
(the lower end of the 95 % CI is above the limit, or F1 is significantly higher than in the
baseline); 2 if something could not be measured."""

RECOVERED_KINDS = ("names", "numbers")


def add_threshold_arguments(
    parser: argparse.ArgumentParser, kinds: Sequence[str] = RECOVERED_KINDS
) -> argparse._ArgumentGroup:
    """Add the options for thresholds and the baseline, and return their group.

    Parameters
    ----------
    kinds : sequence of str
        Kinds of words whose recovered share can be limited.
    """
    gate = parser.add_argument_group("thresholds")
    gate.add_argument(
        "--max-f1", type=percentage, metavar="F1", help="highest F1 allowed, 0 to 100"
    )
    gate.add_argument(
        "--max-recovered",
        action="append",
        default=[],
        metavar="KIND=PERCENT",
        help=f"highest share recovered of {' or '.join(kinds)}, as in {kinds[0]}=5; may be "
        "repeated",
    )
    gate.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="earlier report: fail if F1 is significantly higher",
    )
    return gate


def add_check_files(out: argparse._ArgumentGroup) -> None:
    """Add the options for JUnit and SARIF files of the checks."""
    out.add_argument("--junit", type=Path, metavar="FILE", help="the checks as JUnit XML")
    out.add_argument("--sarif", type=Path, metavar="FILE", help="the checks as SARIF 2.1.0")


def percentage(text: str) -> float:
    """Parse a text as a number between 0 and 100, or raise argparse's error."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number, got {text[:40]!r}") from error
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"must lie in [0, 100], got {text[:40]!r}")
    return value


def limits_of(
    arguments: argparse.Namespace, kinds: Sequence[str] = RECOVERED_KINDS
) -> dict[str, float]:
    """Parse the thresholds that the arguments set; return them by name: `f1` or a kind of word.

    Raises
    ------
    InvalidInputError
        `--max-recovered` of another kind, or without a percentage.
    """
    found = {} if arguments.max_f1 is None else {"f1": arguments.max_f1}
    return found | kind_limits(arguments.max_recovered, "--max-recovered", kinds)


def kind_limits(pairs: Sequence[str], option: str, kinds: Sequence[str]) -> dict[str, float]:
    """Parse thresholds such as `names=5` into a dictionary of percentages by kind.

    Raises
    ------
    InvalidInputError
        An unknown kind, or a value that is not a percentage.
    """
    found = {}
    for pair in pairs:
        kind, equals, text = pair.partition("=")
        if not equals or kind not in kinds:
            raise InvalidInputError(
                f"{option} takes KIND=PERCENT with KIND one of {', '.join(kinds)}, got {pair!r}."
            )
        try:
            found[kind] = percentage(text)
        except argparse.ArgumentTypeError as error:
            raise InvalidInputError(f"{option} {kind} {error}.") from error
    return found


def baseline_of(arguments: argparse.Namespace) -> Measured | None:
    """Read the measurements in the file that `--baseline` names; None if it was not given.

    Raises
    ------
    InvalidInputError
        There is no such file, or it is not a report.
    """
    path: Path | None = arguments.baseline
    if path is None:
        return None
    if not path.is_file():
        raise InvalidInputError(f"--baseline: {path} does not exist. Check the path.")
    return measured_in_report(
        read_json(path, "Give a file that `audit --json` or `evaluate --json` wrote.")
    )


def measured_in_report(report: Any) -> Measured:
    """Extract from an `audit` or `evaluate` report the measurements to compare with another.

    A report of `evaluate` counts as a report on the undefended encoder, so that it can be
    compared with one measured without the defence.

    Raises
    ------
    InvalidInputError
        It is not a report.
    """
    from leakscope.core.audit.gate import Measured

    if isinstance(report, dict) and "undefended_encoder" in report:
        report = {**report, "encoder": report["undefended_encoder"]}
    return Measured.of_report(report)


def check_outputs(arguments: argparse.Namespace) -> None:
    """Raise, before the work, if an output file that the arguments name cannot be written.

    Raises
    ------
    InvalidInputError
        Its folder is missing.
    MissingDependencyError
        The library that writes it is not installed.
    """
    for path in (arguments.json, arguments.junit, arguments.sarif):
        if path is not None and str(path) != "-":
            check_folder(Path(path))
    wanted = {"junitparser": arguments.junit, "sarif_pydantic": arguments.sarif}
    modules = [module for module, path in wanted.items() if path is not None]
    if modules:
        from leakscope.core.audit.formats import check_libraries

        check_libraries(*modules)


def write_report(path: Path | None, report: Any) -> None:
    """Write a report as JSON to a file or, for `-`, to standard output; nothing for None."""
    if path is None:
        return
    if str(path) == "-":
        show_json(report)
        return

    text = json.dumps(jsonable(report), ensure_ascii=False, allow_nan=False, indent=1)
    atomic_write(path, text.encode("utf-8", "backslashreplace"))


def write_checks(arguments: argparse.Namespace, source: str, checks: Sequence[Check]) -> None:
    """Write the checks as JUnit and SARIF files, if requested.

    Parameters
    ----------
    source : str
        Name of what was measured, for the files.
    """
    if arguments.junit is None and arguments.sarif is None:
        return
    from leakscope.core.audit import formats

    if arguments.junit is not None:
        atomic_write(arguments.junit, formats.junit(source, checks).encode())
    if arguments.sarif is not None:
        atomic_write(arguments.sarif, formats.sarif(source, checks).encode())
    if not checks:
        show_note("no threshold was given, so the CI files contain no check.")


def show_checks(checks: Sequence[Check]) -> None:
    """Print each check's outcome as one line."""
    for check in checks:
        print(f"  {check.outcome.value.upper()} {check.name}: {check.message}")
