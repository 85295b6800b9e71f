"""The tables of the study of attributes: means over seeds, control and topic beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from core.results import Score
from core.studies.attribute_curves import of_seeds, tops
from core.studies.rows import Row
from core.studies.tables import markdown_table

__all__ = ["by_size", "gain_over", "markdown", "mean_of"]

_SOURCES = {
    "row": "other texts",
    "run": "other runs of texts",
    "group": "other groups",
    "same_group": "other runs of the same groups",
}
"""What tables call where labelled texts come from."""

_HEAD = ("split", "labelled texts are", "attack", "labels", "of each")

_CONTROL = " Rows *labels shuffled* are the control: there is nothing to learn."

Key = tuple[str, str, str, str, int, int, bool]


def by_size(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    """Return the rows that differ in their seed alone.

    By split, source of the labelled texts, attack, encoder, |S|, N_s and whether labels are
    shuffled; failed rows are none of them.
    """
    found: dict[Key, list[Row]] = {}
    for row in rows:
        if not row.error:
            found.setdefault(_key(row), []).append(row)
    return found


def _key(row: Row) -> Key:
    return (
        row["split"],
        row["labelled_from"],
        row["attribute_attack"],
        row.get("encoder", ""),
        row["n_labels"],
        row["n_per_label"],
        row["is_shuffled"],
    )


def mean_of(rows: Sequence[Row], measure: str) -> Score | None:
    """Return the mean over seeds of a score, None where no row has it."""
    having = [row for row in rows if measure in row.scores]
    return of_seeds(having, measure) if having else None


def gain_over(rows: Sequence[Row], baseline: str = "textcnn") -> list[tuple[Key, Score]]:
    """Return how many times the top-5 accuracy of a baseline each probe reaches, size by size.

    Of rows that were held against it on the same targets; others tell nothing of it.
    """
    grouped = by_size(row for row in rows if row.get("reference", [""])[0] == baseline)
    return [
        (key, score)
        for key, own in grouped.items()
        if key[3] and (score := mean_of(own, "top5_ratio")) is not None
    ]


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown: accuracy by size, the control, and how much of it is topic."""
    titles = {"top1": "top-1", "balanced": "balanced", "top5": "top-5"}
    measures = [name for name in titles if any(name in row.scores for row in rows)]
    columns = (*_HEAD, "n", *chain(*((f"{titles[m]} [95 %]", "guessing") for m in measures)))
    grouped = by_size(rows)
    lines = markdown_table(columns, (_line(key, own, measures) for key, own in grouped.items()))
    lines += [
        "",
        "Shares of the targets, means over seeds; *guessing*: the same labels for every target."
        + (_CONTROL if any(key[-1] for key in grouped) else ""),
    ]
    lines += [f"- {row['attribute_attack']}, {row['split']}: failed: {row.error}"
              for row in rows if row.error]  # fmt: skip
    for part in (_compared(grouped), _gains(rows), _contrasts(grouped), _parts(grouped)):
        lines += ["", *part] if part else []
    return "\n".join(lines) + "\n"


def _line(key: Key, rows: Sequence[Row], measures: Sequence[str]) -> tuple[object, ...]:
    scores = [mean_of(rows, measure) for measure in measures]
    told = [
        cell
        for score in scores
        for cell in ((score.said(3), f"{score.chance:.3f}") if score else ("", ""))
    ]
    return (*_placed(key), next((score.n for score in scores if score), ""), *told)


def _placed(key: Key) -> tuple[object, ...]:
    """Return what _HEAD names."""
    split, source, _, _, n_labels, n_per_label, _ = key
    return split, _SOURCES.get(source, source), _attack_said(key), n_labels, n_per_label


def _attack_said(key: Key) -> str:
    _, _, attack, encoder, _, _, is_shuffled = key
    named = f"{attack}, {encoder}" if encoder else attack
    return f"{named}, labels shuffled" if is_shuffled else named


def _compared(grouped: dict[Key, list[Row]]) -> list[str]:
    """Return the table of attacks held against the reference; nothing where rows tell of none."""
    columns = (*_HEAD, "against", "top-1 more", "so", "top-5 more", "so", "times its top-5")
    lines = []
    for key, rows in grouped.items():
        one, five = mean_of(rows, "top1_gain"), mean_of(rows, "top5_gain")
        if one is None:
            continue
        times = mean_of(rows, "top5_ratio")
        told = [
            cell
            for gain in (one, five)
            for cell in ((gain.said(3), gain.stands()) if gain else ("", ""))
        ]
        against = ", ".join(filter(None, rows[0]["reference"]))
        lines.append((*_placed(key), against, *told, times.said(2) if times else ""))
    if not lines:
        return []
    return [
        *markdown_table(columns, lines),
        "",
        "Shares of the same targets, less those of the attack that others are held against, paired "
        "target by target, means over seeds; *more* or *less* where the interval leaves out 0.",
    ]


def _gains(rows: Sequence[Row]) -> list[str]:
    return [
        f"- {_attack_said(key)}, {key[0]}, {key[4]} labels, {key[5]} of each: "
        f"{ratio.said(2)} × the top-5 of TextCNN on the same targets: {ratio.stands(1.0)}."
        for key, ratio in gain_over(rows)
    ]


def _contrasts(grouped: dict[Key, list[Row]]) -> list[str]:
    told = []
    for key, rows in grouped.items():
        if ATTRIBUTE_ATTACKS[key[2]].reads == "nothing":
            continue  # it gains nothing over guessing that could be lost
        k = max(tops(key[4]))
        share, lost = mean_of(rows, f"topic_share_top{k}"), mean_of(rows, f"top{k}_lost")
        if share is not None and lost is not None:
            told.append(
                f"- {_attack_said(key)}, {key[4]} labels, {key[5]} of each: top-{k} falls by "
                f"{lost.said(3)} where labelled texts are of other groups than the targets; that "
                f"is {share.said(2)} of what it gains over guessing."
            )
    return told


def _parts(grouped: dict[Key, list[Row]]) -> list[str]:
    told = []
    for key, rows in grouped.items():
        k = max(tops(key[4]))
        topic, rest = mean_of(rows, f"top{k}_topic"), mean_of(rows, f"top{k}_rest")
        whole = mean_of(rows, f"top{k}")
        if topic is not None and rest is not None and whole is not None:
            explained = sum(float(row["topic_r2"]) for row in rows) / len(rows)
            told.append(
                f"- {_attack_said(key)}, labelled texts from {_SOURCES[key[1]]}, {key[4]} labels: "
                f"top-{k} {whole.value:.3f}; of the part of the vector that content words tell "
                f"alone {topic.said(3)}, of the rest alone {rest.said(3)}{_apart(rows, k)}. "
                f"Content words tell {explained:.0%} of the vectors' variance."
            )
    return told


def _apart(rows: Sequence[Row], k: int) -> str:
    """Return by how much topic tells more than the rest does, where rows tell it."""
    gain = mean_of(rows, f"top{k}_topic_gain")
    if gain is None:
        return ""
    return f"; the former less the latter, on the same targets: {gain.said(3)}, {gain.stands()}"
