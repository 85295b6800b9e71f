"""Measure what leaks from your own vectors: a file or a vector store."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.audit.audit import AuditReport, AuditSpec, audit
from leakscope.core.cli.report import check_report, write_deck
from leakscope.core.cli.shared.arguments import (
    add_column_arguments,
    add_settings,
    build_from_arguments,
    columns_of,
    whole_number,
)
from leakscope.core.cli.shared.defended import add_defence_argument, defence_spec
from leakscope.core.cli.shared.gate_arguments import (
    EXIT_STATUS,
    add_check_files,
    add_threshold_arguments,
    baseline_of,
    check_outputs,
    kind_limits,
    limits_of,
    measured_in_report,
    show_checks,
    write_checks,
    write_report,
)
from leakscope.core.cli.shared.output import progress_line
from leakscope.core.cli.shared.sources import checked_columns
from leakscope.core.cli.shared.workers import add_worker_arguments, chosen_workers
from leakscope.core.corpora.files import read_texts
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.runner import LOST, run_parallel

if TYPE_CHECKING:
    from leakscope.core.audit.gate import Check, Measured
    from leakscope.core.audit.parts import Answered, AttackerSpec, Part, Spread

PERSONAL_KINDS = (
    "name",
    "email",
    "phone",
    "iban",
    "card",
    "address",
    "national_id",
    "birth_date",
)
"""The keys of `leakscope.core.audit.personal.kinds.KINDS`, without importing its libraries."""
MOST_IDENTIFIERS = 100
EXAMPLE = "leakscope audit letters.parquet --max-f1 30"
WHEN_STOPPED = "Nothing was written, and the source is unchanged."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `audit` to its parser."""
    parser.epilog = EXIT_STATUS
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
        help="the texts of the vectors, one per row (default: the texts in the source)",
    )
    add_column_arguments(parser)
    group = parser.add_argument_group("what to measure")
    add_settings(group, AuditSpec)
    group.add_argument(
        "--candidate",
        dest="candidates",
        action="append",
        default=[],
        metavar="ENCODER",
        help="possible encoder, besides the bundled one; may be repeated",
    )
    add_defence_argument(group)
    group.add_argument(
        "--pairs",
        metavar="SOURCE",
        help="at least 10 texts with vectors of the same encoder, if the encoder is unknown: maps "
        "the vectors onto those of --encoder (default: the bundled one)",
    )
    group.add_argument(
        "--like",
        type=Path,
        metavar="FILE",
        help="thousands of texts of the same kinds: undoes an unknown rotation of the encoder's "
        "vectors without pairs; with --pairs, the attack that is trained for another "
        "encoder also learns from these texts",
    )
    group.add_argument(
        "--personal",
        nargs="?",
        type=lambda text: whole_number(text, low=1),
        const=MOST_IDENTIFIERS,
        metavar="N",
        help="find personal data in the texts and test whether an attacker recovers it or confirms "
        f"it among candidates; at most N items (default: {MOST_IDENTIFIERS})",
    )
    gate = add_threshold_arguments(parser)
    gate.add_argument(
        "--max-confirmable",
        action="append",
        default=[],
        metavar="KIND=PERCENT",
        help=f"maximum share recovered or confirmed of {', '.join(PERSONAL_KINDS)}; may be "
        "repeated",
    )
    add_worker_arguments(parser, "parts of the audit")
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FOLDER",
        help="store finished parts in this folder and resume from it; the parts contain words of "
        "the texts",
    )
    out = parser.add_argument_group("output")
    out.add_argument(
        "--json", type=Path, metavar="FILE", help="write the report as JSON; - for standard output"
    )
    add_check_files(out)
    out.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write a one-page report: .pdf, .html or .pptx",
    )
    out.add_argument(
        "--show-words",
        action="store_true",
        help="show the words that leak from the worst rows; otherwise they are masked",
    )


def run(arguments: argparse.Namespace) -> int:
    """Audit a source of vectors, write the requested reports, and return the exit status."""
    limits, before = limits_of(arguments), baseline_of(arguments)
    confirmable = kind_limits(arguments.max_confirmable, "--max-confirmable", PERSONAL_KINDS)
    defence = defence_spec(arguments, seed=arguments.seed)
    check_outputs(arguments)
    if arguments.report is not None:
        check_report(arguments.report)
    if arguments.attack is not None and arguments.attack not in INVERSION_ATTACKS:
        raise InvalidInputError(
            f"--attack must be one of {', '.join(INVERSION_ATTACKS)}, got {arguments.attack!r}."
        )
    # SIGTERM as an interrupt, so that the copy of a store is removed
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    from leakscope.core.audit.sources import open_source

    source = open_source(arguments.source)
    texts = None
    if arguments.texts is not None:
        columns = checked_columns(arguments.texts, columns_of(arguments))
        texts = read_texts(arguments.texts, columns=columns)
    elif arguments.text_column:
        raise InvalidInputError(
            "--text-column names a column of the --texts file. Give both, or neither."
        )
    from leakscope.core.audit.gate import exit_status

    spec = build_from_arguments(
        arguments,
        AuditSpec,
        candidates=tuple(arguments.candidates),
        defence=defence,
        n_identifiers=arguments.personal or (MOST_IDENTIFIERS if confirmable else 0),
        what_if=tuple(dict.fromkeys(arguments.what_if)),
        remedies=_recommended_defences() if "remedy" in arguments.what_if else (),
        shows_words=arguments.show_words,
    )
    with progress_line() as on_progress, chosen_workers(arguments) as n_jobs:
        report = audit(
            source,
            spec,
            texts=texts,
            pairs=None if arguments.pairs is None else open_source(arguments.pairs),
            like=None if arguments.like is None else read_texts(arguments.like),
            folder=arguments.resume,
            spread=_make_parallel_attack(n_jobs) if n_jobs > 1 or arguments.ray else None,
            on_progress=on_progress,
        )
    checks = _compare_with_limits(report, limits, confirmable, before)
    _write_outputs(arguments, report, checks)
    if checks:
        return exit_status(checks)
    return 0 if report.f1 is not None else 2


def _recommended_defences() -> tuple[DefenceSpec, ...]:
    """Read from the shipped trade-off results which defences to recommend; return their specs."""
    from leakscope.core.studies.tradeoff.choice import recommended_defences
    from leakscope.core.studies.tradeoff.summary import shipped_tradeoff

    return recommended_defences(shipped_tradeoff())


def _make_parallel_attack(n_jobs: int) -> Spread:
    """Return a function that attacks subsets of the audited texts in parallel processes."""

    def answered(spec: AttackerSpec, parts: Sequence[Part]) -> Iterator[Answered]:
        """Yield each subset's answers as its process finishes; skip those whose process died."""
        from leakscope.core.audit.parts import answer_part

        try:
            for found in run_parallel(parts, partial(answer_part, spec=spec), n_jobs):
                if found is not LOST:
                    yield found
        except BrokenProcessPool:
            return  # `answer_in_parts` raises an error that names the remedy

    return answered


def _compare_with_limits(
    report: AuditReport,
    limits: Mapping[str, float],
    confirmable: Mapping[str, float],
    before: Measured | None,
) -> list[Check]:
    """Compare an audit's results with thresholds and baseline; return one Check for each."""
    from leakscope.core.audit.gate import (
        UNKNOWN_CHANGE,
        Check,
        Outcome,
        check_baseline,
        check_confirmable,
        check_words,
        not_passed,
    )

    recovered = {} if report.leakage is None else report.leakage.recovered
    checks = check_words(report.f1, recovered, limits, is_estimate=report.is_estimate)
    for kind, limit in confirmable.items():
        if report.personal is None:
            message = "Personal data was not tested: no vector was attacked, or no text is known."
            checks.append(Check(f"max-confirmable-{kind}", Outcome.NOT_MEASURED, message))
        else:
            checks.append(check_confirmable(kind, report.personal.summaries.get(kind), limit))
    if report.identification.is_changed:
        checks = [not_passed(check, UNKNOWN_CHANGE) for check in checks]
    if before is not None:
        now = measured_in_report(report.to_dict())
        checks.append(check_baseline(now, before, seed=report.spec.seed))
    return checks


def _write_outputs(arguments: argparse.Namespace, report: AuditReport, checks: list[Check]) -> None:
    """Write the JSON report, CI files and one-page report of an audit; print its summary."""
    record = report.to_dict() | {"checks": [check.to_dict() for check in checks]}
    write_report(arguments.json, record)
    write_checks(arguments, report.source, checks)
    if arguments.report is not None:
        from leakscope.core.audit.summary import AuditSummary
        from leakscope.core.story.deck import audit_deck

        found = AuditSummary.from_dict(record)
        write_deck(audit_deck(found, with_words=True), arguments.report)
    if str(arguments.json) != "-":
        _print_summary(report, checks)


def _print_summary(report: AuditReport, checks: list[Check]) -> None:
    """Print an audit's headline, the rows that leak most, untested parts and the checks."""
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
            recovered = ", ".join(row["recovered"]) or "none"
            of = "" if row["n_words"] is None else f" of {row['n_words']}"
            print(f"    {row['row']}: {len(row['recovered'])}{of}: {recovered}")
    if report.personal is not None:
        print(f"  Personal data: {report.personal.sentence}")
    for name, table in report.what_if.items():
        print(f"  What if ({name}): {table.sentence}")
    for reason in report.not_tested:
        print(f"  Not tested: {reason}")
    show_checks(checks)
