"""The attribute study: how well attacks infer an attribute such as the author (SR20, §6.3).

It runs every attack with growing numbers of labels and of labelled texts per label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from leakscope.core.attacks.attributes.draw import SPLITS, Draw, Plan, draw
from leakscope.core.attacks.attributes.examples import Examples, read_examples
from leakscope.core.attacks.attributes.experiment import Case, encode_draws, run_cases
from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS, make_attribute_attack
from leakscope.core.corpora import split_reference
from leakscope.core.corpora.documents import digest_fields
from leakscope.core.encoders.registry import FITTED_ENCODERS, FITTED_ON_TEXTS
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell, ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.specs import REQUIRED, setting, settings_of
from leakscope.core.studies.attributes.curves import mean_over_draws, tops
from leakscope.core.studies.attributes.rows import (
    anonymise_labels,
    rows_from_cases,
    with_answers,
    with_gains,
)
from leakscope.core.studies.decontaminate import near_duplicate_setting
from leakscope.core.studies.domains import content_of, encoder_settings, open_corpus, open_encoder


@dataclass(frozen=True, kw_only=True)
class AttributeStudy:
    """Settings of the attribute study: attacks, encoders, numbers of labels and texts, seeds."""

    target: str = setting(REQUIRED, "a table of texts with the attribute")
    label_column: str = setting("author", "column of the attribute")
    group_column: str = setting(
        "", "column of the texts' source, such as a book; needed by every split except row"
    )
    other: str = setting("wikipedia", "the corpus that encoders are fitted on")
    encoders: tuple[str, ...] = setting(("minilm",), "encoders by name")
    attribute_attacks: tuple[str, ...] = setting(
        tuple(ATTRIBUTE_ATTACKS),
        "attacks by name",
        choices=tuple(ATTRIBUTE_ATTACKS),
        flag="attacks",
    )
    labels: tuple[int, ...] = setting(
        (20, 50), "labels to distinguish, drawn at random", low=2, flag="n-labels"
    )
    sizes: tuple[int, ...] = setting(
        (10, 20, 30, 40, 50), "labelled texts per label", low=1, paper="SR20", flag="n-per-label"
    )
    n_known: int = setting(
        0,
        "labelled texts per label that are drawn, of which smaller sizes use the first; targets "
        "must not nearly repeat them; 0: the largest size. Studies with the same value and the "
        "same n-drawn share their targets",
        low=0,
    )
    n_drawn: int = setting(
        0,
        "labels that are drawn, of which the first are used; 0: the largest number of labels",
        low=0,
    )
    n_targets: int = setting(250, "texts under attack per label at most", low=1, paper="SR20")
    splits: tuple[str, ...] = setting(
        ("row",), "where labelled texts come from, relative to the targets", choices=tuple(SPLITS)
    )
    run_length: int = setting(50, "consecutive texts per run", low=2)
    near: float = near_duplicate_setting()
    seeds: tuple[int, ...] = setting((0, 1, 2, 3, 4), "one run each", low=0, paper="SR20")
    reference: str = setting(
        "linear",
        "attack that the others are compared with on the same targets, on the first encoder, "
        "if it is among them",
        choices=tuple(ATTRIBUTE_ATTACKS),
    )
    is_anonymous: bool = setting(
        False, "write label 1, label 2, … for confused labels", flag="anonymous"
    )

    def __post_init__(self) -> None:
        """Raise InvalidInputError unless n_known and n_drawn are 0 or cover the largest sizes."""
        for name, most in (("n_known", max(self.sizes)), ("n_drawn", max(self.labels))):
            if 0 < (given := getattr(self, name)) < most:
                raise InvalidInputError(
                    f"{name} must be at least {most}, the largest number in the study, or 0: got "
                    f"{given}."
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the table must have: label and group, if given."""
        return tuple(filter(None, (self.label_column, self.group_column)))

    def cells(self) -> list[Cell]:
        """Return one cell per split, attack and encoder; slow attacks have one per size and seed.

        A quick attack is one cell. A slow attack has a cell for every size and seed, so that an
        interrupted run loses at most one of them.
        """
        return [
            cell | part
            for split in self.splits
            for attack in self.attribute_attacks
            for cell in self._attack_cells(split, attack)
            for part in self._size_entries(attack)
        ]

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """Return rows with gains over the reference attack, and anonymous labels if asked."""
        rows = with_gains(rows, self.reference, next(iter(self.encoders), ""))
        return anonymise_labels(rows) if self.is_anonymous else rows

    def _attack_cells(self, split: str, attack: str) -> list[Cell]:
        """Return the cells of an attack without sizes: one per encoder that it can read."""
        kind = ATTRIBUTE_ATTACKS[attack].kind
        shared = {
            "study": "attributes",
            "target": self.target,
            "label": self.label_column,
            "group": self.group_column,
            "content": _content_of(self.target, self.label_column, self.group_column),
            "split": split,
            "attribute_attack": attack,
            "attribute_settings": {
                name: list(spec.default) if isinstance(spec.default, tuple) else spec.default
                for name, spec in settings_of(kind).items()
            },
            "n_known": self.n_known or max(self.sizes),
            "n_drawn": self.n_drawn or max(self.labels),
            "n_targets": self.n_targets,
            "run_length": self.run_length,
            "near": self.near,
        }
        if ATTRIBUTE_ATTACKS[attack].reads != "vectors":
            return [shared]
        fitted_on = {"other": self.other, "other_content": content_of(self.other)}
        return [
            shared
            | {"encoder": encoder, "encoder_settings": encoder_settings(encoder)}
            | (fitted_on if encoder in FITTED_ON_TEXTS else {})
            for encoder in self.encoders
            if ATTRIBUTE_ATTACKS[attack].reads_sparse
            or not getattr(FITTED_ENCODERS.get(encoder.partition(":")[0]), "gives_sparse", False)
        ]

    def _size_entries(self, attack: str) -> list[Cell]:
        """Return the size and seed entries of an attack's cells; the largest size has a control."""
        entry, most = ATTRIBUTE_ATTACKS[attack], max(self.sizes)
        learns = entry.reads != "nothing"
        if entry.is_quick:
            whole = {"labels": self.labels, "sizes": self.sizes, "seeds": self.seeds}
            controls = [most] if learns else []
            return [{name: list(values) for name, values in whole.items()} | {"controls": controls}]
        return [
            {
                "labels": [n_labels],
                "sizes": [n_per_label],
                "seeds": [seed],
                "controls": [n_per_label] if learns and n_per_label == most else [],
            }
            for n_labels in self.labels
            for n_per_label in self.sizes
            for seed in self.seeds
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    """Run a cell: draw texts, encode and attack them; return a row per size, seed and control."""
    target = cell["target"], cell["label"], cell["group"]
    if _content_of(*target) != cell["content"]:
        raise InvalidInputError(
            f"{cell['target']} has changed since the study was started. Copy the same "
            "file to every machine, or start the study again."
        )
    examples = _read_examples(*target)
    draws = {seed: _draw_cached(*target, _plan(cell, seed)) for seed in cell["seeds"]}
    name = cell["attribute_attack"]
    given = {
        k: tuple(v) if isinstance(v, list) else v for k, v in cell["attribute_settings"].items()
    }
    shared = None
    if "encoder" in cell:
        encoder = open_encoder(
            cell["encoder"],
            {"other": cell.get("other", "")},
            lambda: list(open_corpus(cell["other"]).sentences().texts),
            folder,
            contents=[cell.get("other_content", "")],
        )
        shared = encode_draws(examples, draws, encoder)
    cases = _list_cases(cell, next(iter(draws.values())))
    found = run_cases(make_attribute_attack(name, given), cases, examples, draws, shared)
    rows = rows_from_cases(found, examples, draws, shared)
    return [
        with_answers(row, each, draws[each.case.seed])
        for row, each in zip(rows, found, strict=True)
    ]


def _plan(cell: Cell, seed: int) -> Plan:
    """Build the plan by which a cell's texts are drawn under one seed."""
    return Plan(
        n_labels=cell["n_drawn"],
        n_per_label=cell["n_known"],
        n_targets=cell["n_targets"],
        split=cell["split"],
        run_length=cell["run_length"],
        near=cell["near"],
        seed=seed,
    )


def _list_cases(cell: Cell, drawn: Draw) -> list[Case]:
    """List the cases to run: one per size and seed, and controls with shuffled labels."""
    sizes = [(n_labels, n, False) for n_labels in cell["labels"] for n in cell["sizes"]]
    controls = [(n_labels, n, True) for n_labels in cell["labels"] for n in cell["controls"]]
    return [
        Case(seed, source, n_labels, n, is_shuffled)
        for seed in cell["seeds"]
        for source in drawn.known
        for n_labels, n, is_shuffled in [*sizes, *controls]
    ]


@lru_cache(maxsize=2)
def _read_examples(target: str, label: str, group: str) -> Examples:
    """Read the labelled texts of a table, once per process."""
    path, column = split_reference(target)
    return read_examples(
        Path(path), label_column=label, group_column=group or None, text_column=column
    )


@lru_cache(maxsize=4)
def _content_of(target: str, label: str, group: str) -> str:
    """Return a digest of a table's texts with their labels and groups."""
    examples = _read_examples(target, label, group)
    return digest_fields([*examples.texts, *examples.labels, *(examples.groups or ())])[:16]


@lru_cache(maxsize=8)
def _draw_cached(target: str, label: str, group: str, plan: Plan) -> Draw:
    """Read a table and draw labelled texts and targets by a plan, once per process."""
    return draw(_read_examples(target, label, group), plan)


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
    """Group the measured rows by everything but the seed, under a `Key`."""
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
    """Return a score's mean over the seeds of rows; None if no row has it."""
    own = rows.having(measure)
    return mean_over_draws(own, measure) if own else None


def gain_over(rows: Sequence[Row], baseline: str = "textcnn") -> list[tuple[Key, Score]]:
    """Return (key, ratio) pairs: each probe's top-5 accuracy divided by a baseline's.

    Only rows compared with that baseline on the same targets count.
    """
    grouped = by_size(row for row in rows if row.get("reference", [""])[0] == baseline)
    return [
        (key, score)
        for key, own in grouped.items()
        if key[3] and (score := mean_of(own, "top5_ratio")) is not None
    ]


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as Markdown: accuracy by size, controls, gains and topic share."""
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
    """Format the attack and encoder of a key as text, marked if labels are shuffled."""
    _, _, attack, encoder, _, _, is_shuffled = key
    named = f"{attack}, {encoder}" if encoder else attack
    return f"{named}, shuffled labels" if is_shuffled else named


def _gain_table(grouped: Mapping[Key, ResultTable]) -> list[str]:
    """Return the Markdown table of gains over the reference attack; empty if rows have none."""
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
    """Return a Markdown line per attack: accuracy lost if labelled texts are of other groups."""
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
    """Return a Markdown line per probe: its accuracy on the topic part of vectors and the rest."""
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
