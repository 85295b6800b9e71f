"""Train an attack on a corpus; a stopped run resumes when it is started again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.train import TrainingPlan, train_attack
from leakscope.core.cli.shared.arguments import (
    add_attack_arguments,
    add_column_arguments,
    add_encoder_arguments,
    add_settings,
    attack_spec,
    build_from_arguments,
    columns_of,
    encoder_spec,
)
from leakscope.core.cli.shared.defended import (
    add_defence_argument,
    defence_spec,
    odds_notes,
    training_encoder,
)
from leakscope.core.cli.shared.output import progress_line, show_json, show_note
from leakscope.core.cli.shared.sources import checked_corpus, show_notes
from leakscope.core.corpora import Corpus, load_corpus
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Score

EXAMPLE = "leakscope train --attack probe_mlc --corpus bundled --out my-attack"
WHEN_STOPPED = "Finished work is saved: the same command resumes."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `train` to its parser."""
    add_encoder_arguments(parser)
    add_attack_arguments(parser)
    parser.add_argument(
        "--corpus", required=True, help="bundled, a file, or another source; see `list`"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    add_defence_argument(parser)
    add_column_arguments(parser)
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="use only these rows of a table; repeat for more values of one column",
    )
    parser.add_argument(
        "--min-words", type=int, default=8, help="minimum words of a sentence (default: 8)"
    )
    parser.add_argument(
        "--max-words", type=int, default=40, help="maximum words of a sentence (default: 40)"
    )
    add_settings(parser, TrainingPlan)
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Train an attack, score it on held-out sentences, and write it with its record."""
    label, values = _parse_conditions(arguments.where)
    columns = checked_corpus(arguments.corpus, columns_of(arguments, label=label))
    spec, defence = attack_spec(arguments), defence_spec(arguments)
    from leakscope.core.encoders import load_encoder

    with progress_line() as on_progress:
        corpus = load_corpus(arguments.corpus, columns=columns)
        corpus = corpus.only(values) if values else corpus
        plain = load_encoder(encoder_spec(arguments))
        encoder, defence_record = training_encoder(plain, defence, arguments.seed)
        plan = build_from_arguments(
            arguments,
            TrainingPlan,
            attack=spec,
            corpus=corpus.name,
            corpus_hash=_corpus_identity(corpus, arguments),
            **defence_record,
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
        _print_result(arguments.out, record)


def _parse_conditions(where: list[str]) -> tuple[str | None, list[str]]:
    """Parse `--where COLUMN=VALUE` conditions into one column and its allowed values."""
    pairs = [condition.partition("=") for condition in where]
    names = {name for name, _, _ in pairs}
    if any(not equals for _, equals, _ in pairs) or len(names) > 1:
        raise InvalidInputError(
            f"--where takes COLUMN=VALUE, with the same column each time; got {', '.join(where)}."
        )
    return (names.pop() if names else None), [value for _, _, value in pairs]


def _corpus_identity(corpus: Corpus, arguments: argparse.Namespace) -> str:
    """Return a hash of the corpus as text, followed by the sentence lengths if not default."""
    lengths = (arguments.min_words, arguments.max_words)
    return corpus.content_hash + ("" if lengths == (8, 40) else ":{}-{}".format(*lengths))


def _print_result(out: Path, record: dict[str, Any]) -> None:
    """Print where the trained attack is, its training, and its held-out F1."""
    scores = record["held_out"]
    f1 = Score.of_record(scores, "token_set_f1", chance="prior_f1")
    print(f"{out}: {record['attack']} on {record['encoder']}, {record['n_texts']:,} sentences")
    print(f"  {record['seconds']:,.0f} s on {record['hardware']['chip']}")
    documents = f" of {scores['n_documents']} documents" if "n_documents" in scores else ""
    if "defence" in record:
        print(f"  behind {record['defence']}: use it with --defence {record['defence']}")
    print(f"  held-out: F1 {f1.format()}, prior only {f1.chance:.1f} (n = {f1.n}{documents})")
