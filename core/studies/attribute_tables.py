"""The tables of the study of attributes: means over seeds, control and topic beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from core.results import Score
from core.studies.attribute_curves import of_seeds
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


def gain_over(rows: Sequence[Row], baseline: str = "textcnn") -> list[tuple[Key, float]]:
    """Return how many times the top-5 accuracy of a baseline each probe reaches, size by size."""
    grouped = by_size(rows)
    found = []
    for key, own in grouped.items():
        other = grouped.get((*key[:2], baseline, "", *key[4:]))
        if key[3] and not key[6] and other:
            one, two = mean_of(own, "top5"), mean_of(other, "top5")
            if one is not None and two is not None and two.value > 0:
                found.append((key, one.value / two.value))
    return found


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown: accuracy by size, the control, and how much of it is topic."""
    head = ("split", "labelled texts are", "attack", "labels", "of each", "n")
    columns = (*head, "top-1 [95 %]", "guessing", "top-5 [95 %]", "guessing")
    grouped = by_size(rows)
    lines = markdown_table(columns, (_line(key, own) for key, own in grouped.items()))
    lines += [
        "",
        "Shares of the targets, means over seeds; *guessing*: the same labels for every target."
        + (_CONTROL if any(key[-1] for key in grouped) else ""),
    ]
    lines += [f"- {row['attribute_attack']}, {row['split']}: failed: {row.error}"
              for row in rows if row.error]  # fmt: skip
    for part in (_gains(rows), _contrasts(grouped), _parts(grouped)):
        lines += ["", *part] if part else []
    return "\n".join(lines) + "\n"


def _line(key: Key, rows: Sequence[Row]) -> tuple[object, ...]:
    split, source, _, _, n_labels, n_per_label, _ = key
    scores = [of_seeds(rows, measure) for measure in ("top1", "top5")]
    told = [cell for score in scores for cell in (score.said(3), f"{score.chance:.3f}")]
    head = (split, _SOURCES.get(source, source), _attack_said(key))
    return (*head, n_labels, n_per_label, scores[0].n, *told)


def _attack_said(key: Key) -> str:
    _, _, attack, encoder, _, _, is_shuffled = key
    named = f"{attack}, {encoder}" if encoder else attack
    return f"{named}, labels shuffled" if is_shuffled else named


def _gains(rows: Sequence[Row]) -> list[str]:
    return [
        f"- {_attack_said(key)}, {key[0]}, {key[4]} labels, {key[5]} of each: "
        f"{ratio:.2f} × the top-5 of TextCNN."
        for key, ratio in gain_over(rows)
    ]


def _contrasts(grouped: dict[Key, list[Row]]) -> list[str]:
    told = []
    for key, rows in grouped.items():
        if ATTRIBUTE_ATTACKS[key[2]].reads == "nothing":
            continue  # it gains nothing over guessing that could be lost
        share, lost = mean_of(rows, "topic_share_top5"), mean_of(rows, "top5_lost")
        if share is not None and lost is not None:
            told.append(
                f"- {_attack_said(key)}, {key[4]} labels, {key[5]} of each: top-5 falls by "
                f"{lost.said(3)} where labelled texts are of other groups than the targets; that "
                f"is {share.said(2)} of what it gains over guessing."
            )
    return told


def _parts(grouped: dict[Key, list[Row]]) -> list[str]:
    told = []
    for key, rows in grouped.items():
        topic, rest = mean_of(rows, "top5_topic"), mean_of(rows, "top5_rest")
        whole = mean_of(rows, "top5")
        if topic is not None and rest is not None and whole is not None:
            explained = sum(float(row["topic_r2"]) for row in rows) / len(rows)
            told.append(
                f"- {_attack_said(key)}, labelled texts from {_SOURCES[key[1]]}, {key[4]} labels: "
                f"top-5 {whole.value:.3f}; of the part of the vector that content words tell "
                f"alone {topic.said(3)}, of the rest alone {rest.said(3)}. Content words tell "
                f"{explained:.0%} of the vectors' variance."
            )
    return told
