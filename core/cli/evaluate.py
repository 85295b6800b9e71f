"""Score an attack on texts that it has not seen, beside the prior-only attacker."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
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
from core.cli.behind import open_behind
from core.cli.defended import add_defence_argument, defence_spec
from core.cli.output import progress_line, show_json, show_note
from core.cli.sources import checked_columns

if TYPE_CHECKING:
    from core.protocols import Encoder, InversionAttack, OnProgress
    from core.results import EvaluationResult, Score, Scores
    from core.specs import AttackSpec
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
        help="one sentence a line, or CSV, TSV, JSON, JSONL or Parquet with a column of sentences",
    )
    add_column_arguments(parser)
    parser.add_argument("--limit", type=int, help="texts to draw; all by default")
    parser.add_argument("--seed", type=seed_number, default=0, help="of the drawing (default: 0)")
    parser.add_argument("--weights", type=Path, help="folder of an attack trained by `train`")
    add_defence_argument(parser)
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
    defence = defence_spec(arguments, seed=arguments.seed)
    found = read_texts(arguments.texts, columns=columns)
    texts = sample_texts(found, arguments.limit, arguments.seed)
    from core.encoders import load_encoder

    told = {"seed": arguments.seed, "vocabulary": _vocabulary_of(arguments.also_known_to),
            "name": arguments.texts.name}  # fmt: skip
    with progress_line() as on_progress:
        encoder = load_encoder(encoder_spec(arguments))
        attack, changed, notes = open_behind(spec, encoder, defence, arguments.weights, on_progress)
        result = _measured(attack, (encoder, changed), texts, spec, told, on_progress)
    for note in notes:
        show_note(note)
    if arguments.json:
        behind = {} if arguments.defence is None else {"defence": arguments.defence}
        show_json({**result_json(result), **behind})
    else:
        _show(result)


def _measured(
    attack: InversionAttack,
    encoders: tuple[Encoder, Encoder],
    texts: list[str],
    spec: AttackSpec,
    told: dict[str, Any],
    on_progress: OnProgress,
) -> EvaluationResult:
    """Score the attack on the encoder, or on the encoder behind a defence: the second of the two.

    What the machine was, and how the attack was made, is told of the first.
    """
    from core.attacks.inversion.evaluation import attack_vocabulary, evaluate
    from core.attacks.inversion.lifted import LiftedAttack
    from core.specs import settings_of

    plain, changed = encoders
    own: Any = attack
    if isinstance(attack, LiftedAttack):
        own = attack.attack
        attack.vocabulary_ = attack_vocabulary(own, plain)
    found = evaluate(attack, changed, texts, on_progress=on_progress, **told)
    if changed is plain:
        return found
    machine: dict[str, Any] = {name: str(getattr(plain, name, getattr(found, name)))
                               for name in ("device", "precision", "backend")}  # fmt: skip
    settings = {name: getattr(own, name) for name in settings_of(type(own))}
    training = dict(getattr(own, "training_", None) or {})
    return replace(found, attack=spec.name, settings=settings, training=training, **machine)


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
        "n_words": result.n_words,
        "n_unread_words": result.n_unread,
        "n_texts_cut": result.n_texts_cut,
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
    scores = result.scores
    is_distinct = scores.n_distinct is None or scores.n_distinct == scores.n
    copies = "" if is_distinct else f", {scores.n_distinct:,} distinct: intervals are of these"
    n = f"{scores.n:,} text{'' if scores.n == 1 else 's'}"
    print(f"{result.attack} on {result.encoder}, {n} of {result.texts}{copies}")
    print(f"  {'':<22}{'attack':>8}  {'95 % interval':<15}{'prior only':>12}")
    for title, name in _ROWS.items():
        _print_score(title, scores.score(name, getattr(result.baseline, name)))
        if name == "token_set_f1":
            _print_score("F1, every word", result.unrestricted)
    print(
        f"  {result.sentences_per_second:,.0f} sentences/s from vector to words; "
        f"{100 * result.vocabulary_coverage:.1f} % of the words are in the vocabulary"
    )
    if result.vocabulary_coverage < 1:
        print("  The other words this attacker cannot name: no evidence of safety.")
    if result.n_unread:
        print(
            f"  {result.n_unread:,} of {result.n_words:,} words "
            f"({100 * result.n_unread / result.n_words:.1f} %), in {result.n_texts_cut:,} of the "
            "texts, are beyond what the encoder reads: not tested, and in no score."
        )


def _print_score(title: str, score: Score) -> None:
    value, _, interval = score.said().partition(" ")
    chance = "–" if math.isnan(score.chance) else f"{score.chance:.1f}"
    print(f"  {title:<22}{value:>8}  {interval:<15}{chance:>12}")


_ROWS = {
    "precision": "precision",
    "recall": "recall",
    "F1": "token_set_f1",
    "F1, rare words count": "weighted_f1",
    "names and numbers": "name_recall",
    "numbers": "number_recall",
    "rare words": "rare_recall",
}
