"""Score an attack on held-out texts, and compare with a guess from word frequencies alone."""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core.attacks.inversion.shipped import load_attack
from leakscope.core.cli.shared.arguments import (
    add_attack_arguments,
    add_column_arguments,
    add_encoder_arguments,
    attack_spec,
    columns_of,
    encoder_spec,
    seed_number,
)
from leakscope.core.cli.shared.defended import add_defence_argument, defence_spec, open_behind
from leakscope.core.cli.shared.gate_arguments import (
    EXIT_STATUS,
    add_check_files,
    add_threshold_arguments,
    baseline_of,
    check_outputs,
    limits_of,
    measured_in_report,
    show_checks,
    write_checks,
    write_report,
)
from leakscope.core.cli.shared.output import progress_line, show_note
from leakscope.core.cli.shared.sources import checked_columns
from leakscope.core.corpora.files import read_texts
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, InversionAttack, OnProgress
from leakscope.core.results import EvaluationResult, Interval, Score, Scores
from leakscope.core.specs import AttackSpec
from leakscope.core.text import Vocabulary

if TYPE_CHECKING:
    from leakscope.core.audit.gate import Check, Measured
    from leakscope.core.audit.leakage import Leakage

EXAMPLE = "leakscope evaluate --attack search --texts letters.txt"
WHEN_STOPPED = "Nothing was written."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `evaluate` to its parser."""
    add_encoder_arguments(parser)
    add_attack_arguments(parser)
    parser.add_argument(
        "--texts",
        type=Path,
        required=True,
        metavar="FILE",
        help="one sentence per line, or CSV, TSV, JSON, JSONL or Parquet with a sentence column",
    )
    add_column_arguments(parser)
    parser.add_argument("--limit", type=int, help="number of texts to draw (default: all)")
    parser.add_argument("--seed", type=seed_number, default=0, help="seed of the draw (default: 0)")
    parser.add_argument("--weights", type=Path, help="folder of an attack trained by `train`")
    add_defence_argument(parser)
    parser.add_argument(
        "--also-known-to",
        type=Path,
        metavar="FOLDER",
        help="score only words that the attack trained in FOLDER knows too (Corò 2022, Table 5.2)",
    )
    parser.epilog = EXIT_STATUS
    add_threshold_arguments(parser)
    out = parser.add_argument_group("output")
    out.add_argument(
        "--json",
        nargs="?",
        type=Path,
        const=Path("-"),
        metavar="FILE",
        help="write the report as JSON; without FILE, to standard output",
    )
    add_check_files(out)


def run(arguments: argparse.Namespace) -> int:
    """Score an attack on a file of texts, print or write the scores, and return the exit status."""
    columns = checked_columns(arguments.texts, columns_of(arguments))
    limits, before = limits_of(arguments), baseline_of(arguments)
    check_outputs(arguments)
    from leakscope.core.attacks.inversion.evaluation import sample_rows, sample_texts
    from leakscope.core.audit.gate import exit_status

    spec = attack_spec(arguments)
    defence = defence_spec(arguments, seed=arguments.seed)
    found = read_texts(arguments.texts, columns=columns)
    texts = sample_texts(found, arguments.limit, arguments.seed)
    rows = map(str, sample_rows(len(found), arguments.limit, arguments.seed))
    from leakscope.core.encoders import load_encoder

    options = {
        "seed": arguments.seed,
        "vocabulary": _load_vocabulary(arguments.also_known_to),
        "name": arguments.texts.name,
    }
    with progress_line() as on_progress:
        encoder = load_encoder(encoder_spec(arguments))
        attack, changed, notes = open_behind(spec, encoder, defence, arguments.weights, on_progress)
        leakage, result = _score_attack(
            attack,
            (encoder, changed),
            dict(zip(rows, texts, strict=True)),
            spec,
            options,
            on_progress,
        )
    for note in notes:
        show_note(note)
    report = _report_record(leakage, result, encoder, arguments.defence)
    checks = _compare_with_limits(leakage, report, limits, before, arguments.seed)
    if checks:
        report["checks"] = [check.to_dict() for check in checks]
    write_report(arguments.json, report)
    write_checks(arguments, arguments.texts.name, checks)
    if str(arguments.json) != "-":
        _print_scores(result)
        show_checks(checks)
    return exit_status(checks)


def _score_attack(
    attack: InversionAttack,
    encoders: tuple[Encoder, Encoder],
    texts: dict[str, str],
    spec: AttackSpec,
    options: dict[str, Any],
    on_progress: OnProgress,
) -> tuple[Leakage, EvaluationResult]:
    """Invert the texts' vectors and score the answers; return the leakage and the evaluation.

    `encoders` are the plain one and the one attacked, which may be behind a defence. The
    evaluation's record of machine and attack describes the plain one.
    """
    from leakscope.core.attacks.inversion.evaluation import attack_vocabulary, restrict
    from leakscope.core.attacks.inversion.lifted import LiftedAttack
    from leakscope.core.audit.leakage import score_leakage
    from leakscope.core.defences.adaptive_attack import relabel_result

    plain, changed = encoders
    if isinstance(attack, LiftedAttack):
        attack.vocabulary_ = attack_vocabulary(attack.attack, plain)
    if options["vocabulary"] is not None:  # refused before the work
        restrict(attack_vocabulary(attack, changed), options["vocabulary"].index.keys())
    vectors = changed.encode(list(texts.values()), lambda f, m: on_progress(f / 2, m))
    start = time.perf_counter()
    answers = attack.invert(changed, vectors, lambda f, m: on_progress((1 + f) / 2, m))
    seconds = time.perf_counter() - start
    found = score_leakage(attack, changed, texts, answers, seconds=seconds, **options)
    assert found.result is not None  # the texts are known
    is_plain = changed is plain
    return found, found.result if is_plain else relabel_result(found.result, attack, plain, spec)


def _report_record(
    leakage: Leakage, result: EvaluationResult, plain: Encoder, defence: str | None
) -> dict[str, Any]:
    """Return the report for JSON: scores, and the values that thresholds are checked on."""
    from leakscope.core.audit.leakage import same_text

    return {
        **result_json(result),
        **({} if defence is None else {"defence": defence}),
        "undefended_encoder": plain.name,
        "attacker": result.attack,
        "recovered": leakage.recovered_to_dict(),
        "f1_by_row": leakage.f1_by_row,
        "same_text": same_text(leakage.rows),
    }


def _compare_with_limits(
    leakage: Leakage,
    report: dict[str, Any],
    limits: dict[str, float],
    before: Measured | None,
    seed: int,
) -> list[Check]:
    """Compare the scores with the thresholds and the baseline; return one Check for each."""
    from leakscope.core.audit.gate import check_baseline, check_words

    checks = check_words(leakage.f1, leakage.recovered, limits)
    if before is not None:
        checks.append(check_baseline(measured_in_report(report), before, seed=seed))
    return checks


def _load_vocabulary(folder: Path | None) -> Vocabulary | None:
    """Load the vocabulary of the attack saved in a folder; None if no folder is given."""
    if folder is None:
        return None

    vocabulary: Vocabulary | None = getattr(load_attack(folder), "vocabulary_", None)
    if vocabulary is None:
        raise InvalidInputError(f"--also-known-to {folder}: this attack has no vocabulary.")
    return vocabulary


def result_json(result: EvaluationResult) -> dict[str, Any]:
    """Return an evaluation result as one flat dictionary, intervals as [low, high]."""
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
    """Return recovery scores as a dictionary, intervals as [low, high]."""
    fields = ((name, getattr(scores, name)) for name in scores.__dataclass_fields__)
    return {
        name: [value.low, value.high] if isinstance(value, Interval) else value
        for name, value in fields
    }


def _print_scores(result: EvaluationResult) -> None:
    """Print the table of the attack's scores beside those of guessing, and what was not tested."""
    scores = result.scores
    is_distinct = scores.n_distinct is None or scores.n_distinct == scores.n
    copies = "" if is_distinct else f", {scores.n_distinct:,} distinct: the unit of intervals"
    n = f"{scores.n:,} text{'' if scores.n == 1 else 's'}"
    print(f"{result.attack} on {result.encoder}, {n} of {result.texts}{copies}")
    print(f"  {'':<22}{'attack':>8}  {'95 % CI':<15}{'prior only':>12}")
    for title, name in _ROWS.items():
        _print_score(title, scores.score(name, getattr(result.baseline, name)))
        if name == "token_set_f1":
            _print_score("F1, every word", result.unrestricted)
    print(
        f"  {result.sentences_per_second:,.0f} sentences/s from vector to words; "
        f"{100 * result.vocabulary_coverage:.1f} % of the words are in the attack's vocabulary"
    )
    if result.vocabulary_coverage < 1:
        print("  The other words were not tested. They are not proven safe.")
    if result.n_unread:
        print(
            f"  {result.n_unread:,} of {result.n_words:,} words "
            f"({100 * result.n_unread / result.n_words:.1f} %), in {result.n_texts_cut:,} of the "
            "texts, exceed the encoder's input limit. They were not tested or scored."
        )


def _print_score(title: str, score: Score) -> None:
    """Print as a table row one score with its interval, and the score of guessing."""
    value, _, interval = score.format().partition(" ")
    chance = "–" if math.isnan(score.chance) else f"{score.chance:.1f}"
    print(f"  {title:<22}{value:>8}  {interval:<15}{chance:>12}")


_ROWS = {
    "precision": "precision",
    "recall": "recall",
    "F1": "token_set_f1",
    "F1, rarity-weighted": "weighted_f1",
    "names and numbers": "name_recall",
    "numbers": "number_recall",
    "rare words": "rare_recall",
}
