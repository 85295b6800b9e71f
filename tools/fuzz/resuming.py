"""Works that are stopped and go on, and what is kept of works that were finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

if TYPE_CHECKING:
    from tools.fuzz.making import Making

__all__ = ["ADAPTED_CELL", "ANSWERING", "CELL", "RUNS", "Run", "kept", "lesson"]


@dataclass(frozen=True)
class Run:
    """A work with a checkpoint in the place of what is made, or taken up from there.

    Parameters
    ----------
    go : callable
        Takes what it is made of, and what is told of its progress.
    tells : str
        How what it tells begins, once there is something to keep.
    """

    go: Callable[[Making, Any], object]
    tells: str


def _attack(making: Making, on_progress: Any) -> object:
    from core.attacks.inversion.classifiers.mlc import MLCAttack

    attack = MLCAttack(vocabulary_size=30, epochs=2, batch_size=16)
    return attack.fit(making.encoder, making.texts, making.vectors, on_progress=on_progress,
                      checkpoint_dir=str(making.place))  # fmt: skip


def _defence(making: Making, on_progress: Any) -> object:
    from core.defences.trained.adversarial import AdversarialAdapter

    adapter = AdversarialAdapter(epochs=2, hidden=8, n_words=10, batch_size=16, device="cpu")
    return adapter.fit(making.encoder, making.texts, making.vectors, on_progress=on_progress,
                       checkpoint_dir=str(making.place))  # fmt: skip


def _head(making: Making, on_progress: Any) -> object:
    from core.training.private_heads import HeadSettings, fit_head

    labels = np.arange(len(making.texts), dtype=np.int64) % 2
    settings = HeadSettings(delta=1e-3, batch_size=16, steps=6)
    with _noise_once():
        return fit_head(making.vectors, labels, 2, settings, 0, checkpoint_dir=making.place,
                        on_progress=on_progress)  # fmt: skip


@contextmanager
def _noise_once() -> Iterator[None]:
    """Look but once for the noise that keeps a promise: that takes seconds."""
    with patch("core.training.private.noise_for", _noise_for):
        yield


@cache
def _noise_for(*given: Any) -> float:
    from core.training.accounting import noise_for

    return noise_for(*given)


def _layer(making: Making, on_progress: Any) -> object:
    from core.attacks.inversion.linear_map import LinearMap

    return LinearMap.fit(making.encoder, making.texts, making.vectors, layer=1, held_out=0.2,
                         on_progress=on_progress, checkpoint_dir=str(making.place))  # fmt: skip


RUNS: dict[str, Run] = {
    "an attack": Run(_attack, "Epoch"),
    "a defence": Run(_defence, "Epoch"),
    "a private head": Run(_head, "Epoch"),
    "a map to a layer": Run(_layer, "Fitted"),
}
"""By what is trained."""


def lesson(texts: list[str]) -> Any:
    """Return what one classifier is trained on: the first half of some texts."""
    from core.attacks.membership.classifiers.targets.lesson import Lesson

    n = len(texts)
    trained, validated = np.zeros((2, 1, n), dtype=bool)
    trained[0, : n // 2], validated[0, n // 2 : n // 2 + 4] = True, True
    return Lesson(tuple(texts), np.arange(n, dtype=np.int64) % 2, 2, trained, validated, 0)


def _networks(making: Making) -> Any:
    from core.attacks.membership.classifiers.targets.lstm import LSTMs

    made = LSTMs(vocabulary_size=20, max_length=6, dimension=4, hidden=4, epochs=1)
    return made.fit(lesson(making.texts), checkpoint_dir=str(making.place)).answers_


def _heads(making: Making) -> Any:
    from core.attacks.membership.classifiers.targets.private import PrivateHeads

    made = PrivateHeads(delta=1e-3, batch_size=16, steps=3)
    with _noise_once():
        made.fit_vectors(lesson(making.texts), making.vectors, checkpoint_dir=str(making.place))
    return made.answers_


ANSWERING: dict[str, Callable[[Making], Any]] = {"networks": _networks, "heads": _heads}
"""What answers for the texts of a lesson: read back where it was trained before."""


_ENCODED = {"encoder": "minilm", "encoder_content": "", "precision": "float32",
            "defence": "text_to_text", "defence_settings": {"eta": 50.0}}  # fmt: skip
CELL: dict[str, Any] = {
    **_ENCODED, "task": "news", "texts": "news.csv", "content": "a", "reader": "pretrained",
    "reader_settings": {}, "n_train": 20, "n_test": 10, "seed": 0,
}  # fmt: skip
ADAPTED_CELL: dict[str, Any] = {
    **_ENCODED, "objective": "masked", "objective_settings": {}, "etas": [50.0],
    "other": "texts.txt", "contents": ["b"], "pretraining_seed": 0,
}  # fmt: skip


class _TrainedAnewError(Exception):
    """What was kept is not taken: the work would begin anew."""


def _anew(*_: Any, **__: Any) -> Any:
    raise _TrainedAnewError


def kept(kind: str, folder: Path, texts: list[str]) -> Any:
    """Return what a study makes of an artefact that it kept; None where it would train anew."""
    from core.studies import trained_classifiers, tuned_networks

    with patch.object(tuned_networks, "_tune", _anew), patch.object(
        tuned_networks, "_adapt", _anew
    ):  # fmt: skip
        try:
            if kind == "answers of a study":
                return trained_classifiers._kept(folder, lesson(texts))
            read, cell, part = {
                "tuned network": (tuned_networks.tuned_for, CELL, "tuned"),
                "adapted network": (tuned_networks.adapted_for, ADAPTED_CELL, "adapted"),
            }[kind]
            place = folder.parent / part / tuned_networks._key(cell)
            place.parent.mkdir()
            folder.rename(place)
            return read(cell, folder.parent)
        except _TrainedAnewError:
            return None
