"""The trained models of a cell: target, attacker's shadow, and shadows on random halves.

They are trained once for all attacks and stored; an interrupted training resumes.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.splits import (
    Parts,
    check_disjoint,
    draw_parts,
    random_halves,
)
from leakscope.core.attacks.membership.classifiers.targets.registry import TARGETS, make_classifiers
from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.errors import InvalidInputError
from leakscope.core.results.rows import Cell
from leakscope.core.storage.artifacts import save_artifact
from leakscope.core.studies.named_texts import open_classed
from leakscope.core.studies.runner import cell_key
from leakscope.core.tasks.classifiers import AuthoredTexts, Selection
from leakscope.core.training.checkpoint import load_finished

SPLITS = ("user", "sample")
"""The units that members are drawn by: users with all their texts, or single texts."""

_TARGET, _SHADOW, _HALVES = 0, 1, 2
"""Models in the order in which they are trained: the shadows on halves come last."""


@dataclass(frozen=True, eq=False)
class TrainedModels:
    """The answers of all trained models for all texts.

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
        """Return the target's outputs on the attacked texts: its members and as many others."""
        return self._outputs(_TARGET, self.parts.attacked, self.parts.members)

    def null(self) -> Outputs:
        """Return the shadow's outputs on attacked texts, new to it, with the target's membership.

        The shadow was trained on none of them, so any attack success here is not a leak of the
        model: members and non-members differ otherwise, or the procedure itself leaks.
        """
        return self._outputs(_SHADOW, self.parts.attacked, self.parts.members)

    def shadow(self) -> Outputs:
        """Return the shadow's outputs on the attacker's own texts."""
        return self._outputs(_SHADOW, self.parts.shadowed, self.parts.shadow_members)

    def aligned(self) -> Shadows:
        """Return the outputs on the attacked texts of the shadows trained on random halves."""
        rows = self.parts.attacked
        return Shadows(
            self.answers[_HALVES:, rows],
            self.texts.class_ids[rows],
            self.halves[:, rows],
            tuple(self.texts.users[i] for i in rows),
        )

    def accuracies(self) -> dict[str, float]:
        """Return the target's accuracy on members and test texts, and their gap."""
        right = self.answers[_TARGET].argmax(1) == self.texts.class_ids
        known, held = (float(right[rows].mean()) for rows in (self.parts.members, self.parts.test))
        return {
            "train_accuracy": known,
            "test_accuracy": held,
            "generalisation_error": known - held,
        }

    def _outputs(self, model: int, rows: NDArray[np.int64], members: NDArray[np.int64]) -> Outputs:
        """Return one model's outputs on the texts of given indices, with their membership."""
        return Outputs(
            self.answers[model][rows],
            self.texts.class_ids[rows],
            np.isin(rows, members),
            tuple(self.texts.users[i] for i in rows),
        )


def texts_of(cell: Cell) -> AuthoredTexts:
    """Read the texts that a cell selects; raise if the file changed since the study was started.

    Raises
    ------
    InvalidInputError
        The file at the path is not the one with which the study was started.
    """
    found = open_classed(cell["corpus"], cell["texts"], cell["label"], cell["user"], cell["piece"])
    if found.digest != cell["content"]:
        raise InvalidInputError(
            f"{cell['texts']} has changed since the study was started. Copy the same file "
            "to every machine, or start the study again."
        )
    return found.selected(Selection(**cell["selection"]), cell["seed"])


def units_of(texts: AuthoredTexts, split: str) -> tuple[Any, ...]:
    """Return the unit of each text that membership is drawn by: its user or its index."""
    return texts.users if split == "user" else tuple(range(len(texts)))


def training_batch_of(
    texts: AuthoredTexts, units: tuple[Any, ...], n_shadows: int, seed: int
) -> tuple[TrainingBatch, Parts]:
    """Assign texts to the target, the shadow and each half shadow; return batch and parts.

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
    check_disjoint(parts, units, trained[_SHADOW])
    lesson = TrainingBatch(
        texts.texts, texts.class_ids, len(texts.classes), trained, validated, seed
    )
    return lesson, parts


def load_or_train_models(cell: Cell, folder: Path) -> TrainedModels:
    """Load a cell's models if another attack's cell trained them, or train and store them."""
    texts = texts_of(cell)
    units = units_of(texts, cell["split"])
    lesson, parts = training_batch_of(texts, units, cell["n_shadows"], cell["seed"])
    aside = ("classifier_attack", "versions", "defaults")
    told = {name: value for name, value in cell.items() if name not in aside}
    key = cell_key({**told, "version": TARGETS[cell["classifier"]].version})
    answers = load_answers(folder / "classifiers" / key, lesson)
    if answers is None:
        checkpoint = folder / "training" / key
        settings = cell["classifier_settings"]
        kind = make_classifiers(cell["classifier"], settings)
        answers = kind.fit(lesson, checkpoint_dir=str(checkpoint)).answers_
        made_by = {"lesson": lesson.digest, "classifier": cell["classifier"], "settings": settings}
        save_artifact(folder / "classifiers" / key, {"answers": answers}, made_by)
        shutil.rmtree(checkpoint, ignore_errors=True)
    return TrainedModels(texts, parts, answers, lesson.trained[_HALVES:])


def load_answers(place: Path, batch: TrainingBatch) -> NDArray[np.float32] | None:
    """Load the stored outputs of models trained on a batch; None if there are none."""
    return load_finished(place, "lesson", batch.digest, lambda arrays, _: batch.answers_in(arrays))
