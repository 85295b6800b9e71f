"""The attribute study: how well attacks infer an attribute such as the author (SR20, §6.3).

It runs every attack with growing numbers of labels and of labelled texts per label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from leakscope.core.attacks.attributes.draw import SPLITS, Draw, Plan, draw
from leakscope.core.attacks.attributes.examples import Examples, read_examples
from leakscope.core.attacks.attributes.experiment import Case, encode_draws, run_cases
from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS, make_attribute_attack
from leakscope.core.corpora import split_reference
from leakscope.core.corpora.documents import digest_fields
from leakscope.core.encoders.registry import FITTED_ENCODERS, FITTED_ON_TEXTS
from leakscope.core.errors import InvalidInputError
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import REQUIRED, setting, settings_of
from leakscope.core.studies.attributes.rows import (
    anonymise_labels,
    rows_from_cases,
    with_answers,
    with_gains,
)
from leakscope.core.studies.attributes.tables import markdown as markdown
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
        """Check that n_known and n_drawn cover the largest sizes."""
        for name, most in (("n_known", max(self.sizes)), ("n_drawn", max(self.labels))):
            if 0 < (given := getattr(self, name)) < most:
                raise InvalidInputError(
                    f"{name} must be at least {most}, the largest number in the study, or 0: got "
                    f"{given}."
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table must have: label and group."""
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
        """Add gains over the reference attack to the rows, and anonymise labels if asked."""
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
    """Draw texts, encode and attack them; return a row per size and seed, controls included."""
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
    cases = _cases(cell, next(iter(draws.values())))
    found = run_cases(make_attribute_attack(name, given), cases, examples, draws, shared)
    rows = rows_from_cases(found, examples, draws, shared)
    return [
        with_answers(row, each, draws[each.case.seed])
        for row, each in zip(rows, found, strict=True)
    ]


def _plan(cell: Cell, seed: int) -> Plan:
    """Return the draw plan of a cell under a seed."""
    return Plan(
        n_labels=cell["n_drawn"],
        n_per_label=cell["n_known"],
        n_targets=cell["n_targets"],
        split=cell["split"],
        run_length=cell["run_length"],
        near=cell["near"],
        seed=seed,
    )


def _cases(cell: Cell, drawn: Draw) -> list[Case]:
    """Return the cases of each size and seed, and the controls for each number of labels."""
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
    """Return a digest of the texts with their labels and groups."""
    examples = _read_examples(target, label, group)
    return digest_fields([*examples.texts, *examples.labels, *(examples.groups or ())])[:16]


@lru_cache(maxsize=8)
def _draw_cached(target: str, label: str, group: str, plan: Plan) -> Draw:
    """Draw labelled texts and targets by a plan, once per process."""
    return draw(_read_examples(target, label, group), plan)
