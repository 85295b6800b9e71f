"""Markdown tables of the classifier membership study, beside the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from leakscope.core.attacks.membership.classifiers.features import FEATURES
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.rates import COARSE, AtRate
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.studies.membership.classifier_rows import (
    NULL,
    RATE_NAMES,
    describe_blind_baseline,
    describe_class,
    is_by_year,
)
from leakscope.core.studies.membership.compared import comparison_table
from leakscope.core.studies.membership.stability import KEPT_RATES, VERDICTS, stability

ALGORITHMS = ("threshold", "user_statistic", "user_learned", "user_votes")
"""Algorithms 1 to 4 of Shejwalkar et al. (2021)."""

PAPER = {
    ("Reddit", "BERT"): {
        "loss": (0.745, 0.894, 0.916, 0.935),
        "modified_entropy": (0.744, 0.886, 0.874, 0.891),
        "rank": (0.734, 0.903, 0.829, 0.909),
        "confidence": (0.745, 0.822, 0.829, 0.890),
        "correctness": (0.652, 0.835, 0.833, 0.811),
    },
    ("Reddit", "LSTM"): {
        "loss": (0.682, 0.777, 0.816, 0.831),
        "modified_entropy": (0.683, 0.779, 0.824, 0.819),
        "rank": (0.673, 0.772, 0.751, 0.781),
        "confidence": (0.682, 0.716, 0.719, 0.774),
        "correctness": (0.567, 0.688, 0.640, 0.595),
    },
    ("Amazon", "BERT"): {
        "loss": (0.597, 0.827, 0.857, 0.849),
        "modified_entropy": (0.598, 0.859, 0.870, 0.862),
        "rank": (0.587, 0.792, 0.600, 0.812),
        "confidence": (0.597, 0.759, 0.814, 0.813),
        "correctness": (0.585, 0.800, 0.800, 0.822),
    },
    ("Amazon", "LSTM"): {
        "loss": (0.632, 0.799, 0.925, 0.831),
        "modified_entropy": (0.635, 0.843, 0.940, 0.835),
        "rank": (0.611, 0.788, 0.819, 0.820),
        "confidence": (0.632, 0.724, 0.921, 0.831),
        "correctness": (0.603, 0.765, 0.732, 0.766),
    },
}
"""AUC of Shejwalkar et al. (2021), Table 1, by ALGORITHMS."""

_GROUP = ("corpus", "label", "classifier", "split")


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as Markdown: algorithms by feature, all attacks, ablations."""
    table = ResultTable(rows)
    usual = table.measured.where(lambda row: not row["varied"])
    lines: list[str] = [f"{COARSE} Non-members are counted as users.", ""]
    whole = usual.where(lambda row: "bucket" not in row.facts)
    for group, those in whole.group_by(*_GROUP).items():
        lines += [
            _heading(group, those),
            "",
            *_algorithm_table(those),
            "",
            *_attack_table(those),
            "",
        ]
        lines += _describe_verdicts(those)
    if compared := comparison_table(usual):
        lines += [
            "Attacks compared on the same samples, and user-level attacks with the strongest "
            "sample-level attack on the same users. Intervals resample users:",
            "",
            *compared,
            "",
        ]
    lines += _entropy_table(usual.where(lambda row: "bucket" in row.facts))
    lines += _ablations(table.measured)
    lines += ["AUC in Shejwalkar et al. (2021), Table 1:", "", *_paper_figures(), ""]
    for row in table.failed:
        name = ", ".join(str(row[name]) for name in (*_GROUP, "classifier_attack", "seed"))
        lines.append(f"- failed: {name}: {row.error}")
    return "\n".join(lines).rstrip() + "\n"


def _heading(group: tuple[str, ...], rows: ResultTable) -> str:
    """Format the paragraph on one target: members, accuracy, null, baseline and left-out rows."""
    corpus, label, classifier, split = group
    first = rows[0]
    drawn = "users" if split == "user" else "texts one by one"
    blind = describe_blind_baseline(rows)
    n = first["n_unlabelled"]
    left_out = f" {n:,} rows of the file have no user or no class and are left out." if n else ""
    return (
        f"**{corpus}**, class `{describe_class(label)}`, {classifier}, members drawn by {drawn}: "
        f"{_mean_fact(rows, 'n_members'):,.0f} members of "
        f"{_mean_fact(rows, 'n_member_users'):,.0f} users, {first['n_classes']} classes; accuracy "
        f"{_mean_fact(rows, 'train_accuracy'):.3f} on members "
        f"and {_mean_fact(rows, 'test_accuracy'):.3f} on non-members, a gap of "
        f"{_mean_fact(rows, 'generalisation_error'):.3f}"
        f"{_describe_null(rows)}.{f' {blind}' if blind else ''}{left_out}"
        f"{_YEARS if is_by_year(label) else ''}"
    )


def _describe_null(rows: ResultTable) -> str:
    """Describe the strongest attack's AUC on a model trained on none of the attacked; may be ""."""
    strongest = _strongest_attack_rows(rows)
    if not all(NULL in row.scores for row in strongest):
        return ""
    null = strongest.mean(NULL, is_same_sample=True)
    return f"; {_describe_attack(strongest[0])} on a model trained on neither: AUC {null.format(3)}"


def _describe_verdicts(rows: ResultTable) -> list[str]:
    """Return lines on how stable the strongest attack's verdicts are over draws; may be empty."""
    strongest = _strongest_attack_rows(rows)
    told = []
    for rate in KEPT_RATES:
        if found := stability(strongest, rate):
            same = found.agreement
            told.append(
                f"at a false-positive rate of {100 * rate:g} %, {found.always.format(3)} of the "
                f"{found.always.n:,} {strongest[0]['level']}s that are members in two or more "
                f"draws are called members in each of them; two draws agree on {same.format(3)} of "
                f"{same.n:,} verdicts, by chance on {same.chance:.3f}"
            )
    if not told:
        return []
    of = {row.facts[VERDICTS]["thresholds_of"] for row in strongest if VERDICTS in row.facts}
    whose = "shadow models" if of == {"shadows"} else "the target itself"
    attack = _describe_attack(strongest[0])
    return [f"Single verdicts of {attack}, thresholds from {whose}: {'; '.join(told)}.", ""]


def _strongest_attack_rows(rows: ResultTable) -> ResultTable:
    """Return the rows of the attack and settings with the highest mean AUC."""
    found = rows.group_by(_describe_attack).values()
    return max(found, key=lambda own: own.mean("auc").value)


def _describe_attack(row: Row) -> str:
    """Format the title of a row's attack with its settings."""
    return f"{CLASSIFIER_ATTACKS[row['attack']].title}{_describe_settings(row)}"


def _describe_settings(row: Row) -> str:
    """Format feature, statistic and combined attack of a row in brackets; "" without any."""
    told = [str(row[name]) for name in ("feature", "statistic", "of") if name in row.facts]
    return f" ({', '.join(told)})" if told else ""


_YEARS = " A year reveals who wrote then: part of this result is when people wrote, not how."


def _mean_fact(rows: Sequence[Row], fact: str) -> float:
    """Return the mean of a numeric fact of rows over their seeds."""
    values = {row["seed"]: float(row[fact]) for row in rows}
    return sum(values.values()) / len(values)


def _format_mean(rows: ResultTable, measure: str = "auc") -> str:
    """Format the mean of a measure over draws, marked if coarse; "–" if not measured."""
    found = rows.having(measure)
    if not found:
        return "not resolvable" if rows and measure.startswith("tpr") else "–"
    score = found.mean(measure, is_same_sample=True)  # draws of one corpus
    rate = next((rate for rate, name in RATE_NAMES.items() if name == measure), None)
    if rate is None:
        return score.format(3)
    n_outsiders = min(found.column("n_outsider_users"))
    return f"{score.format(3)}{AtRate(rate, math.nan, score, n_outsiders).mark}"


def _algorithm_table(rows: ResultTable) -> list[str]:
    """Return the Markdown table of AUCs by feature and by Algorithms 1 to 4, as in the paper."""
    titles = [CLASSIFIER_ATTACKS[name].title for name in ALGORITHMS]
    return markdown_table(
        ("AUC", *(f"{title} (Alg. {i})" for i, title in enumerate(titles, 1))),
        (
            (
                feature,
                *(_format_mean(_with_feature(rows, name, feature)) for name in ALGORITHMS),
            )
            for feature in FEATURES
        ),
    )


def _with_feature(rows: ResultTable, attack: str, feature: str) -> ResultTable:
    """Return the rows of an attack with one feature and, if it has statistics, the mean."""
    asked = attack, feature, "mean"
    return rows.where(
        lambda row: (row["attack"], row.get("feature", ""), row.get("statistic", "mean")) == asked
    )


def _attack_table(rows: ResultTable) -> list[str]:
    """Return the Markdown table of all attacks (feature: the loss) by AUC and low-FPR rates."""
    has_null = bool(rows.having(NULL))
    measures = {**_MEASURES, **({NULL: "AUC, model trained on neither"} if has_null else {})}
    with_loss = rows.where(lambda row: row.get("feature", "loss") == "loss")
    lines = [
        (
            _describe_attack(own[0]),
            own[0]["level"],
            *(_format_mean(own, measure) for measure in measures),
        )
        for each in with_loss.group_by("attack").values()
        for own in each.group_by(_describe_settings).values()
    ]
    return markdown_table(("attack", "of", *measures.values()), lines)


_MEASURES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "tpr_at_10": "TPR at 10 % FPR",
    "tpr_at_1": "at 1 %",
    "tpr_at_0_1": "at 0.1 %",
}


def _entropy_table(rows: ResultTable) -> list[str]:
    """Return the Markdown table of accuracy on users by their class entropy; empty without rows."""
    if not rows:
        return []
    lines = [
        (
            group[0],
            describe_class(group[1]),
            *group[2:],
            f"{_mean_fact(those, 'n'):.0f}",
            f"{_mean_fact(those, 'class_entropy'):.2f}",
            _format_mean(those, "bucket_accuracy"),
        )
        for task in rows.group_by("corpus", "label", "classifier").values()
        for group, those in task.group_by("corpus", "label", "classifier", "bucket").items()
    ]
    head = (
        "corpus",
        "class",
        "classifier",
        "from decile",
        "users",
        "class entropy, nats",
        "accuracy",
    )
    told = (
        "Users by the entropy of their classes, Algorithm 4 with the loss. Rows are deciles of the "
        "users; deciles that share users of equal entropy are joined:"
    )
    return [told, "", *markdown_table(head, lines), ""]


def _ablations(rows: ResultTable) -> list[str]:
    """Return the Markdown table of runs with one setting varied, beside the usual setting."""
    varied = rows.where(lambda row: row["varied"])
    if not varied:
        return []
    found = []
    for group, those in varied.group_by(*_GROUP, "varied").items():
        usual = rows.where(varied="", **dict(zip(_GROUP, group, strict=False)))
        values = ResultTable([*usual, *those]).group_by(partial(_varied_value, varied=group[4]))
        # Numbers first, then strings.
        for (value,), same in sorted(
            values.items(), key=lambda each: (isinstance(each[0][0], str), each[0][0])
        ):
            found.append(
                (
                    group[0],
                    describe_class(group[1]),
                    *group[2:],
                    value or "all",
                    f"{_mean_fact(same, 'test_accuracy'):.3f}",
                    f"{_mean_fact(same, 'generalisation_error'):.3f}",
                    _format_mean(_with_feature(same, "threshold", "loss")),
                    _format_mean(_with_feature(same, "user_votes", "loss")),
                )
            )
    head = (
        "corpus",
        "class",
        "classifier",
        "members by",
        "varied",
        "value",
        "accuracy",
        "gap",
        "samples: AUC of Alg. 1",
        "users: AUC of Alg. 4",
    )
    return [
        "One setting varied, all others as usual, with the loss:",
        "",
        *markdown_table(head, found),
        "",
    ]


def _varied_value(row: Row, varied: str) -> int | str:
    """Return the value of the varied setting in a row."""
    value: int | str = {**row["classifier_settings"], **row["selection"]}[varied]
    return value


def _paper_figures() -> list[str]:
    """Return the Markdown table of AUCs that the paper prints."""
    return markdown_table(
        ("data, model", "feature", *(f"Alg. {i}" for i in range(1, 5))),
        (
            (" ".join(of), feature, *(f"{value:.3f}" for value in values))
            for of, by_feature in PAPER.items()
            for feature, values in by_feature.items()
        ),
    )
