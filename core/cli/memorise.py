"""Plant a canary in texts, train a language model on them, and tell what it gives away."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from core.cli.arguments import add_column_arguments, columns_of, seed_number
from core.cli.output import progress_line, show_json, show_note
from core.cli.sources import checked_corpus, show_notes
from core.errors import InvalidInputError
from core.specs import settings_of

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "With --out what is finished is kept: the same command resumes."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `memorise`."""
    from core.attacks.membership.memorisation.settings import MemorisationSettings

    parser.add_argument(
        "--corpus", required=True, help="the private texts: bundled, a file, or another source"
    )
    add_column_arguments(parser)
    parser.add_argument(
        "--canary", required=True,
        help="a format such as 'my card number is {digits:6}', also {letters:N} and {words:N}; or "
        "a text, whose digits, or else its rarest words, are its random part",
    )  # fmt: skip
    for name, field in settings_of(MemorisationSettings).items():
        choices, kind = field.metadata["choices"], type(field.default)
        parser.add_argument(
            f"--{name.replace('_', '-')}", dest=name, type=kind, choices=choices,
            default=field.default, help=f"{field.metadata['help']} (default: {field.default})",
        )  # fmt: skip
    parser.add_argument("--seed", type=seed_number, nargs="+", default=[0, 1, 2], metavar="N",
                        help="a model each (default: 0 1 2)")  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="DIR",
        help="where training is kept, to go on after a kill; without it nothing is written",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Train a model by each seed and print the exposure by epoch and what sampling brings out."""
    columns = checked_corpus(arguments.corpus, columns_of(arguments))
    from core.attacks.membership.memorisation.memorise import memorise
    from core.attacks.membership.memorisation.settings import MemorisationSettings
    from core.attacks.membership.memorisation.texts import (
        MOST_DOCUMENTS,
        check_settings,
        private_texts,
    )
    from core.corpora import load_corpus
    from core.store import storage_errors

    given = {name: getattr(arguments, name) for name in settings_of(MemorisationSettings)}
    settings = check_settings(MemorisationSettings(**given))
    out = arguments.out
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file; give a folder to write to.")
    corpus = load_corpus(arguments.corpus, columns=columns, limit=MOST_DOCUMENTS)
    texts = private_texts(corpus, settings.n_texts, 0)
    if len(corpus) == MOST_DOCUMENTS:
        show_note(f"The first {MOST_DOCUMENTS:,} documents were read; of them sentences are drawn.")
    show_notes(corpus, arguments.corpus)
    with progress_line() as on_progress, storage_errors(out or Path()):
        found = memorise(texts, arguments.canary, settings, arguments.seed,
                         checkpoint_dir=out, on_progress=on_progress)  # fmt: skip
    told = found.to_dict()
    if arguments.json:
        show_json(told)
    else:
        _show(told)


def _show(told: dict[str, Any]) -> None:
    from core.results import Score

    print(f"{told['randomness']}; {told['insertions']} insertions in {told['n_texts']:,} sentences")
    most, kind = told["most_bits"], "exact" if told["is_exact"] else "estimated"
    print(f"exposure in bits, of {most:.1f} at most ({kind}; never planted: {told['chance']:.2f})")
    for each in told["by_epoch"]:
        score = Score.of_record({**each, "n": len(told["seeds"])}, "exposure")
        rank = f"{each['rank']:,.0f}" if each["rank"] >= 10 else f"{each['rank']:.1f}"
        said = f"{score.said():<22} rank {rank}"
        print(f"  epoch {each['epoch']:>3}  {said:<40} {each['bits_a_token']:.2f} bits a token")
    controls = Score.of_record({**told, "n": 0}, "control_exposure", chance="")
    print(f"  canaries planted nowhere: {controls.said(2)}")
    for each in told["extraction"]:
        places = ", ".join(f"{name} {_first(found)}" for name, found in each["places"].items())
        held = f"{each['n_found']} of {each['n_drawn']} texts hold it"
        print(f"  {each['sampler']:<12} {held}; first place by {places}")


def _first(places: list[int | None]) -> str:
    known = [place for place in places if place is not None]
    return str(min(known)) if known else "–"
