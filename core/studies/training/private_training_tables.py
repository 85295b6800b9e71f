"""Markdown tables of the private training study."""

from __future__ import annotations

from collections.abc import Sequence

from leakscope.core.defences.metric_dp.guarantee import HARDLY
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_records, markdown_table
from leakscope.core.training.accounting import GROUP, PUBLIC, UNIT, delta_warning


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as Markdown: classifiers, language models and failures."""
    table = ResultTable(rows)
    classified = table.measured.where(part="classifier")
    written = table.measured.where(part="language model")
    parts = ["# What differential privacy in training costs", ""]
    parts += _classifier_section(classified) if classified else []
    parts += _language_model_section(written) if written else []
    if table.failed:
        lines = [(row["part"], row["epsilon"], row["seed"], row.error) for row in table.failed]
        parts += ["", "## Failed", "", *markdown_table(("part", "ε", "seed", "why"), lines)]
    return "\n".join(parts) + "\n"


def _task_name(row: Row) -> str:
    """Return the name of a row's task."""
    return str(row["task"]).partition("=")[0]


def _format_balanced(rows: ResultTable) -> str:
    """Format the balanced accuracy of rows; "" unless every row has it."""
    own = rows.having("balanced_accuracy")
    is_whole = len(own) == len(rows)
    return own.mean_on_same_texts("balanced_accuracy").format() if is_whole else ""


def _classifier_section(rows: ResultTable) -> list[str]:
    """Return the Markdown section on classifiers: accuracy, membership AUC and ε."""
    records = []
    is_balanced = bool(rows.having("balanced_accuracy"))
    for (task, hidden, epsilon), found in rows.group_by(
        _task_name, lambda row: int(row["classifier_settings"]["hidden"]), "epsilon"
    ).items():
        first = found[0]
        records.append(
            {
                "task": task,
                "head": f"{hidden} units" if hidden else "linear",
                "ε": _format_epsilon(epsilon),
                "trained on": f"{first['n_train']:,}",
                "accuracy": found.mean_on_same_texts("accuracy").format(is_bold=True),
                **({"balanced accuracy": _format_balanced(found)} if is_balanced else {}),
                "loss from ε = ∞": _format_loss(found, "accuracy_change") if epsilon else "",
                "loss from ridge": _format_loss(found, "change_from_ridge"),
                "members": f"{first['n_members']:,}",
                "AUC": found.mean_on_same_texts("auc").format(3, is_bold=True),
                "strongest attack": ", ".join(sorted(found.distinct("strongest"))),
                "permuted labels": found.mean("control_auc").format(3),
                _BY_ACCOUNTANT: _format_accountants(first),
                _OF_GROUP: _format_bound(first["epsilon_group"]),
                "minutes": f"{found.average('training_minutes'):.2f}",
            }
        )
    n_seeds = len(rows.distinct("seed"))
    return [
        "## Classifiers on frozen vectors",
        "",
        f"Accuracy in per cent, on n = {rows[0].scores['accuracy'].n:,} test texts of the first "
        "task. Losses in points, compared text by text with the same training without clipping "
        "and noise, and with a ridge classifier. Membership of single texts: half of them are "
        "members of the attacked head. The AUC is that of the strongest of "
        f"{len(rows[0]['attacks'])} attacks, chosen by this AUC, with {rows[0]['n_shadows']} "
        "shadow models trained in the same way, noise included. The control is the AUC with "
        f"permuted labels. {n_seeds} seeds, 95 % intervals. All seeds split the texts of the same "
        "task, so more seeds add little.",
        "",
        _describe_unit(rows),
        "",
        *markdown_records(records),
        "",
    ]


def _language_model_section(rows: ResultTable) -> list[str]:
    """Return the Markdown section on language models: exposure, bits per token and ε."""
    records = [
        {
            "ε": _format_epsilon(epsilon),
            "trained on": f"{found[0]['n_train']:,}",
            "exposure": found.mean("exposure").format(is_bold=True),
            "controls": found.mean("control_exposure").format(2),
            "bits per held-out token": f"{found.average('bits_a_token'):.2f}",
            _BY_ACCOUNTANT: _format_accountants(found[0]),
            _OF_GROUP: _format_bound(found[0]["epsilon_group"]),
            "ε for all copies of a canary": _format_bound(found[0]["epsilon_canary"]),
            "minutes": f"{found.average('training_minutes'):.2f}",
        }
        for (epsilon,), found in rows.group_by("epsilon").items()
    ]
    first = rows[0]
    return [
        "## A language model",
        "",
        f"Exposure in bits of {len(first['formats'])} canaries per model, each planted "
        f"{first['insertions']} times. ε holds for each of those texts by itself. For all copies "
        "of a canary together, the guarantee is weaker, but by less than that many times ε: their "
        "ε is computed for the same noise at the same δ, by the distribution of the privacy loss. "
        f"An ε above {HARDLY:g} counts as practically no guarantee. A canary planted nowhere has "
        f"{first.scores['exposure'].chance:.2f} bits on average.",
        "",
        *markdown_records(records),
        "",
    ]


_BY_ACCOUNTANT = "ε: opacus, dp-accounting, tight"
_OF_GROUP = f"ε for {GROUP} texts"


def _format_bound(epsilon: float | None) -> str:
    """Format an ε with one decimal; "" if None."""
    return "" if epsilon is None else f"{epsilon:.1f}"


def _describe_unit(rows: Sequence[Row]) -> str:
    """Describe the unit that ε protects, what is public, and the tasks whose δ is too large."""
    sizes = {_task_name(row): row["n_train"] for row in rows}
    delta = float(rows[0]["classifier_settings"]["delta"])
    warned = [f"{task}: {said}" for task, n in sizes.items() if (said := delta_warning(delta, n))]
    return " ".join(
        [
            f"The unit of ε is {UNIT}. For several texts of one person, or several phrases of one "
            f"sentence, the guarantee is weaker. The table gives the ε for {GROUP} of them at the "
            "same δ, by group privacy (the distribution of the privacy loss of all "
            f"{GROUP}). {PUBLIC}",
            *warned,
        ]
    )


def _format_epsilon(epsilon: float) -> str:
    """Format a requested ε; 0 is shown as ∞."""
    return f"{epsilon:g}" if epsilon else "∞"


def _format_loss(rows: ResultTable, measure: str) -> str:
    """Format the mean of a change over rows with reversed sign, as a loss."""
    score = rows.mean_on_same_texts(measure)
    ends = type(score.ci95)(-score.ci95.high, -score.ci95.low, score.ci95.level)
    return Score(-score.value, ends, score.n).format()


def _format_accountants(row: Row) -> str:
    """Format a row's ε by each accountant; "" without a guarantee."""
    told = [row[f"epsilon_{name}"] for name in ("opacus", "dp_accounting", "tight")]
    return ", ".join(f"{each:.3f}" for each in told if each is not None)
