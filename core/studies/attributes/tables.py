"""Markdown tables of the attribute study: means over seeds beside control and topic share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.studies.attributes.curves import mean_over_draws, tops

_SOURCES = {
    "row": "other texts",
    "run": "other runs of texts",
    "group": "other groups",
    "same_group": "other runs of the same groups",
}
"""The source of the labelled texts, as tables name it."""

_HEAD = ("split", "labelled texts from", "attack", "labels", "per label")

_CONTROL = " Rows with *shuffled labels* are the control: there is nothing to learn."

Key = tuple[Any, ...]
"""Split, source of the labelled texts, attack, encoder, |S|, N_s, whether labels are shuffled."""


def by_size(rows: Iterable[Row]) -> dict[Key, ResultTable]:
    """Group the measured rows that differ only in their seed."""
    return ResultTable(rows).measured.group_by(
        "split",
        "labelled_from",
        "attribute_attack",
        lambda row: row.get("encoder", ""),
        "n_labels",
        "n_per_label",
        "is_shuffled",
    )


def mean_of(rows: ResultTable, measure: str) -> Score | None:
    """Return a score's mean over seeds; None if no row has it."""
    own = rows.having(measure)
    return mean_over_draws(own, measure) if own else None


def gain_over(rows: Sequence[Row], baseline: str = "textcnn") -> list[tuple[Key, Score]]:
    """Return, per size, the ratio of each probe's top-5 accuracy to a baseline's.

    Only rows compared with that baseline on the same targets count.
    """
    grouped = by_size(row for row in rows if row.get("reference", [""])[0] == baseline)
    return [
        (key, score)
        for key, own in grouped.items()
        if key[3] and (score := mean_of(own, "top5_ratio")) is not None
    ]


def markdown(rows: Sequence[Row]) -> str:
    """Format the study as Markdown: accuracy by size, controls, gains and topic share."""
    titles = {"top1": "top-1", "balanced": "balanced", "top5": "top-5"}
    measures = [name for name in titles if any(name in row.scores for row in rows)]
    columns = (*_HEAD, "n", *chain(*((f"{titles[m]} [95 % CI]", "guessing") for m in measures)))
    grouped = by_size(rows)
    lines = markdown_table(
        columns, (_accuracy_cells(key, own, measures) for key, own in grouped.items())
    )
    lines += [
        "",
        "Shares of the targets, means over seeds; *guessing*: the same labels for every target."
        + (_CONTROL if any(key[-1] for key in grouped) else ""),
    ]
    lines += [
        f"- {row['attribute_attack']}, {row['split']}: failed: {row.error}"
        for row in ResultTable(rows).failed
    ]
    over_textcnn = [
        f"- {_describe_attack(key)}, {key[0]}, {key[4]} labels, {key[5]} per label: "
        f"{ratio.format(2)} × the top-5 accuracy of TextCNN on the same targets: "
        f"{ratio.direction(1.0)}."
        for key, ratio in gain_over(rows)
    ]
    for part in (
        _gain_table(grouped),
        over_textcnn,
        _contrast_lines(grouped),
        _topic_lines(grouped),
    ):
        lines += ["", *part] if part else []
    return "\n".join(lines) + "\n"


def _accuracy_cells(key: Key, rows: ResultTable, measures: Sequence[str]) -> tuple[object, ...]:
    """Return the table cells of one size: what was measured, n, accuracies and chance levels."""
    scores = [mean_of(rows, measure) for measure in measures]
    told = [
        cell
        for score in scores
        for cell in ((score.format(3), f"{score.chance:.3f}") if score else ("", ""))
    ]
    return (*_key_cells(key), next((score.n for score in scores if score), ""), *told)


def _key_cells(key: Key) -> tuple[object, ...]:
    """Return the table cells under _HEAD: split, source, attack and sizes."""
    split, source, _, _, n_labels, n_per_label, _ = key
    return split, _SOURCES.get(source, source), _describe_attack(key), n_labels, n_per_label


def _describe_attack(key: Key) -> str:
    """Return attack and encoder of a key, marked if labels are shuffled."""
    _, _, attack, encoder, _, _, is_shuffled = key
    named = f"{attack}, {encoder}" if encoder else attack
    return f"{named}, shuffled labels" if is_shuffled else named


def _gain_table(grouped: Mapping[Key, ResultTable]) -> list[str]:
    """Return the table of gains over the reference attack; empty if rows have none."""
    columns = (
        *_HEAD,
        "compared with",
        "top-1 gain",
        "result",
        "top-5 gain",
        "result",
        "ratio of top-5",
    )
    lines = []
    for key, rows in grouped.items():
        one, five = mean_of(rows, "top1_gain"), mean_of(rows, "top5_gain")
        if one is None:
            continue
        times = mean_of(rows, "top5_ratio")
        told = [
            cell
            for gain in (one, five)
            for cell in ((gain.format(3), gain.direction()) if gain else ("", ""))
        ]
        against = ", ".join(filter(None, rows[0]["reference"]))
        lines.append((*_key_cells(key), against, *told, times.format(2) if times else ""))
    if not lines:
        return []
    return [
        *markdown_table(columns, lines),
        "",
        "A gain is the difference in accuracy to the attack in *compared with*, on the same "
        "targets, paired target by target, as a mean over seeds. The result is *more* or *less* "
        "if the interval excludes 0.",
    ]


def _contrast_lines(grouped: Mapping[Key, ResultTable]) -> list[str]:
    """Return a line per attack with the accuracy lost if labelled texts are of other groups."""
    told = []
    for key, rows in grouped.items():
        if ATTRIBUTE_ATTACKS[key[2]].reads == "nothing":
            continue  # it never exceeds chance, so it has nothing to lose
        k = max(tops(key[4]))
        share, lost = mean_of(rows, f"topic_share_top{k}"), mean_of(rows, f"top{k}_lost")
        if share is not None and lost is not None:
            told.append(
                f"- {_describe_attack(key)}, {key[4]} labels, {key[5]} per label: top-{k} accuracy "
                f"falls by {lost.format(3)} when labelled texts come from other groups than the "
                f"targets; that is {share.format(2)} of its gain over guessing."
            )
    return told


def _topic_lines(grouped: Mapping[Key, ResultTable]) -> list[str]:
    """Return a line per probe with its accuracy on the topic part and on the rest."""
    told = []
    for key, rows in grouped.items():
        k = max(tops(key[4]))
        topic, rest = mean_of(rows, f"top{k}_topic"), mean_of(rows, f"top{k}_rest")
        whole = mean_of(rows, f"top{k}")
        if topic is not None and rest is not None and whole is not None:
            gain = mean_of(rows, f"top{k}_topic_gain")
            minus = (
                f"; topic minus rest, on the same targets: {gain.format(3)}, {gain.direction()}"
                if gain
                else ""
            )
            told.append(
                f"- {_describe_attack(key)}, labelled texts from {_SOURCES[key[1]]}, {key[4]} "
                f"labels: top-{k} accuracy {whole.value:.3f}; from the part of the vector that "
                f"content words predict alone {topic.format(3)}, from the rest alone "
                f"{rest.format(3)}{minus}. Content words predict "
                f"{rows.average('topic_r2'):.0%} of the vectors' variance."
            )
    return told
