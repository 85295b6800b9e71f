"""Score an attack on texts that it has not seen, beside the prior-only attacker."""

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
from core.cli.output import progress_line, show_json
from core.cli.sources import checked_columns

if TYPE_CHECKING:
    from core.results import EvaluationResult, Score, Scores
    from core.text import Vocabulary

__all__ = ["add_arguments", "result_json", "run", "scores_json"]

WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `evaluate`."""
    add_encoder_arguments(parser)
    add_attack_arguments(parser)
    parser.add_argument(
        "--texts",
        type=Path,
        required=True,
        metavar="FILE",
        help="one sentence a line, or CSV, TSV, JSONL or Parquet with a column of sentences",
    )
    add_column_arguments(parser)
    parser.add_argument("--limit", type=int, help="texts to draw; all by default")
    parser.add_argument("--seed", type=seed_number, default=0, help="of the drawing (default: 0)")
    parser.add_argument("--weights", type=Path, help="folder of an attack trained by `train`")
    parser.add_argument(
        "--also-known-to",
        type=Path,
        metavar="FOLDER",
        help="score only words that the attack trained in FOLDER knows too (Corò 2022, Table 5.2)",
    )
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Evaluate and print the scores. The texts' vectors are not written to disk."""
    columns = checked_columns(arguments.texts, columns_of(arguments))
    from core.attacks.inversion.evaluation import sample_texts
    from core.corpora.files import read_texts

    spec = attack_spec(arguments)
    found = read_texts(arguments.texts, columns=columns)
    texts = sample_texts(found, arguments.limit, arguments.seed)
    from core.attacks.inversion.evaluation import evaluate
    from core.cli.trained import open_for
    from core.encoders import load_encoder

    second = _vocabulary_of(arguments.also_known_to)
    with progress_line() as on_progress:
        encoder = load_encoder(encoder_spec(arguments))
        result = evaluate(
            open_for(spec, encoder, arguments.weights, on_progress),
            encoder,
            texts,
            seed=arguments.seed,
            vocabulary=second,
            name=arguments.texts.name,
            on_progress=on_progress,
        )
    if arguments.json:
        show_json(result_json(result))
    else:
        _show(result)


def _vocabulary_of(folder: Path | None) -> Vocabulary | None:
    if folder is None:
        return None
    from core.attacks.inversion.shipped import load_attack
    from core.errors import InvalidInputError

    vocabulary: Vocabulary | None = getattr(load_attack(folder), "vocabulary_", None)
    if vocabulary is None:
        raise InvalidInputError(f"--also-known-to {folder}: this attack has no vocabulary.")
    return vocabulary


def result_json(result: EvaluationResult) -> dict[str, Any]:
    """Return the result as one flat dictionary, intervals as [low, high]."""
    return {
        "attack": result.attack,
        "encoder": result.encoder,
        "texts": result.texts,
        **scores_json(result.scores),
        "baseline": scores_json(result.baseline),
        "sentences_per_second": result.sentences_per_second,
        "n_queries_mean": result.n_queries_mean,
        "vocabulary_size": result.vocabulary_size,
        "vocabulary_coverage": result.vocabulary_coverage,
        **result.unrestricted.to_record("unrestricted_f1"),
        "unrestricted_f1_baseline": result.unrestricted.chance,
        "unit": result.scores.unit,
        "seed": result.seed,
        "device": result.device,
        "encoder_precision": result.precision,
        "encoder_backend": result.backend,
        "settings": result.settings,
        "encoder_fingerprint": result.encoder_fingerprint,
        "training": result.training,
    }


def scores_json(scores: Scores) -> dict[str, Any]:
    """Return scores as a dictionary, intervals as [low, high]."""
    from core.results import Interval

    fields = ((name, getattr(scores, name)) for name in scores.__dataclass_fields__)
    return {
        name: [value.low, value.high] if isinstance(value, Interval) else value
        for name, value in fields
    }


def _show(result: EvaluationResult) -> None:
    print(f"{result.attack} on {result.encoder}, {result.scores.n} texts of {result.texts}")
    print(f"  {'':<22}{'attack':>8}  {'95 % interval':<15}{'prior only':>12}")
    for title, name in _ROWS.items():
        _print_score(title, result.scores.score(name, getattr(result.baseline, name)))
        if name == "token_set_f1":
            _print_score("F1, every word", result.unrestricted)
    print(
        f"  {result.sentences_per_second:,.0f} sentences/s from vector to words; "
        f"{100 * result.vocabulary_coverage:.1f} % of the words are in the vocabulary"
    )
    if result.vocabulary_coverage < 1:
        print("  The other words this attacker cannot name: no evidence of safety.")


def _print_score(title: str, score: Score) -> None:
    interval = str(score.ci95) if score.has_interval else ""
    print(f"  {title:<22}{score.value:8.1f}  {interval:<15}{score.chance:12.1f}")


_ROWS = {
    "precision": "precision",
    "recall": "recall",
    "F1": "token_set_f1",
    "F1, rare words count": "weighted_f1",
    "names and numbers": "name_recall",
    "numbers": "number_recall",
    "rare words": "rare_recall",
}
