"""Test whether your own classifier leaks which texts it was trained on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from leakscope.core.attacks.membership.classifiers.limits import MOST_CELLS, describe_rows
from leakscope.core.cli.shared.arguments import seed_number
from leakscope.core.cli.shared.output import progress_line, show_json, show_note
from leakscope.core.errors import InvalidInputError
from leakscope.core.formatting import format_auc
from leakscope.core.results import Interval, Score

EXAMPLE = "leakscope membership --probabilities answers.csv"
WHEN_STOPPED = "Nothing was written."

_ROWS = describe_rows(MOST_CELLS, 10_000)

_COLUMNS = f"""\
FILE has a row for each sample: member (1 if the classifier was trained on it, else 0), label, and
p_CLASS for each class; if known, user. Shadow models are trained like the classifier, on other
halves of the same samples. Their rows have their number in the column shadow; the column sample
identifies the sample. Without shadow models, some attacks cannot be run. At most {MOST_CELLS:,}
probabilities (rows times classes) are read: {_ROWS}.

With --json, each attack has its true-positive rates by false-positive rate (tpr_at_fpr), the
resolution of each rate (resolution_at_fpr: "coarse" below 10 expected false positives), and the
precision by rate and prior (ppv_at_fpr). If the shadow design alone predicts members
(shadow_design), attacks that use it have "is_valid": false and no rates. Names that end in _ci95
are 95 % CIs; those of ppv_at_fpr use the worse end of either rate and are wider. With shadow
models, by_shadow_threshold has the threshold that they give for each rate, and its true and false
positives on the classifier's own samples, which were not used to choose it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `membership` to its parser."""
    parser.epilog = _COLUMNS
    given = parser.add_argument_group("the classifier's answers (one of two)")
    given.add_argument(
        "--probabilities",
        type=Path,
        metavar="FILE",
        help="its probabilities: CSV, JSON or Parquet",
    )
    given.add_argument("--model", type=Path, metavar="FILE", help="the classifier itself, as ONNX")
    with_model = parser.add_argument_group("with --model")
    with_model.add_argument(
        "--vectors", type=Path, metavar="FILE", help="the vectors to classify: .npy"
    )
    with_model.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="a row for each vector: member, label and, if known, user and text",
    )
    with_model.add_argument(
        "--shadow-models",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="more ONNX files; columns member_1, member_2 … mark what each was trained on",
    )
    parser.add_argument(
        "--prior",
        type=float,
        action="append",
        metavar="P",
        help="assumed share of members, for the precision of verdicts; may be repeated "
        "(default: 1/2, 1/11, 1/101)",
    )
    parser.add_argument(
        "--seed", type=seed_number, default=0, help="random seed of the bootstraps (default: 0)"
    )
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Run membership attacks on a classifier's outputs and print the report."""
    _check_combination(arguments)
    from leakscope.core.attacks.membership.classifiers.evaluation import evaluate
    from leakscope.core.attacks.membership.classifiers.report import attack_report
    from leakscope.core.attacks.membership.rates import PRIORS

    priors = tuple(arguments.prior or PRIORS)
    with progress_line() as on_progress:
        own = _read_classifier_outputs(arguments, on_progress)
        outcomes = evaluate(
            own.target,
            own.shadows,
            seed=arguments.seed,
            is_calibrated=True,
            is_checked=True,
            on_progress=on_progress,
        )
    report = attack_report(own, outcomes, priors, arguments.seed)
    for note in report["notes"]:
        show_note(note)
    if arguments.json:
        show_json(report)
    else:
        _print_report(report, outcomes)


def _check_combination(arguments: argparse.Namespace) -> None:
    """Raise InvalidInputError if arguments do not fit together or a prior is out of range."""
    if (arguments.probabilities is None) == (arguments.model is None):
        raise InvalidInputError(
            "Give --probabilities FILE, or --model FILE with --vectors FILE and --labels FILE."
        )
    with_model = {"--vectors": arguments.vectors, "--labels": arguments.labels}
    for name, value in with_model.items():
        if (value is None) != (arguments.model is None):
            need = f"--model needs {name}" if value is None else f"{name} works only with --model"
            raise InvalidInputError(f"{need}: --model, --vectors and --labels go together.")
    if arguments.shadow_models and arguments.model is None:
        raise InvalidInputError(
            "--shadow-models works only with --model. In a file of probabilities, give shadow "
            "models as rows with the column shadow."
        )
    for prior in arguments.prior or ():
        if not 0 < prior < 1:
            raise InvalidInputError(f"--prior must lie between 0 and 1, got {prior}.")


def _read_classifier_outputs(arguments: argparse.Namespace, on_progress: Any) -> Any:
    """Read the classifier's outputs from a file, or run the ONNX models to compute them."""
    if arguments.model is None:
        from leakscope.core.attacks.membership.classifiers.probabilities_file import read_outputs

        return read_outputs(arguments.probabilities)
    from leakscope.core.attacks.membership.classifiers.onnx_model import outputs_of_models

    models = [arguments.model, *arguments.shadow_models]
    return outputs_of_models(models, arguments.vectors, arguments.labels, on_progress)


def _print_report(facts: dict[str, Any], outcomes: Any) -> None:
    """Print the sample sizes, a table of attacks by level, the baselines and the verdict."""
    print(
        f"{facts['n']:,} samples, {facts['n_members']:,} of them members, {facts['n_classes']:,} "
        f"classes, {facts['n_shadows']} shadow models; accuracy {facts['accuracy_on_members']:.1%} "
        f"on members, {facts['accuracy_on_others']:.1%} on others"
    )
    from leakscope.core.attacks.membership.rates import COARSE

    width = max(len(outcome.plan.name) for outcome in outcomes)
    for level in ("sample", "user"):
        of_level = [outcome for outcome in outcomes if outcome.plan.level == level]
        if of_level:
            print(
                f"\nby {level}".ljust(width + 3),
                "AUC [95 % CI]".ljust(21),
                "TPR at FPR 1 % [95 % CI]".ljust(30),
                "AUC, permuted labels",
            )
        for outcome in of_level:
            at = next(at for at in outcome.at if at.fpr == 0.01)
            text = f"{at.tpr.in_percent().format()} %{at.mark}" if at.is_shown else "not resolvable"
            text = text if outcome.is_valid else "not valid: shadow design"
            print(
                f"  {outcome.plan.name.ljust(width)}",
                outcome.auc.in_percent().format().ljust(21),
                text.ljust(30),
                f"{100 * outcome.control.value:.1f}",
            )
    for name, title in (("shadow_design", "the shadow design"), ("blind_baseline", "the texts")):
        found = facts[name]
        if found is not None:
            auc = Score(found["auc"], Interval(*found["auc_ci95"]))
            print(
                f"\nwithout the classifier, {title} alone: AUC {format_auc(auc)}, "
                f"p = {found['p_value']:.2g}"
            )
    if any(at.resolution == "coarse" for each in outcomes for at in each.at if at.fpr == 0.01):
        print("\n" + COARSE.replace("*", ""))
    print(f"\n{facts['verdict']}")
