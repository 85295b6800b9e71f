"""The tables of the study of private training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.defences.metric_dp.promise import HARDLY
from core.results import Score
from core.studies.rows import Row, failures, mean_row_score
from core.studies.tables import markdown_table
from core.training.accounting import GROUP, PUBLIC, UNIT, delta_warning

__all__ = ["markdown"]


def markdown(rows: Sequence[Row]) -> str:
    """Return the tables: of classifiers, of the language model, and what failed."""
    found = [row for row in rows if not row.error]
    classified = [row for row in found if row["part"] == "classifier"]
    written = [row for row in found if row["part"] == "language model"]
    parts = ["# What differential privacy in training costs", ""]
    parts += _classified(classified) if classified else []
    parts += _written(written) if written else []
    failed = failures(rows)
    if failed:
        lines = [(row["part"], row["epsilon"], row["seed"], row.error) for row in failed]
        parts += ["", "## Failed", "", *markdown_table(("part", "ε", "seed", "why"), lines)]
    return "\n".join(parts) + "\n"


def _grouped(rows: Sequence[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = tuple(_value(row, name) for name in names)
        found.setdefault(key, []).append(row)
    return found


def _value(row: Row, name: str) -> Any:
    if name == "hidden":
        return row["classifier_settings"]["hidden"]
    return row[name].partition("=")[0] if name == "task" else row[name]


def _balanced(rows: Sequence[Row]) -> str:
    """Return the balanced accuracy; nothing where the classes of the task are equal."""
    has_it = all("balanced_accuracy" in row.scores for row in rows)
    return mean_row_score(rows, "balanced_accuracy", is_same_sample=True).said() if has_it else ""


def _classified(rows: Sequence[Row]) -> list[str]:
    head: tuple[str, ...] = (
            "task", "head", "ε", "trained on", "accuracy", "less than at ∞", "less than ridge",
            "members", "AUC", "strongest attack", "dealt by lot", "ε: opacus, dp-accounting, tight",
            _OF_GROUP, "minutes")  # fmt: skip
    lines = []
    is_balanced = any("balanced_accuracy" in row.scores for row in rows)
    if is_balanced:
        head = (*head[:5], "balanced accuracy", *head[5:])
    for (task, hidden, epsilon), found in _grouped(rows, "task", "hidden", "epsilon").items():
        first = found[0]
        lines.append((
            task, f"{hidden} units" if hidden else "linear", _said(epsilon),
            f"{first['n_train']:,}",
            mean_row_score(found, "accuracy", is_same_sample=True).said(is_bold=True),
            *([_balanced(found)] if is_balanced else []),
            _loss(found, "accuracy_change") if epsilon else "", _loss(found, "change_from_ridge"),
            f"{first['n_members']:,}",
            mean_row_score(found, "auc", is_same_sample=True).said(3, is_bold=True),
            ", ".join(sorted({row["strongest"] for row in found})),
            mean_row_score(found, "control_auc").said(3), _accounts(first), _of_group(first),
            _minutes(found),
        ))  # fmt: skip
    n_seeds = len({row["seed"] for row in rows})
    return [
        "## Classifiers on frozen vectors",
        "",
        f"Accuracy on n = {rows[0].scores['accuracy'].n:,} test texts of the first task, in per "
        "cent, and in points less than the same training without clipping and noise, text by text. "
        "Membership of single texts: half of them are members of the attacked head; AUC of the "
        f"strongest of {len(rows[0]['attacks'])} attacks, chosen by that very AUC, with "
        f"{rows[0]['n_shadows']} shadow models trained by the same recipe, noise and all; beside "
        f"it the AUC where membership is dealt by lot. {n_seeds} seeds, intervals of 95 %; all "
        "deal out the texts of one task, so that more seeds tell little more.",
        "", _unit(rows), "", *markdown_table(head, lines), "",
    ]  # fmt: skip


def _written(rows: Sequence[Row]) -> list[str]:
    head = ("ε", "trained on", "exposure", "controls", "bits a token held out",
            "ε: opacus, dp-accounting, tight", _OF_GROUP, "ε of a canary, all copies",
            "minutes")  # fmt: skip
    lines = []
    for (epsilon,), found in _grouped(rows, "epsilon").items():
        bits = [row["bits_a_token"] for row in found]
        lines.append((
            _said(epsilon), f"{found[0]['n_train']:,}",
            mean_row_score(found, "exposure").said(is_bold=True),
            mean_row_score(found, "control_exposure").said(2), f"{sum(bits) / len(bits):.2f}",
            _accounts(found[0]), _of_group(found[0]), _of_copies(found[0]), _minutes(found),
        ))  # fmt: skip
    first = rows[0]
    return [
        "## A language model",
        "",
        f"Exposure in bits of {len(first['formats'])} canaries a model, each planted "
        f"{first['insertions']} times. The promise of ε is of each of those texts by itself. Of a "
        "canary, all its copies or none, less is promised, and less than that many times ε: the "
        "ε of all copies is that of the same noise at the same δ, by the distribution of the "
        f"privacy loss. One above {HARDLY:g} counts as a weak promise or none. A canary planted "
        "nowhere has "
        f"{first.scores['exposure'].chance:.2f} bits on average.",
        "", *markdown_table(head, lines), "",
    ]  # fmt: skip


_OF_GROUP = f"ε of {GROUP} texts"


def _of_group(row: Row) -> str:
    """Return the ε of ten texts together; empty where a row is older than that."""
    told = row.facts.get("epsilon_group")
    return "" if told is None else f"{told:.1f}"


def _unit(rows: Sequence[Row]) -> str:
    """Return of what ε is, what is public, and for which tasks δ is too great."""
    sizes = {_value(row, "task"): row["n_train"] for row in rows}
    delta = float(rows[0]["classifier_settings"]["delta"])
    warned = [f"{task}: {said}" for task, n in sizes.items() if (said := delta_warning(delta, n))]
    return " ".join([
        f"The unit of ε is {UNIT}. Of the texts of one person, or the phrases of one sentence, "
        f"together less is promised: beside it stands the ε of {GROUP} of them at the same δ, by "
        f"group privacy (the distribution of the privacy loss of all {GROUP}). {PUBLIC}",
        *warned,
    ])  # fmt: skip


def _said(epsilon: float) -> str:
    return f"{epsilon:g}" if epsilon else "∞"


def _loss(rows: Sequence[Row], measure: str) -> str:
    """Return by how much less it is: a change with its sign turned."""
    score = mean_row_score(rows, measure, is_same_sample=True)
    ends = type(score.ci95)(-score.ci95.high, -score.ci95.low, score.ci95.level)
    return Score(-score.value, ends, score.n).said()


def _accounts(row: Row) -> str:
    told = [row[f"epsilon_{name}"] for name in ("opacus", "dp_accounting", "tight")]
    return ", ".join(f"{each:.3f}" for each in told if each is not None)


def _of_copies(row: Row) -> str:
    """Return the ε of a canary with all its copies; empty where a row is older than that."""
    told = row.facts.get("epsilon_canary")
    return "" if told is None else f"{told:.1f}"


def _minutes(rows: Sequence[Row]) -> str:
    return f"{sum(row['training_minutes'] for row in rows) / len(rows):.2f}"
