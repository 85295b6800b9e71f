"""Plant a canary in texts, train a language model on them, and measure how much of it leaks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.cli.shared.arguments import (
    add_column_arguments,
    add_settings,
    build_from_arguments,
    columns_of,
    seed_number,
)
from leakscope.core.cli.shared.output import progress_line, show_json, show_note
from leakscope.core.cli.shared.sources import checked_corpus, show_notes
from leakscope.core.corpora import load_corpus
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Score
from leakscope.core.storage.artifacts import storage_errors

EXAMPLE = 'leakscope memorise --corpus bundled --canary "my card number is {digits:6}"'
WHEN_STOPPED = "With --out, finished work is saved: the same command resumes."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `memorise` to its parser."""
    parser.add_argument(
        "--corpus", required=True, help="the private texts: bundled, a file, or another source"
    )
    add_column_arguments(parser)
    parser.add_argument(
        "--canary",
        required=True,
        help="a format such as 'my card number is {digits:6}', also {letters:N} and {words:N}; or "
        "a text whose digits, or else its rarest words, are the random part",
    )
    add_settings(parser, MemorisationSettings)
    parser.add_argument(
        "--seed",
        type=seed_number,
        nargs="+",
        default=[0, 1, 2],
        metavar="N",
        help="one model per seed (default: 0 1 2)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for checkpoints, to resume after a stop; without it, nothing is written",
    )
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Train a language model with each seed; print the canary's exposure and what was extracted."""
    columns = checked_corpus(arguments.corpus, columns_of(arguments))
    from leakscope.core.attacks.membership.memorisation.memorise import memorise
    from leakscope.core.attacks.membership.memorisation.texts import (
        MOST_DOCUMENTS,
        check_settings,
        private_texts,
    )

    settings = check_settings(build_from_arguments(arguments, MemorisationSettings))
    out = arguments.out
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file. Give a folder to write to.")
    corpus = load_corpus(arguments.corpus, columns=columns, limit=MOST_DOCUMENTS)
    texts = private_texts(corpus, settings.n_texts, 0)
    if len(corpus) == MOST_DOCUMENTS:
        show_note(f"Sentences are drawn from the first {MOST_DOCUMENTS:,} documents.")
    show_notes(corpus, arguments.corpus)
    with progress_line() as on_progress, storage_errors(out or Path()):
        found = memorise(
            texts,
            arguments.canary,
            settings,
            arguments.seed,
            checkpoint_dir=out,
            on_progress=on_progress,
        )
    record = found.to_dict()
    if arguments.json:
        show_json(record)
    else:
        _print_memorisation(record)


def _print_memorisation(record: dict[str, Any]) -> None:
    """Print the exposure by epoch, the control's exposure, and the extraction by sampler."""
    print(
        f"{record['randomness']}; {record['insertions']} insertions in {record['n_texts']:,} "
        "sentences"
    )
    most, kind = record["most_bits"], "exact" if record["is_exact"] else "estimated"
    print(f"exposure in bits, at most {most:.1f} ({kind}; never planted: {record['chance']:.2f})")
    for each in record["by_epoch"]:
        score = Score.of_record({**each, "n": len(record["seeds"])}, "exposure")
        rank = f"{each['rank']:,.0f}" if each["rank"] >= 10 else f"{each['rank']:.1f}"
        text = f"{score.format():<22} rank {rank}"
        print(f"  epoch {each['epoch']:>3}  {text:<40} {each['bits_a_token']:.2f} bits per token")
    controls = Score.of_record({**record, "n": 0}, "control_exposure", chance="")
    print(f"  control, canaries never planted: {controls.format(2)}")
    for each in record["extraction"]:
        places = ", ".join(f"{name} {_best_rank(found)}" for name, found in each["places"].items())
        held = f"{each['n_found']} of {each['n_drawn']} texts contain it"
        print(f"  {each['sampler']:<12} {held}; first place by {places}")


def _best_rank(places: list[int | None]) -> str:
    """Format the smallest known rank; a dash if all are None."""
    known = [place for place in places if place is not None]
    return str(min(known)) if known else "–"
