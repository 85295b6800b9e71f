"""Test whether texts are in an index, or whether deleted texts can still be inferred from it."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core.cli.shared.arguments import (
    add_column_arguments,
    columns_of,
    seed_number,
    whole_number,
)
from leakscope.core.cli.shared.output import progress_line, show_json, show_note
from leakscope.core.cli.shared.sources import checked_columns
from leakscope.core.corpora.files import read_texts
from leakscope.core.errors import InvalidInputError
from leakscope.core.formatting import format_auc
from leakscope.core.text import check_texts

if TYPE_CHECKING:
    from leakscope.core.audit.presence import Comparison, Nearest

EXAMPLE = "leakscope presence letters.parquet --texts wanted.txt --references others.txt"
WHEN_STOPPED = "Nothing was written, and the source is unchanged."

_ACCESS = ("vectors", "scores", "rounded", "ids")

_LIMIT = 60.0

_EXIT = """exit status: 0 if presence was measured or the deletion is certified; 1 if deleted texts
can still be inferred; 2 if presence could not be measured, or no certificate can be given.

Vectors of the texts are not cached. A certificate needs texts that are still in the index: the
texts of the source, or --present. It holds for this attack and for the average text."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `presence` to its parser."""
    parser.epilog = _EXIT
    parser.add_argument(
        "source", metavar="SOURCE", help="the index: a file of vectors or a store, as for `audit`"
    )
    texts = parser.add_argument_group("texts")
    texts.add_argument(
        "--text", action="append", default=[], help="a text to look for; may be repeated"
    )
    texts.add_argument("--texts", type=Path, metavar="FILE", help="file of texts to look for")
    texts.add_argument(
        "--references",
        type=Path,
        required=True,
        metavar="FILE",
        help="at least 30 texts of the same kind that were never in the index",
    )
    texts.add_argument(
        "--deleted",
        action="store_true",
        help="the texts were deleted: test whether they can still be inferred",
    )
    texts.add_argument(
        "--present",
        type=Path,
        metavar="FILE",
        help="with --deleted: texts that are still in the index (default: 100 of the source's own)",
    )
    add_column_arguments(parser)
    attacker = parser.add_argument_group("attacker")
    attacker.add_argument(
        "--access",
        action="append",
        choices=_ACCESS,
        help="what the attacker sees; may be repeated (default: vectors)",
    )
    attacker.add_argument(
        "--digits",
        type=lambda text: whole_number(text, low=0, high=6),
        default=2,
        metavar="N",
        help="decimals of rounded scores (default: 2)",
    )
    attacker.add_argument(
        "--encoder", help="encoder of the vectors: minilm, st:ID, mlm:ID (default: identified)"
    )
    attacker.add_argument(
        "--seed",
        type=seed_number,
        default=0,
        help="random seed of queries, splits and intervals (default: 0)",
    )
    parser.add_argument(
        "--max-auc",
        type=_parse_max_auc,
        default=_LIMIT,
        metavar="AUC",
        help="with --deleted: limit for the upper end of the interval (default: 60)",
    )
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def _parse_max_auc(text: str) -> float:
    """Parse the value of `--max-auc` as a number above 50, at most 100; raise if it is none."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number, got {text[:40]!r}") from error
    if not 50 < value <= 100:
        raise argparse.ArgumentTypeError(f"must lie above 50 and be at most 100, got {text[:40]!r}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Test which texts an index holds, print the result, and return the exit status."""
    texts = [*check_texts(arguments.text), *_read_texts_of(arguments, "texts")]
    if not texts:
        raise InvalidInputError("Give the texts to look for with --text TEXT or --texts FILE.")
    if arguments.present is not None and not arguments.deleted:
        raise InvalidInputError("--present works only with --deleted. Give both, or neither.")
    references, present = (_read_texts_of(arguments, name) for name in ("references", "present"))
    # SIGTERM as an interrupt, so that the copy of a store is removed
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    from leakscope.core.audit.leakage import usable_rows
    from leakscope.core.audit.presence import IndexAccess, check_presence, find_encoder
    from leakscope.core.audit.sources import open_source, read_sample

    source = open_source(arguments.source)
    access = tuple(IndexAccess(name) for name in dict.fromkeys(arguments.access or ("vectors",)))
    with progress_line() as on_progress:
        sample = read_sample(source, _N_SAMPLED, seed=arguments.seed, on_progress=on_progress)
        names = [arguments.encoder] if arguments.encoder else ["minilm"]
        found, encoder = find_encoder(sample, names, on_progress=on_progress)
        if encoder is None:
            raise InvalidInputError(
                f"{source.label}: {found.reason} The search needs the encoder that made the "
                "vectors: name it with --encoder."
            )
        settings: dict[str, Any] = {
            "access": access,
            "n_digits": arguments.digits,
            "seed": arguments.seed,
            "on_progress": on_progress,
        }
        if not arguments.deleted:
            comparison = check_presence(source, texts, references, encoder, **settings)
            status, answer = 0 if comparison.is_valid else 2, comparison.sentence
            record = {"answer": answer} | comparison.to_dict()
            nearest, not_tested = comparison.strongest.nearest, comparison.not_tested
        else:
            from leakscope.core.audit.deletion import check_deletion
            from leakscope.core.audit.gate import exit_status

            own = sample.take(usable_rows(sample.texts)).known_texts
            deletion = check_deletion(
                source,
                texts,
                references,
                encoder,
                present=present or own[:_N_PRESENT],
                limit=arguments.max_auc / 100,
                **settings,
            )
            comparison, status = deletion.comparison, exit_status(list(deletion.checks))
            record, answer, nearest = deletion.to_dict(), deletion.sentence, deletion.remaining
            not_tested = deletion.not_tested
    record["encoder_evidence"] = found.reason
    if arguments.json:
        show_json(record)
    else:
        print(answer)
        _print_comparison(comparison, nearest[:_N_SHOWN], found.reason, not_tested)
    if status == 2:
        show_note("exit status 2: not measured or not certified, which does not mean safe.")
    return status


_N_SAMPLED = 1_000
_N_PRESENT = 100
_N_SHOWN = 10


def _read_texts_of(arguments: argparse.Namespace, name: str) -> list[str]:
    """Read the texts of the file that the named argument gives; empty if it was not given."""
    path: Path | None = getattr(arguments, name)
    if path is None:
        return []

    return read_texts(path, columns=checked_columns(path, columns_of(arguments)))


def _print_comparison(
    found: Comparison, nearest: tuple[Nearest, ...], reason: str, not_tested: tuple[str, ...]
) -> None:
    """Print the references used, each attack's AUC, the nearest rows, and what was not tested."""
    from leakscope.core.audit.audit import printable

    used = found.references
    print(f"  {found.source}: {found.n_rows:,} vectors. {reason}")
    print(
        f"  {used.n_given:,} references: {used.n_calibrating:,} calibrate the attack, "
        f"{used.n_compared:,} are compared. {used.n_present + used.n_near:,} were left out because "
        "they are in the index or nearly repeat a text."
    )
    for attack in found.attacks:
        line = f"  {attack.access.value}: AUC {format_auc(attack.auc)}"
        line += f"; permuted labels {format_auc(attack.permuted)}"
        control = found.controls.get(attack.access)
        print(line + (f"; texts in the index {format_auc(control)}" if control else ""))
    for near in nearest:
        print(
            f"    text {near.text}: nearest row {printable(near.row)}, cosine {near.cosine:.3f}, "
            f"p {near.p_value:.2g}"
        )
    for each in not_tested:
        print(f"  Not tested: {each}")
