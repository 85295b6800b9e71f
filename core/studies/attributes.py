"""What vectors say about an attribute of their texts, such as the author (SR20, §6.3, Fig. 3).

Every attack that infers it, on growing numbers of labels and of labelled texts of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.attacks.attributes.draw import SPLITS, Draw, Plan, draw
from core.attacks.attributes.examples import Examples, read_examples
from core.attacks.attributes.experiment import Case, answer_all, share_vectors
from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS, make_attribute_attack
from core.corpora import split_reference
from core.corpora.documents import digest_fields
from core.encoders.fitted import FITTED_ENCODERS, FITTED_ON_TEXTS
from core.errors import InvalidInputError
from core.specs import REQUIRED, setting, settings_of
from core.studies.apart import near_setting
from core.studies.attribute_compared import compared, with_answers
from core.studies.attribute_rows import anonymised, rows_of_found
from core.studies.attribute_tables import markdown
from core.studies.domains import content_of, encoder_settings, open_corpus, open_encoder
from core.studies.rows import Cell, Row

__all__ = ["AttributeStudy", "markdown", "measure"]


@dataclass(frozen=True, kw_only=True)
class AttributeStudy:
    """Each attack on each size of a draw; the linear probes of an encoder are one cell."""

    target: str = setting(REQUIRED, "a table of texts with the attribute")
    label_column: str = setting("author", "column of the attribute")
    group_column: str = setting(
        "", "column of what texts come from, such as a book; needed by all splits but row"
    )
    other: str = setting("wikipedia", "the corpus that encoders are fitted on")
    encoders: tuple[str, ...] = setting(("minilm",), "encoders by name")
    attribute_attacks: tuple[str, ...] = setting(
        tuple(ATTRIBUTE_ATTACKS), "attacks by name", choices=tuple(ATTRIBUTE_ATTACKS),
        flag="attacks",
    )  # fmt: skip
    labels: tuple[int, ...] = setting(
        (20, 50), "labels told apart, drawn by chance", low=2, flag="n-labels"
    )
    sizes: tuple[int, ...] = setting(
        (10, 20, 30, 40, 50), "labelled texts of each", low=1, paper="SR20", flag="n-per-label"
    )
    n_known: int = setting(
        0, "labelled texts of each that targets are drawn beside and do not nearly repeat; 0: as "
        "many as the largest size. Studies that share it and n-drawn share their targets", low=0,
    )  # fmt: skip
    n_drawn: int = setting(
        0, "labels that are drawn, of which the first take part; 0: as many as the most told apart",
        low=0,
    )  # fmt: skip
    n_targets: int = setting(250, "texts under attack of each at most", low=1, paper="SR20")
    splits: tuple[str, ...] = setting(
        ("row",), "where labelled texts come from, beside the targets", choices=tuple(SPLITS)
    )
    run_length: int = setting(50, "consecutive texts that are a run", low=2)
    near: float = near_setting()
    seeds: tuple[int, ...] = setting((0, 1, 2, 3, 4), "one run each", low=0, paper="SR20")
    reference: str = setting(
        "linear", "attack that the others are held against on the same targets, with the first "
        "encoder, where it is one of them", choices=tuple(ATTRIBUTE_ATTACKS),
    )  # fmt: skip
    is_anonymous: bool = setting(
        False, "write label 1, label 2, … for those that are mixed up", flag="anonymous"
    )

    def __post_init__(self) -> None:
        """Check that all that is measured can be taken from one draw."""
        for name, most in (("n_known", max(self.sizes)), ("n_drawn", max(self.labels))):
            if 0 < (given := getattr(self, name)) < most:
                raise InvalidInputError(
                    f"{name} must be at least {most}, the most that the study asks for, or 0: got "
                    f"{given}."
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table has to have."""
        return tuple(filter(None, (self.label_column, self.group_column)))

    def cells(self) -> list[Cell]:
        """Return what is to be measured.

        Attacks that learn in a moment are a cell each; one that learns for minutes is a cell for
        every size and seed, so that a run that is stopped loses no more than that.
        """
        return [
            cell | part
            for split in self.splits
            for attack in self.attribute_attacks
            for cell in self._of_attack(split, attack)
            for part in self._parts(attack)
        ]

    def finish(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows as they may be written: held against each other; labels may be people."""
        rows = compared(rows, self.reference, next(iter(self.encoders), ""))
        return anonymised(rows) if self.is_anonymous else rows

    def _of_attack(self, split: str, attack: str) -> list[Cell]:
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
        return [
            shared | self._of_encoder(encoder)
            for encoder in self.encoders
            if ATTRIBUTE_ATTACKS[attack].reads_sparse or not _gives_sparse(encoder)
        ]

    def _of_encoder(self, encoder: str) -> Cell:
        is_fitted = encoder in FITTED_ON_TEXTS
        told = {"encoder": encoder, "encoder_settings": encoder_settings(encoder)}
        fit_on = {"other": self.other, "other_content": content_of(self.other)}
        return told | (fit_on if is_fitted else {})

    def _parts(self, attack: str) -> list[Cell]:
        """Return the sizes and seeds of each cell; the largest size has a control."""
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
    """Draw, encode, attack; the rows of each size and seed, controls with labels shuffled too."""
    target = cell["target"], cell["label"], cell["group"]
    if _content_of(*target) != cell["content"]:
        raise InvalidInputError(
            f"{cell['target']} holds other texts than where the study was begun. Copy the same "
            "file to every machine, or start the study again."
        )
    examples = _examples(*target)
    draws = {seed: _drawn(*target, _plan(cell, seed)) for seed in cell["seeds"]}
    name = cell["attribute_attack"]
    given = {k: tuple(v) if isinstance(v, list) else v
             for k, v in cell["attribute_settings"].items()}  # fmt: skip
    shared = None
    if "encoder" in cell:
        encoder = open_encoder(
            cell["encoder"],
            {"other": cell.get("other", "")},
            lambda: _sentences(cell["other"]),
            folder,
            contents=[cell.get("other_content", "")],
        )
        shared = share_vectors(examples, draws, encoder)
    cases = _cases(cell, next(iter(draws.values())))
    found = answer_all(make_attribute_attack(name, given), cases, examples, draws, shared)
    rows = rows_of_found(found, examples, draws, shared)
    return [with_answers(row, each, draws[each.case.seed])
            for row, each in zip(rows, found, strict=True)]  # fmt: skip


def _plan(cell: Cell, seed: int) -> Plan:
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
    """Return each size and seed, and for each number of labels the controls."""
    sizes = [(n_labels, n, False) for n_labels in cell["labels"] for n in cell["sizes"]]
    controls = [(n_labels, n, True) for n_labels in cell["labels"] for n in cell["controls"]]
    return [
        Case(seed, source, n_labels, n, is_shuffled)
        for seed in cell["seeds"]
        for source in drawn.known
        for n_labels, n, is_shuffled in [*sizes, *controls]
    ]


def _gives_sparse(encoder: str) -> bool:
    family = FITTED_ENCODERS.get(encoder.partition(":")[0])
    return family is not None and family.gives_sparse


@lru_cache(maxsize=2)
def _examples(target: str, label: str, group: str) -> Examples:
    path, column = split_reference(target)
    return read_examples(
        Path(path), label_column=label, group_column=group or None, text_column=column
    )


@lru_cache(maxsize=4)
def _content_of(target: str, label: str, group: str) -> str:
    """Return what identifies the texts with their labels and groups."""
    examples = _examples(target, label, group)
    return digest_fields([*examples.texts, *examples.labels, *(examples.groups or ())])[:16]


@lru_cache(maxsize=8)
def _drawn(target: str, label: str, group: str, plan: Plan) -> Draw:
    return draw(_examples(target, label, group), plan)


def _sentences(corpus: str) -> Sequence[str]:
    found: Any = open_corpus(corpus).sentences().texts
    return list(found)
