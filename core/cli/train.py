"""Train an attack on a corpus; a run that was stopped resumes when it is started again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cli.arguments import (
    add_attack_arguments,
    add_column_arguments,
    add_encoder_arguments,
    attack_spec,
    columns_of,
    encoder_spec,
    seed_number,
)
from core.cli.behind import behind
from core.cli.defended import add_defence_argument, defence_spec, odds_notes
from core.cli.output import progress_line, show_json, show_note
from core.cli.sources import checked_corpus, show_notes
from core.errors import InvalidInputError

if TYPE_CHECKING:
    from core.corpora import Corpus

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "What is finished is kept: the same command resumes."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `train`."""
    add_encoder_arguments(parser)
    add_attack_arguments(parser)
    parser.add_argument(
        "--corpus", required=True, help="bundled, a file, or another source; see `list`"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="written here")
    add_defence_argument(parser)
    add_column_arguments(parser)
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="take only these rows of a table; repeat for more values of one column",
    )
    parser.add_argument("--min-words", type=int, default=8, help="of a sentence (default: 8)")
    parser.add_argument("--max-words", type=int, default=40, help="of a sentence (default: 40)")
    parser.add_argument("--limit", type=int, help="sentences to draw; all by default")
    parser.add_argument("--seed", type=seed_number, default=0, help="of every drawing (default: 0)")
    parser.add_argument(
        "--held-out",
        type=int,
        default=500,
        help="sentences kept for scoring, at most a tenth (default: 500)",
    )
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Train, score on held-out sentences, write the attack and its record."""
    label, values = _conditions(arguments.where)
    columns = checked_corpus(arguments.corpus, columns_of(arguments, label=label))
    spec, defence = attack_spec(arguments), defence_spec(arguments)
    from core.attacks.inversion.train import TrainingPlan, train_attack
    from core.corpora import load_corpus
    from core.encoders import load_encoder

    with progress_line() as on_progress:
        corpus = load_corpus(arguments.corpus, columns=columns)
        corpus = corpus.only(values) if values else corpus
        plain = load_encoder(encoder_spec(arguments))
        encoder, told = behind(plain, defence, arguments.seed)
        plan = TrainingPlan(
            attack=spec,
            corpus=corpus.name,
            corpus_hash=_identity(corpus, arguments),
            seed=arguments.seed,
            limit=arguments.limit,
            n_held_out=arguments.held_out,
            **told,
        )
        found = corpus.sentences(arguments.min_words, arguments.max_words)
        record = train_attack(
            plan, encoder, found.texts, arguments.out, on_progress, documents=found.document_ids
        )
    show_notes(corpus, arguments.corpus)
    for note in odds_notes(defence, plain) if defence else ():
        show_note(note)
    if arguments.json:
        show_json({"out": str(arguments.out), **record})
    else:
        _show(arguments.out, record)


def _conditions(where: list[str]) -> tuple[str | None, list[str]]:
    """Return the column that `--where` names, and the values that a row may have in it."""
    pairs = [condition.partition("=") for condition in where]
    names = {name for name, _, _ in pairs}
    if any(not equals for _, equals, _ in pairs) or len(names) > 1:
        raise InvalidInputError(
            f"--where takes COLUMN=VALUE, the same column each time; got {', '.join(where)}."
        )
    return (names.pop() if names else None), [value for _, _, value in pairs]


def _identity(corpus: Corpus, arguments: argparse.Namespace) -> str:
    """Return what tells these sentences from others: the content, and lengths if not the usual."""
    lengths = (arguments.min_words, arguments.max_words)
    return corpus.content_hash + ("" if lengths == (8, 40) else ":{}-{}".format(*lengths))


def _show(out: Path, record: dict[str, Any]) -> None:
    from core.results import Score

    scores = record["held_out"]
    f1 = Score.of_record(scores, "token_set_f1", chance="prior_f1")
    print(f"{out}: {record['attack']} on {record['encoder']}, {record['n_texts']:,} sentences")
    print(f"  {record['seconds']:,.0f} s on {record['hardware']['chip']}")
    documents = f" of {scores['n_documents']} documents" if "n_documents" in scores else ""
    if "defence" in record:
        print(f"  behind {record['defence']}: say --defence {record['defence']} where it is used")
    print(f"  held out: F1 {f1.said()}, prior only {f1.chance:.1f} (n = {f1.n}{documents})")
