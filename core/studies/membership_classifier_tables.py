"""The tables of the study of membership in classifiers, beside the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from core.attacks.membership.classifiers.features import FEATURES
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.attacks.membership.rates import COARSE, AtRate
from core.studies.membership_classifier_rows import (
    BLIND,
    NULL,
    RATE_NAMES,
    blind_said,
    class_said,
    is_by_year,
    joined_buckets,
)
from core.studies.membership_compared import comparisons
from core.studies.membership_stability import KEPT_RATES, VERDICTS, stability
from core.studies.rows import Row, failures, mean_row_score
from core.studies.tables import markdown_table

__all__ = ["ALGORITHMS", "PAPER", "markdown"]

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
    """Return the rows as Markdown: four algorithms × five features, today's attacks, ablations."""
    measured = [row for row in rows if not row.error]
    usual = [row for row in measured if not row["varied"]]
    lines: list[str] = [f"{COARSE} Non-members are counted in users.", ""]
    for group, those in _grouped([r for r in usual if "bucket" not in r.facts], _GROUP):
        lines += [_heading(group, those), "", *_paper_table(those), "", *_other_table(those), ""]
        lines += _verdicts_said(those)
    if compared := comparisons(usual):
        lines += ["Attacks held against others on the same samples, and those on users against the "
                  "strongest on samples of the same users; users drawn for both:", "",
                  *compared, ""]  # fmt: skip
    lines += _entropy_table([row for row in usual if "bucket" in row.facts])
    lines += _ablations(measured)
    lines += ["Of Shejwalkar et al. (2021), Table 1, AUC:", "", *_of_the_paper(), ""]
    lines += [f"- failed: {_named(row)}: {row.error}" for row in failures(rows)]
    return "\n".join(lines).rstrip() + "\n"


def _named(row: Row) -> str:
    return ", ".join(str(row[name]) for name in (*_GROUP, "classifier_attack", "seed"))


def _grouped(
    rows: Sequence[Row], names: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(str(row[name]) for name in names), []).append(row)
    yield from found.items()


def _heading(group: tuple[str, ...], rows: Sequence[Row]) -> str:
    corpus, label, classifier, split = group
    first = rows[0]
    drawn = "users" if split == "user" else "texts one by one"
    return (
        f"**{corpus}**, class `{class_said(label)}`, {classifier}, members drawn by {drawn}: "
        f"{_mean(rows, 'n_members'):,.0f} members of {_mean(rows, 'n_member_users'):,.0f} users, "
        f"{first['n_classes']} classes; right on {_mean(rows, 'train_accuracy'):.3f} of members "
        f"and {_mean(rows, 'test_accuracy'):.3f} of others, a gap of "
        f"{_mean(rows, 'generalisation_error'):.3f}"
        f"{_null_said(rows)}.{_blind_said(rows)}{_left_out_said(first)}"
        f"{_YEARS if is_by_year(label) else ''}"
    )


def _null_said(rows: Sequence[Row]) -> str:
    """Return what the strongest attack finds where nothing can leak; nothing of earlier rows."""
    strongest = _strongest(rows)
    if not all(NULL in row.scores for row in strongest):
        return ""
    null = mean_row_score(strongest, NULL, is_same_sample=True)
    return f"; {_attack_said(strongest[0])} on a model trained on neither: AUC {null.said(3)}"


def _blind_said(rows: Sequence[Row]) -> str:
    """Return what the texts alone predict; nothing of earlier rows."""
    found = blind_said(list({row["seed"]: row for row in rows if BLIND in row.scores}.values()))
    return f" {found}" if found else ""


def _verdicts_said(rows: Sequence[Row]) -> list[str]:
    """Return how stable single verdicts of the strongest attack are over draws, in a line."""
    strongest = _strongest(rows)
    told = []
    for rate in KEPT_RATES:
        if found := stability(strongest, rate):
            same = found.agreement
            told.append(
                f"at {100 * rate:g} % false accusations {found.always.said(3)} of the "
                f"{found.always.n:,} {strongest[0]['level']}s that are members in two draws or "
                f"more are called so in each; two draws agree on {same.said(3)} of "
                f"{same.n:,} verdicts, by lot {same.chance:.3f}"
            )
    if not told:
        return []
    of = {row.facts[VERDICTS]["thresholds_of"] for row in strongest if VERDICTS in row.facts}
    whose = "shadow models" if of == {"shadows"} else "the target itself"
    attack = _attack_said(strongest[0])
    return [f"Single verdicts, {attack}, thresholds of {whose}: {'; '.join(told)}.", ""]


def _strongest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the attack, with its settings, that has the greatest mean AUC."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(_attack_said(row), []).append(row)
    return max(found.values(), key=lambda own: mean_row_score(own, "auc").value)


def _attack_said(row: Row) -> str:
    return f"{CLASSIFIER_ATTACKS[row['attack']].title}{_settings_said(row)}"


def _settings_said(row: Row) -> str:
    told = [str(row[name]) for name in ("feature", "statistic", "of") if name in row.facts]
    return f" ({', '.join(told)})" if told else ""


def _left_out_said(row: Row) -> str:
    """Return what of the file is not among the texts; nothing of earlier rows, which do not say."""
    n = int(row.get("n_unlabelled", 0))
    return f" {n:,} rows of the file have no user or no class, and are left out." if n else ""


_YEARS = " The year says who was there: part of what is found is when people wrote, not how."


def _mean(rows: Sequence[Row], fact: str) -> float:
    values = {row["seed"]: float(row[fact]) for row in rows}
    return sum(values.values()) / len(values)


def _cell(rows: Sequence[Row], chosen: Callable[[Row], bool], measure: str = "auc") -> str:
    own = [row for row in rows if chosen(row)]
    found = [row for row in own if measure in row.scores]
    if not found:
        return "not resolvable" if own and measure.startswith("tpr") else "–"
    score = mean_row_score(found, measure, is_same_sample=True)  # draws of one corpus
    rate = next((rate for rate, name in RATE_NAMES.items() if name == measure), None)
    if rate is None:
        return score.said(3)
    n_outsiders = min(int(row["n_outsider_users"]) for row in found)
    return f"{score.said(3)}{AtRate(rate, math.nan, score, n_outsiders).mark}"


def _paper_table(rows: Sequence[Row]) -> list[str]:
    titles = [CLASSIFIER_ATTACKS[name].title for name in ALGORITHMS]
    return markdown_table(
        ("AUC", *(f"{title} (Alg. {i})" for i, title in enumerate(titles, 1))),
        (
            (feature, *(_cell(rows, _is(name, feature)) for name in ALGORITHMS))
            for feature in FEATURES
        ),
    )


def _is(attack: str, feature: str) -> Callable[[Row], bool]:
    """Return what tells the rows of an attack with a feature, and of users with their mean."""

    def chosen(row: Row) -> bool:
        named = row["attack"], row.get("feature", ""), row.get("statistic", "mean")
        return named == (attack, feature, "mean")

    return chosen


def _other_table(rows: Sequence[Row]) -> list[str]:
    """Return today's attacks, and the paper's with the loss, with rates of few accusations."""
    kinds = [key for key, _ in _grouped(rows, ("attack",))]
    has_null = any(NULL in row.scores for row in rows)
    measures = {**_MEASURES, **({NULL: "AUC, a model trained on neither"} if has_null else {})}
    lines = []
    for (attack,) in kinds:
        for those in _variants([row for row in rows if row["attack"] == attack]):
            lines.append(
                (
                    _attack_said(those[0]),
                    those[0]["level"],
                    *(_cell(those, lambda row: True, measure) for measure in measures),
                )
            )
    return markdown_table(("attack", "of", *measures.values()), lines)


_MEASURES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "tpr_at_10": "TPR at 10 % FPR",
    "tpr_at_1": "at 1 %",
    "tpr_at_0_1": "at 0.1 %",
}


def _variants(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows of an attack by its settings; of features the loss alone."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("feature", "loss") != "loss":
            continue
        found.setdefault(_settings_said(row), []).append(row)
    yield from found.values()


def _entropy_table(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    lines = [
        (
            group[0],
            class_said(group[1]),
            *group[2:],
            f"{_mean(those, 'n'):.0f}",
            f"{_mean(those, 'class_entropy'):.2f}",
            _cell(those, lambda row: True, _RIGHT),
        )
        for _, task in _grouped(rows, ("corpus", "label", "classifier"))
        for group, those in _grouped(
            joined_buckets(task), ("corpus", "label", "classifier", "bucket")
        )
    ]
    head = ("corpus", "class", "classifier", "from tenth", "users", "entropy of classes, nats",
            "accuracy")  # fmt: skip
    told = (
        "Users by the entropy of their classes, Algorithm 4 with the loss: tenths of the users, "
        "those joined between which users of equal entropy lie:"
    )
    return [told, "", *markdown_table(head, lines), ""]


_RIGHT = "bucket_accuracy"


def _ablations(rows: Sequence[Row]) -> list[str]:
    """Return what changes where one setting is varied; the usual setting stands with each."""
    varied = [row for row in rows if row["varied"]]
    if not varied:
        return []
    found = []
    for group, those in _grouped(varied, (*_GROUP, "varied")):
        usual = [
            row
            for row in rows
            if not row["varied"] and tuple(str(row[n]) for n in _GROUP) == group[:4]
        ]
        both = [*usual, *those]
        values = dict.fromkeys(_value(row, group[4]) for row in both)
        for value in sorted(values, key=lambda v: (isinstance(v, str), v)):
            same = [row for row in both if _value(row, group[4]) == value]
            found.append(
                (
                    group[0],
                    class_said(group[1]),
                    *group[2:],
                    value or "all",
                    f"{_mean(same, 'test_accuracy'):.3f}",
                    f"{_mean(same, 'generalisation_error'):.3f}",
                    _cell(same, _is("threshold", "loss")),
                    _cell(same, _is("user_votes", "loss")),
                )
            )
    head = ("corpus", "class", "classifier", "members by", "varied", "value", "accuracy",
            "gap", "samples: AUC of Alg. 1", "users: AUC of Alg. 4")  # fmt: skip
    return [
        "One setting varied, all else as usual, the loss:",
        "",
        *markdown_table(head, found),
        "",
    ]


def _value(row: Row, varied: str) -> int | str:
    chosen = row["selection"] if varied in row["selection"] else row["classifier_settings"]
    value: int | str = chosen[varied]
    return value


def _of_the_paper() -> list[str]:
    return markdown_table(
        ("data, model", "feature", *(f"Alg. {i}" for i in range(1, 5))),
        (
            (" ".join(of), feature, *(f"{value:.3f}" for value in values))
            for of, by_feature in PAPER.items()
            for feature, values in by_feature.items()
        ),
    )
