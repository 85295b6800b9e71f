"""Ask whether a classifier of your own gives away what it was trained on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from core.attacks.membership.classifiers.limits import MOST_CELLS, rows_said
from core.cli.arguments import seed_number
from core.cli.output import progress_line, show_json, show_note
from core.errors import InvalidInputError
from core.said import auc_said

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "Nothing was written."

_ROWS = rows_said(MOST_CELLS, 10_000)

_COLUMNS = f"""\
FILE holds a row for each sample: member (1 if the classifier was trained on it, else 0), label,
and p_CLASS for each class; if known, user. Rows of shadow models, which you train as you did the
classifier on other halves of the same samples, have their number in the column shadow; a column
sample tells which rows are of one sample. Without shadow models some attacks cannot be run.
At most {MOST_CELLS:,} probabilities are read, which are rows times classes: {_ROWS}.

With --json, each attack has its true-positive rates by false-positive rate (tpr_at_fpr), how well
so many samples resolve each (resolution_at_fpr: "coarse" below 10 expected false accusations), and
the share of those accused that are members by that rate and by prior (ppv_at_fpr). Where the shadow
design alone predicts members (shadow_design), attacks that use it have "is_valid": false and no
rates. What ends in _ci95
holds 95 % intervals; those of ppv_at_fpr take the worse end of either rate and are wider. With
shadow models, by_shadow_threshold holds the threshold that these give for each rate, and what it
finds and falsely accuses of the classifier's own samples, which took no part in it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `membership`."""
    parser.epilog = _COLUMNS
    given = parser.add_argument_group("what the classifier answers (one of two)")
    given.add_argument(
        "--probabilities",
        type=Path,
        metavar="FILE",
        help="its answers: CSV, JSON or Parquet",
    )
    given.add_argument("--model", type=Path, metavar="FILE", help="the classifier itself, as ONNX")
    asked = parser.add_argument_group("with --model")
    asked.add_argument("--vectors", type=Path, metavar="FILE", help="what it is asked about: .npy")
    asked.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="a row for each vector: member, label and, if known, user and text",
    )
    asked.add_argument(
        "--shadow-models",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="more ONNX files; what they were trained on stands in member_1, member_2 …",
    )
    parser.add_argument(
        "--prior",
        type=float,
        action="append",
        metavar="P",
        help="share of members among those asked about, for what an accusation is worth; may be "
        "repeated (default: 1/2, 1/11, 1/101)",
    )
    parser.add_argument("--seed", type=seed_number, default=0, help="of bootstraps (default: 0)")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Attack, and print what was found."""
    _check(arguments)
    from core.attacks.membership.classifiers.evaluation import evaluate
    from core.attacks.membership.classifiers.told import result_of
    from core.attacks.membership.rates import PRIORS

    priors = tuple(arguments.prior or PRIORS)
    with progress_line() as on_progress:
        own = _opened(arguments, on_progress)
        outcomes = evaluate(
            own.target,
            own.shadows,
            seed=arguments.seed,
            is_calibrated=True,
            is_checked=True,
            on_progress=on_progress,
        )
    told = result_of(own, outcomes, priors, arguments.seed)
    for note in told["notes"]:
        show_note(note)
    if arguments.json:
        show_json(told)
    else:
        _show(told, outcomes)


def _check(arguments: argparse.Namespace) -> None:
    """Raise InvalidInputError where arguments do not go together."""
    if (arguments.probabilities is None) == (arguments.model is None):
        raise InvalidInputError(
            "Give --probabilities FILE, or --model FILE with --vectors FILE and --labels FILE."
        )
    with_model = {"--vectors": arguments.vectors, "--labels": arguments.labels}
    for name, value in with_model.items():
        if (value is None) != (arguments.model is None):
            need = f"--model needs {name}" if value is None else f"{name} belongs to --model"
            raise InvalidInputError(f"{need}: --model, --vectors and --labels go together.")
    if arguments.shadow_models and arguments.model is None:
        raise InvalidInputError("--shadow-models belongs to --model. In a file of probabilities, "
                                "shadow models have rows of their own.")  # fmt: skip
    for prior in arguments.prior or ():
        if not 0 < prior < 1:
            raise InvalidInputError(f"--prior must lie between 0 and 1, got {prior}.")


def _opened(arguments: argparse.Namespace, on_progress: Any) -> Any:
    if arguments.model is None:
        from core.attacks.membership.classifiers.probabilities_file import read_outputs

        return read_outputs(arguments.probabilities)
    from core.attacks.membership.classifiers.onnx_model import outputs_of_models

    models = [arguments.model, *arguments.shadow_models]
    return outputs_of_models(models, arguments.vectors, arguments.labels, on_progress)


def _show(facts: dict[str, Any], outcomes: Any) -> None:
    print(
        f"{facts['n']:,} samples, {facts['n_members']:,} of them members, {facts['n_classes']:,} "
        f"classes, {facts['n_shadows']} shadow models; right on {facts['accuracy_on_members']:.1%} "
        f"of members, {facts['accuracy_on_others']:.1%} of others"
    )
    from core.attacks.membership.rates import COARSE
    from core.results import Interval, Score

    width = max(len(outcome.plan.name) for outcome in outcomes)
    for level in ("sample", "user"):
        of_level = [outcome for outcome in outcomes if outcome.plan.level == level]
        if of_level:
            print(f"\nby {level}".ljust(width + 3), "AUC".ljust(21), "TPR at FPR 1 %".ljust(30),
                  "AUC, labels shuffled")  # fmt: skip
        for outcome in of_level:
            at = next(at for at in outcome.at if at.fpr == 0.01)
            told = f"{at.tpr.in_percent().said()} %{at.mark}" if at.is_shown else "not resolvable"
            told = told if outcome.is_valid else "not valid: shadow design"
            print(f"  {outcome.plan.name.ljust(width)}", auc_said(outcome.auc).ljust(21),
                  told.ljust(30), f"{100 * outcome.control.value:.1f}")  # fmt: skip
    for name, title in (("shadow_design", "the shadow design"), ("blind_baseline", "the texts")):
        found = facts[name]
        if found is not None:
            auc = Score(found["auc"], Interval(*found["auc_ci95"]))
            print(f"\nwithout the classifier, {title} alone: AUC {auc_said(auc)}, "
                  f"p = {found['p_value']:.2g}")  # fmt: skip
    if any(at.resolution == "coarse" for each in outcomes for at in each.at if at.fpr == 0.01):
        print("\n" + COARSE.replace("*", ""))
    print(f"\n{facts['verdict']}")
