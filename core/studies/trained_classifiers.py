"""The classifiers of a cell: a target, the attacker's shadow, and shadows on random halves.

They are trained once for all attacks on them and kept; the run of one that was stopped goes on.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.splits import (
    Parts,
    check_apart,
    draw_parts,
    random_halves,
)
from core.attacks.membership.classifiers.targets.lesson import Lesson
from core.attacks.membership.classifiers.targets.registry import TARGETS, make_classifiers
from core.errors import InvalidInputError
from core.store import save_artifact
from core.studies.classed_texts import open_classed
from core.studies.rows import Cell
from core.studies.runner import cell_key
from core.tasks.classifiers import AuthoredTexts, Selection
from core.training.checkpoint import read_kept

__all__ = ["SPLITS", "Trained", "lesson_of", "texts_of", "trained_for", "units_of"]

SPLITS = ("user", "sample")
"""By what members are drawn: users with all their texts, or texts one by one."""

_TARGET, _SHADOW, _HALVES = 0, 1, 2
"""Models in the order in which they are trained: the shadows on halves come last."""


@dataclass(frozen=True, eq=False)
class Trained:
    """What all models answer for all texts.

    Attributes
    ----------
    answers : ndarray of float32, shape (n_models, n, n_classes)
    halves : ndarray of bool, shape (n_models - 2, n)
        Which texts each of the further shadows was trained on.
    """

    texts: AuthoredTexts
    parts: Parts
    answers: NDArray[np.float32]
    halves: NDArray[np.bool_]

    def target(self) -> Outputs:
        """Return what the target answers for the attacked: its members, and as many others."""
        return self._outputs(_TARGET, self.parts.attacked, self.parts.members)

    def null(self) -> Outputs:
        """Return what the attacker's own model answers for the attacked, members told as before.

        It was trained on none of them, so that whatever an attack tells apart here is no leak of
        the model: members and others differ in something else, or membership itself was read.
        """
        return self._outputs(_SHADOW, self.parts.attacked, self.parts.members)

    def shadow(self) -> Outputs:
        """Return what the attacker's own model answers for the attacker's own texts."""
        return self._outputs(_SHADOW, self.parts.shadowed, self.parts.shadow_members)

    def aligned(self) -> Shadows:
        """Return what the shadows on random halves of the attacked answer for the attacked."""
        rows = self.parts.attacked
        return Shadows(
            self.answers[_HALVES:, rows],
            self.texts.class_ids[rows],
            self.halves[:, rows],
            tuple(self.texts.users[i] for i in rows),
        )

    def accuracies(self) -> dict[str, float]:
        """Return the accuracy of the target on its members and on the test texts, and the gap."""
        right = self.answers[_TARGET].argmax(1) == self.texts.class_ids
        known, held = (float(right[rows].mean()) for rows in (self.parts.members, self.parts.test))
        return {
            "train_accuracy": known,
            "test_accuracy": held,
            "generalisation_error": known - held,
        }

    def _outputs(self, model: int, rows: NDArray[np.int64], members: NDArray[np.int64]) -> Outputs:
        return Outputs(
            self.answers[model][rows],
            self.texts.class_ids[rows],
            np.isin(rows, members),
            tuple(self.texts.users[i] for i in rows),
        )


def texts_of(cell: Cell) -> AuthoredTexts:
    """Return the texts of a cell: users, classes and texts that its selection leaves.

    Raises
    ------
    InvalidInputError
        Another file lies at the path than where the study was begun.
    """
    found = open_classed(cell["corpus"], cell["texts"], cell["label"], cell["user"], cell["piece"])
    if found.digest != cell["content"]:
        raise InvalidInputError(
            f"{cell['texts']} holds other texts than where the study was begun. Copy the same "
            "file to every machine, or start the study again."
        )
    return found.selected(Selection(**cell["selection"]), cell["seed"])


def units_of(texts: AuthoredTexts, split: str) -> tuple[Any, ...]:
    """Return of each text what is dealt into members and others: its user, or itself."""
    return texts.users if split == "user" else tuple(range(len(texts)))


def lesson_of(
    texts: AuthoredTexts, units: tuple[Any, ...], n_shadows: int, seed: int
) -> tuple[Lesson, Parts]:
    """Return what target, shadow and `n_shadows` shadows on halves are trained on.

    Raises
    ------
    InvalidInputError
        Too few units, or a shadow that would know what it must not.
    """
    parts = draw_parts(units, seed)
    n = len(texts)
    trained, validated = np.zeros((2, _HALVES + n_shadows, n), dtype=bool)
    trained[_TARGET, parts.members] = True
    trained[_SHADOW, parts.shadow_members] = True
    validated[_TARGET, parts.validation] = True
    validated[_SHADOW:, parts.shadow_validation] = True
    rows = parts.attacked
    if n_shadows:
        trained[_HALVES:, rows] = random_halves([units[i] for i in rows], n_shadows, seed)
    check_apart(parts, units, trained[_SHADOW])
    lesson = Lesson(texts.texts, texts.class_ids, len(texts.classes), trained, validated, seed)
    return lesson, parts


def trained_for(cell: Cell, folder: Path) -> Trained:
    """Return the classifiers of a cell, trained now unless another attack's cell did so."""
    texts = texts_of(cell)
    units = units_of(texts, cell["split"])
    lesson, parts = lesson_of(texts, units, cell["n_shadows"], cell["seed"])
    key = _key(cell)
    answers = _kept(folder / "classifiers" / key, lesson)
    if answers is None:
        checkpoint = folder / "training" / key
        settings = cell["classifier_settings"]
        kind = make_classifiers(cell["classifier"], settings)
        answers = kind.fit(lesson, checkpoint_dir=str(checkpoint)).answers_
        told = {"lesson": lesson.digest, "classifier": cell["classifier"], "settings": settings}
        save_artifact(folder / "classifiers" / key, {"answers": answers}, told)
        shutil.rmtree(checkpoint, ignore_errors=True)
    return Trained(texts, parts, answers, lesson.trained[_HALVES:])


def _key(cell: Cell) -> str:
    """Return the name of what is trained: all of the cell but what is done with it."""
    aside = ("classifier_attack", "versions", "defaults")
    told = {name: value for name, value in cell.items() if name not in aside}
    return cell_key({**told, "version": TARGETS[cell["classifier"]].version})


def _kept(place: Path, lesson: Lesson) -> NDArray[np.float32] | None:
    return read_kept(place, "lesson", lesson.digest, lambda arrays, _: lesson.answers_in(arrays))
