"""Measure what leaks from vectors of your own: a file or a vector store."""

from __future__ import annotations

import argparse
import json
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.cli.arguments import add_column_arguments, columns_of, seed_number, whole_number
from core.cli.output import jsonable, progress_line, show_json, show_note
from core.cli.sources import checked_columns
from core.errors import InvalidInputError
from core.store import check_folder, read_json

if TYPE_CHECKING:
    from core.audit.audit import AuditReport
    from core.audit.gate import Check, Measured

WHEN_STOPPED = "Nothing was written, and the source is as it was."

_EXIT = """exit status: 0 where every threshold is met; 1 where the vectors leak more than is
allowed, so that the lower end of the 95 %% interval lies above the limit, or F1 is significantly
higher than in the baseline; 2 where something could not be measured."""

_RECOVERED = ("names", "numbers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `audit`."""
    parser.epilog = _EXIT
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a file of vectors (.npy, .npz, .safetensors, .faiss, .parquet, .csv, .jsonl), or a "
        "store: chroma:FOLDER#COLLECTION, lancedb:…, milvus:…, pgvector:…, qdrant:…, weaviate:…; "
        "`list` shows an example of each",
    )
    parser.add_argument(
        "--texts",
        type=Path,
        metavar="FILE",
        help="what the vectors were made from, a text a row (default: the texts in the source)",
    )
    add_column_arguments(parser)
    group = parser.add_argument_group("what is measured")
    group.add_argument(
        "--encoder", help="encoder of the vectors: minilm, st:ID, mlm:ID (default: identified)"
    )
    group.add_argument(
        "--candidate",
        dest="candidates",
        action="append",
        default=[],
        metavar="ENCODER",
        help="possible encoder, besides the bundled one; may be repeated",
    )
    group.add_argument("--attack", help="default: the strongest that ships for the encoder")
    group.add_argument(
        "--sample",
        type=lambda text: whole_number(text, low=30),
        default=1_000,
        metavar="N",
        help="rows to attack, drawn at random; all are read and checked (default: 1000)",
    )
    group.add_argument(
        "--seed", type=seed_number, default=0, help="random seed of the sample (default: 0)"
    )
    gate = parser.add_argument_group("thresholds")
    gate.add_argument(
        "--max-f1", type=_percent, metavar="F1", help="most that is allowed, 0 to 100"
    )
    gate.add_argument(
        "--max-recovered",
        action="append",
        default=[],
        metavar="KIND=PERCENT",
        help="most that may be recovered of names or of numbers, as in names=5; may be repeated",
    )
    gate.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="earlier report: fail if F1 is significantly higher",
    )
    out = parser.add_argument_group("output")
    out.add_argument("--json", type=Path, metavar="FILE", help="the report; - for standard output")
    out.add_argument("--junit", type=Path, metavar="FILE", help="the checks as JUnit XML")
    out.add_argument("--sarif", type=Path, metavar="FILE", help="the checks as SARIF 2.1.0")
    out.add_argument(
        "--show-words",
        action="store_true",
        help="show the words that leak from the worst rows, which are masked otherwise",
    )


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number, got {text[:40]!r}") from error
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"must lie in [0, 100], got {text[:40]!r}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Audit the source, write what was asked for, and return the exit status."""
    limits = _limits(arguments)
    before = _baseline(arguments.baseline)
    for path in _outputs(arguments):
        check_folder(path)
    _check_libraries(arguments)
    if arguments.attack is not None and arguments.attack not in INVERSION_ATTACKS:
        raise InvalidInputError(
            f"--attack must be one of {', '.join(INVERSION_ATTACKS)}, got {arguments.attack!r}."
        )
    if threading.current_thread() is threading.main_thread():  # the copy of a store is removed
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    from core.audit.sources import open_source

    source = open_source(arguments.source)
    texts = None
    if arguments.texts is not None:
        columns = checked_columns(arguments.texts, columns_of(arguments))
        from core.corpora.files import read_texts

        texts = read_texts(arguments.texts, columns=columns)
    elif arguments.text_column:
        raise InvalidInputError(
            "--text-column names a column of the --texts file. Give both, or neither."
        )
    from core.audit.audit import AuditSpec, audit
    from core.audit.gate import exit_status

    spec = AuditSpec(
        n=arguments.sample,
        seed=arguments.seed,
        encoder=arguments.encoder,
        candidates=tuple(arguments.candidates),
        attack=arguments.attack,
        shows_words=arguments.show_words,
    )
    with progress_line() as on_progress:
        report = audit(source, spec, texts=texts, on_progress=on_progress)
    checks = _checks(report, limits, before)
    _write(arguments, report, checks)
    if checks:
        return exit_status(checks)
    return 0 if report.f1 is not None else 2


def _limits(arguments: argparse.Namespace) -> dict[str, float]:
    """Return the thresholds by name: `f1`, `names`, `numbers`."""
    found = {} if arguments.max_f1 is None else {"f1": arguments.max_f1}
    for pair in arguments.max_recovered:
        kind, equals, text = pair.partition("=")
        if not equals or kind not in _RECOVERED:
            raise InvalidInputError(
                f"--max-recovered takes KIND=PERCENT with KIND one of {', '.join(_RECOVERED)}, "
                f"got {pair!r}."
            )
        try:
            found[kind] = _percent(text)
        except argparse.ArgumentTypeError as error:
            raise InvalidInputError(f"--max-recovered {kind} {error}.") from error
    return found


def _check_libraries(arguments: argparse.Namespace) -> None:
    wanted = {"junitparser": arguments.junit, "sarif_pydantic": arguments.sarif}
    modules = [module for module, path in wanted.items() if path is not None]
    if modules:
        from core.audit.formats import check_libraries

        check_libraries(*modules)


def _baseline(path: Path | None) -> Measured | None:
    if path is None:
        return None
    from core.audit.gate import Measured

    if not path.is_file():
        raise InvalidInputError(f"--baseline: {path} does not exist. Check the path.")
    return Measured.of_report(read_json(path, "Give what `audit --json` wrote."))


def _outputs(arguments: argparse.Namespace) -> list[Path]:
    found = (arguments.json, arguments.junit, arguments.sarif)
    return [path for path in found if path is not None and str(path) != "-"]


def _checks(report: AuditReport, limits: dict[str, float], before: Measured | None) -> list[Check]:
    from core.audit.gate import Measured, check_baseline, check_limit, check_share

    by = " by an attack that does not know how the vectors were changed"
    what = "F1" + by * report.identification.is_changed
    checks = []
    if "f1" in limits:
        checks.append(
            check_limit("max-f1", report.f1, limits["f1"], what, is_estimate=report.is_estimate)
        )
    for kind in _RECOVERED:
        if kind in limits:
            checks.append(check_share(kind, report.recovered(kind), limits[kind]))
    if before is not None:
        told = report.to_dict()
        checks.append(check_baseline(Measured.of_report(told), before, seed=report.spec.seed))
    return checks


def _write(arguments: argparse.Namespace, report: AuditReport, checks: list[Check]) -> None:
    from core.durable import write_whole

    told: dict[str, Any] = report.to_dict()
    told["checks"] = [
        {"name": c.name, "outcome": c.outcome.value, "message": c.message} for c in checks
    ]
    is_printed = str(arguments.json) == "-"
    if arguments.json is not None and not is_printed:
        text = json.dumps(jsonable(told), ensure_ascii=False, allow_nan=False, indent=1)
        write_whole(arguments.json, text.encode("utf-8", "backslashreplace"))
    if arguments.junit is not None or arguments.sarif is not None:
        from core.audit import formats

        if arguments.junit is not None:
            write_whole(arguments.junit, formats.junit(report.source, checks).encode())
        if arguments.sarif is not None:
            write_whole(arguments.sarif, formats.sarif(report.source, checks).encode())
        if not checks:
            show_note("no threshold was given, so the files for the build hold no check.")
    if is_printed:
        show_json(told)
    else:
        _show(report, checks)


def _show(report: AuditReport, checks: list[Check]) -> None:
    sample = report.sample
    print(report.sentence)
    print(
        f"  {report.source}: {sample.n_rows:,} vectors of {sample.vectors.shape[1]} dimensions, "
        f"{sample.stored_as}"
    )
    print(f"  {report.identification.reason}")
    if report.leakage is not None:
        words = "words that leak" if report.leakage.result else "attack's words, right or wrong"
        print(f"  The rows that leak most, with the {words}:")
        for row in report.to_dict()["rows_that_leak_most"]:
            told = ", ".join(row["recovered"]) or "none"
            of = "" if row["n_words"] is None else f" of {row['n_words']}"
            print(f"    {row['row']}: {len(row['recovered'])}{of}: {told}")
    for reason in report.not_tested:
        print(f"  Not tested: {reason}")
    for check in checks:
        print(f"  {check.outcome.value.upper()} {check.name}: {check.message}")
