"""Train an attack on a corpus; a run that was stopped resumes when it is started again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from core.cli.arguments import (
    add_attack_arguments,
    add_encoder_arguments,
    attack_spec,
    encoder_spec,
)
from core.cli.output import progress_line, show_json

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
    parser.add_argument("--limit", type=int, help="sentences to draw; all by default")
    parser.add_argument("--seed", type=int, default=0, help="of every drawing (default: 0)")
    parser.add_argument(
        "--held-out",
        type=int,
        default=500,
        help="sentences kept for scoring, at most a tenth (default: 500)",
    )
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Train, score on held-out sentences, write the attack and its record."""
    spec = attack_spec(arguments)
    from core.corpora import load_corpus
    from core.encoders import load_encoder
    from core.encoders.cache import CachedEncoder
    from core.training import TrainingPlan, train_attack

    with progress_line() as on_progress:
        corpus = load_corpus(arguments.corpus)
        plan = TrainingPlan(
            attack=spec,
            corpus=corpus.name,
            corpus_hash=corpus.content_hash,
            seed=arguments.seed,
            limit=arguments.limit,
            n_held_out=arguments.held_out,
        )
        encoder = CachedEncoder(load_encoder(encoder_spec(arguments)))
        record = train_attack(plan, encoder, corpus.texts, arguments.out, on_progress)
    if arguments.json:
        show_json({"out": str(arguments.out), **record})
    else:
        _show(arguments.out, record)


def _show(out: Path, record: dict[str, Any]) -> None:
    scores = record["held_out"]
    low, high = scores["token_set_f1_ci95"]
    print(f"{out}: {record['attack']} on {record['encoder']}, {record['n_texts']:,} sentences")
    print(f"  {record['seconds']:,.0f} s on {record['hardware']['chip']}")
    print(
        f"  held out: F1 {scores['token_set_f1']:.1f} [{low:.1f}, {high:.1f}], "
        f"prior only {scores['prior_f1']:.1f} (n = {scores['n']})"
    )
