"""The defence of a cell of the trade-off, ready to protect; one that learns is trained before.

A trained defence learns from texts of its own: no attacker holds them, and none is under attack.
It is trained once a seed, and is the same in what it is used for and in what attacks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.attacks.inversion.shipped import shipped_held_out
from core.corpora.near_duplicates import near_duplicates
from core.defences.registry import entry_of, make_defence
from core.defences.shipped import with_trained
from core.encoders.cache import CachedEncoder
from core.errors import InvalidInputError
from core.protocols import Encoder
from core.specs import DefenceSpec
from core.studies.adversarial_texts import Sides, Sizes, open_examples, part_texts, table_digest
from core.studies.defence_grid import hides_attribute
from core.studies.named_texts import NamedTexts
from core.studies.rows import Cell
from core.studies.tradeoff_texts import (
    AttackersTexts,
    auxiliary_digest,
    auxiliary_documents,
    auxiliary_texts,
    draw_texts,
    folded,
    spare_texts,
)
from core.studies.tradeoff_use import contents_of, open_tasks
from core.studies.trained_defences import kept_defence

__all__ = ["Guard", "OwnTexts", "check_same", "drawn_texts", "guard_of", "own_texts", "sides_of"]


@dataclass(frozen=True)
class Guard:
    """The defence of a cell.

    Attributes
    ----------
    cell : dict
    trained : Any
        The stage of it that was trained; None where none is.
    """

    cell: Cell
    trained: Any = None

    @property
    def defence(self) -> Any:
        """The defence, whose noise is drawn by the cell's seed."""
        name, settings = self.cell["defence"], dict(self.cell["defence_settings"])
        entry = entry_of(name)
        if entry.acts_on == "model":  # vectors stay as they are
            return make_defence("none")
        if entry.takes_seed:
            settings["seed"] = self.cell["seed"]
        return with_trained(DefenceSpec.of(name, settings), self.trained)

    def protect(self, encoder: Encoder) -> Encoder:
        """Return an encoder behind the defence."""
        protected: Encoder = self.defence.protect(encoder)
        return protected

    def over(self, encoder: Encoder) -> Encoder:
        """Return the encoder behind the defence, what can be kept of it remembered on disk.

        Vectors of texts as they are can be; privatised texts never come twice.
        """
        is_last = entry_of(self.cell["defence"]).acts_on in ("vector", "model")
        return self.protect(CachedEncoder(encoder) if is_last else encoder)

    @property
    def training_minutes(self) -> float:
        """How long the defence was trained; 0 where nothing is."""
        seconds = self.trained.training_["seconds"] if self.trained is not None else 0.0
        return round(float(seconds) / 60, 5)

    @property
    def facts(self) -> dict[str, Any]:
        """What a row says of the training."""
        if self.trained is None:
            return {}
        return {"n_defence_texts": self.trained.training_["n_texts"]}


def guard_of(cell: Cell, encoder: Encoder, folder: Path) -> Guard:
    """Return the defence of a cell; one that learns is trained now, or read where it was before.

    Raises
    ------
    InvalidInputError
        A file holds other texts than where the study was begun, or too few are left to learn from.
    DivergedError
        The training ran away; nothing of it is kept.
    """
    if "trained_defence" not in cell:
        return Guard(cell)
    told = {"taught": cell["taught"], "seed": cell["seed"],
            "precision": str(getattr(encoder, "precision", "float32"))}  # fmt: skip
    own = CachedEncoder(encoder)
    return Guard(cell, kept_defence(cell, own, told, lambda: own_texts(cell, encoder), folder))


@dataclass(frozen=True)
class OwnTexts:
    """The texts that a defence is trained on.

    Attributes
    ----------
    defence : tuple of str
    defence_labels : tuple of str or None
        The attribute of each, where it is hidden.
    others : frozenset of str
        What attackers hold or attack.

    Raises
    ------
    InvalidInputError
        A text is among the others; case and punctuation make no other text.
    """

    defence: tuple[str, ...]
    defence_labels: tuple[str, ...] | None
    others: frozenset[str]

    def __post_init__(self) -> None:
        """Check that nobody else has a text."""
        both = {folded(text) for text in self.defence} & {folded(text) for text in self.others}
        if both:
            raise InvalidInputError(
                f"{len(both)} texts that a defence is trained on are known to an attacker, or "
                "attacked: no figure would say how it holds on texts that it never saw."
            )


def own_texts(cell: Cell, encoder: Encoder) -> OwnTexts:
    """Return what a trained defence learns from: sentences, or texts with the attribute it hides.

    None nearly repeats a text that an attacker of any part holds or attacks.

    Raises
    ------
    InvalidInputError
        A file holds other texts than where the study was begun.
    """
    taught, contents = {**cell["taught"], **cell}, cell["taught"]["contents"]
    check_same(auxiliary_digest(cell["auxiliary"]) == contents["auxiliary"])
    drawn = drawn_texts(taught, encoder)
    others = [*drawn.known, *drawn.held, *drawn.targets]
    sides = None
    if "attributes" in contents:
        sides = sides_of({**taught, "contents": contents["attributes"]})
        others += [*sides.known, *sides.targets]
    if "task" in contents:
        check_same(contents_of((cell["task"],), ()) == [contents["task"]])
        (task,) = open_tasks((cell["task"],), ())
        others += task.texts  # type: ignore[attr-defined]
    labels: tuple[str, ...] | None = None
    if hides_attribute(cell["defence"], cell["defence_settings"]):
        assert sides is not None
        texts, labels = sides.defence, sides.defence_labels
    else:
        texts = _spare(taught, encoder)
    dropped = near_duplicates(texts, others, cell["taught"]["near"])
    kept = [i for i in range(len(texts)) if i not in dropped]
    return OwnTexts(
        tuple(texts[i] for i in kept),
        None if labels is None else tuple(labels[i] for i in kept),
        frozenset(others),
    )


def drawn_texts(cell: Cell, encoder: Encoder) -> AttackersTexts:
    """Return the texts of the attackers on words, and those that they attack."""
    return draw_texts(
        auxiliary_texts(cell["auxiliary"]), cell["n_auxiliary"], cell["n_targets"], cell["seed"],
        **_beside(cell, encoder),
    )  # fmt: skip


def _spare(cell: Cell, encoder: Encoder) -> tuple[str, ...]:
    return spare_texts(
        auxiliary_texts(cell["auxiliary"]), cell["n_auxiliary"], cell["n_targets"],
        cell["n_defence"], cell["seed"], **_beside(cell, encoder),
    )  # fmt: skip


def _beside(cell: Cell, encoder: Encoder) -> dict[str, Any]:
    return {
        "held_out": shipped_held_out(encoder) if cell["start"] else None,
        "documents": auxiliary_documents(cell["auxiliary"]),
        "near": cell["near"],
    }


def sides_of(cell: Cell) -> Sides:
    """Return whose texts with the attribute are whose: the defence's, the attackers', targets.

    Raises
    ------
    InvalidInputError
        The file holds other texts than where the study was begun, or too few.
    """
    place = NamedTexts.of(cell["attributes"]).place
    check_same(table_digest(place) == cell["contents"])
    examples = open_examples(place, cell["label"], cell["group"], cell["contents"])
    sizes = Sizes(cell["n_labels"], cell["n_defence"], cell["n_attribute_known"],
                  cell["n_attribute_targets"])  # fmt: skip
    return part_texts(examples, sizes, cell["seed"], cell["near"])


def check_same(is_same: bool) -> None:
    """Check that files hold what they held where the study was begun.

    Raises
    ------
    InvalidInputError
        They do not.
    """
    if not is_same:
        raise InvalidInputError(
            "The files of the tasks, or the attacker's sentences, hold other texts than where the "
            "study was begun. Copy the same files to every machine, or start the study again."
        )
