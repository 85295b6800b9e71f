"""The defence of a trade-off cell, ready to protect an encoder; trained first if needed.

A trained defence learns from separate texts that no attacker knows or attacks. It is trained once
per seed, and is the same in the cells of utility and of attacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.shipped import shipped_held_out
from leakscope.core.corpora.near_duplicates import near_duplicates
from leakscope.core.defences.registry import entry_of, make_defence
from leakscope.core.defences.stored import with_trained
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.protocols import Encoder
from leakscope.core.results.rows import Cell
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.named_texts import NamedTexts, contents_of, open_tasks
from leakscope.core.studies.tradeoff.defence_grid import hides_attribute
from leakscope.core.studies.tradeoff.texts import (
    AttackersTexts,
    auxiliary_digest,
    auxiliary_documents,
    auxiliary_texts,
    draw_texts,
    spare_texts,
)
from leakscope.core.studies.tradeoff.trained_defences import (
    DefenceTexts,
    check_unchanged,
    load_or_train_defence,
)
from leakscope.core.studies.training.adversarial_texts import (
    Sides,
    Sizes,
    load_examples,
    part_texts,
    table_digest,
)


@dataclass(frozen=True)
class Guard:
    """The defence of a cell, with its trained stage if it has one.

    Attributes
    ----------
    cell : dict
    trained : Any
        Its trained stage; None without one.
    """

    cell: Cell
    trained: Any = None

    @property
    def defence(self) -> Any:
        """The built defence, seeded by the cell's seed."""
        name, settings = self.cell["defence"], dict(self.cell["defence_settings"])
        entry = entry_of(name)
        if entry.acts_on == "model":  # vectors are unchanged
            return make_defence("none")
        if entry.takes_seed:
            settings["seed"] = self.cell["seed"]
        return with_trained(DefenceSpec.of(name, settings), self.trained)

    def protect(self, encoder: Encoder) -> Encoder:
        """Return an encoder that encodes behind the defence."""
        protected: Encoder = self.defence.protect(encoder)
        return protected

    def over(self, encoder: Encoder) -> Encoder:
        """Return an encoder that encodes behind the defence, with vectors cached where possible.

        Vectors of unchanged texts can be cached; privatised texts never repeat.
        """
        is_last = entry_of(self.cell["defence"]).acts_on in ("vector", "model")
        return self.protect(CachedEncoder(encoder) if is_last else encoder)

    @property
    def training_minutes(self) -> float:
        """The minutes that the defence was trained; 0 if nothing is trained."""
        seconds = self.trained.training_["seconds"] if self.trained is not None else 0.0
        return round(float(seconds) / 60, 5)

    @property
    def facts(self) -> dict[str, Any]:
        """The number of training texts, as facts of a row; empty if nothing is trained."""
        if self.trained is None:
            return {}
        return {"n_defence_texts": self.trained.training_["n_texts"]}


def guard_of(cell: Cell, encoder: Encoder, folder: Path) -> Guard:
    """Build the guard of a cell; a trained defence is loaded, or trained and saved.

    Raises
    ------
    InvalidInputError
        A file has changed since the study was started, or too few are left to learn from.
    DivergedError
        The training diverged; nothing is stored.
    """
    if "trained_defence" not in cell:
        return Guard(cell)
    told = {
        "taught": cell["taught"],
        "seed": cell["seed"],
        "precision": str(getattr(encoder, "precision", "float32")),
    }
    own, texts = CachedEncoder(encoder), partial(defence_training_texts, cell, encoder)
    return Guard(cell, load_or_train_defence(cell, own, told, texts, folder))


def defence_training_texts(cell: Cell, encoder: Encoder) -> DefenceTexts:
    """Draw the training texts of a trained defence: sentences, or texts with the attribute.

    None nearly repeats a text that an attacker of any part knows or attacks.

    Raises
    ------
    InvalidInputError
        A file has changed since the study was started.
    """
    taught, contents = {**cell["taught"], **cell}, cell["taught"]["contents"]
    check_unchanged(auxiliary_digest(cell["auxiliary"]) == contents["auxiliary"])
    drawn = draw_word_texts(taught, encoder)
    others = [*drawn.known, *drawn.held, *drawn.targets]
    sides = None
    if "attributes" in contents:
        sides = attribute_texts({**taught, "contents": contents["attributes"]})
        others += [*sides.known, *sides.targets]
    if "task" in contents:
        check_unchanged(contents_of((cell["task"],), ()) == [contents["task"]])
        (task,) = open_tasks((cell["task"],), ())
        others += task.texts  # type: ignore[attr-defined]
    labels: tuple[str, ...] | None = None
    if hides_attribute(cell["defence"], cell["defence_settings"]):
        assert sides is not None
        texts, labels = sides.defence, sides.defence_labels
    else:
        texts = _defence_sentences(taught, encoder)
    dropped = near_duplicates(texts, others, cell["taught"]["near"])
    kept = [i for i in range(len(texts)) if i not in dropped]
    return DefenceTexts(
        tuple(texts[i] for i in kept),
        None if labels is None else tuple(labels[i] for i in kept),
        frozenset(others),
    )


def draw_word_texts(cell: Cell, encoder: Encoder) -> AttackersTexts:
    """Draw the training texts of the word attackers, and the target texts."""
    return draw_texts(
        auxiliary_texts(cell["auxiliary"]),
        cell["n_auxiliary"],
        cell["n_targets"],
        cell["seed"],
        **_draw_options(cell, encoder),
    )


def _defence_sentences(cell: Cell, encoder: Encoder) -> tuple[str, ...]:
    """Draw sentences for the defence that no word attacker knows or attacks."""
    return spare_texts(
        auxiliary_texts(cell["auxiliary"]),
        cell["n_auxiliary"],
        cell["n_targets"],
        cell["n_defence"],
        cell["seed"],
        **_draw_options(cell, encoder),
    )


def _draw_options(cell: Cell, encoder: Encoder) -> dict[str, Any]:
    """Return the keyword arguments of the draws: held-out marks, documents and threshold."""
    return {
        "held_out": shipped_held_out(encoder) if cell["start"] else None,
        "documents": auxiliary_documents(cell["auxiliary"]),
        "near": cell["near"],
    }


def attribute_texts(cell: Cell) -> Sides:
    """Read the texts with the attribute; split them among defence, attackers and targets.

    Raises
    ------
    InvalidInputError
        The file has changed since the study was started, or too few.
    """
    place = NamedTexts.of(cell["attributes"]).place
    check_unchanged(table_digest(place) == cell["contents"])
    examples = load_examples(place, cell["label"], cell["group"], cell["contents"])
    sizes = Sizes(
        cell["n_labels"], cell["n_defence"], cell["n_attribute_known"], cell["n_attribute_targets"]
    )
    return part_texts(examples, sizes, cell["seed"], cell["near"])
