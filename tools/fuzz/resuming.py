"""Runs that are interrupted and resumed, and saved results of finished runs."""

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


@dataclass(frozen=True)
class Run:
    """A resumable run, and the progress message from which it has a checkpoint.

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
    """Train an MLC attack with checkpoints."""
    from leakscope.core.attacks.inversion.classifiers.mlc import MLCAttack

    attack = MLCAttack(vocabulary_size=30, epochs=2, batch_size=16)
    return attack.fit(
        making.encoder,
        making.texts,
        making.vectors,
        on_progress=on_progress,
        checkpoint_dir=str(making.place),
    )


def _defence(making: Making, on_progress: Any) -> object:
    """Train an adversarial adapter with checkpoints."""
    from leakscope.core.defences.trained.adversarial import AdversarialAdapter

    adapter = AdversarialAdapter(epochs=2, hidden=8, n_words=10, batch_size=16, device="cpu")
    return adapter.fit(
        making.encoder,
        making.texts,
        making.vectors,
        on_progress=on_progress,
        checkpoint_dir=str(making.place),
    )


def _head(making: Making, on_progress: Any) -> object:
    """Train a private head with checkpoints."""
    from leakscope.core.training.private_heads import HeadSettings, fit_head

    labels = np.arange(len(making.texts), dtype=np.int64) % 2
    settings = HeadSettings(delta=1e-3, batch_size=16, steps=6)
    with _cached_noise():
        return fit_head(
            making.vectors,
            labels,
            2,
            settings,
            0,
            checkpoint_dir=making.place,
            on_progress=on_progress,
        )


@contextmanager
def _cached_noise() -> Iterator[None]:
    """Patch the noise multiplier's computation, which takes seconds, by a cached one."""
    with patch("leakscope.core.training.private.noise_multiplier_for", _noise_for):
        yield


@cache
def _noise_for(*given: Any) -> float:
    """Return the cached noise multiplier."""
    from leakscope.core.training.accounting import noise_multiplier_for

    return noise_multiplier_for(*given)


def _layer(making: Making, on_progress: Any) -> object:
    """Fit a linear map to a layer with checkpoints."""
    from leakscope.core.attacks.inversion.linear_map import LinearMap

    return LinearMap.fit(
        making.encoder,
        making.texts,
        making.vectors,
        layer=1,
        held_out=0.2,
        on_progress=on_progress,
        checkpoint_dir=str(making.place),
    )


RUNS: dict[str, Run] = {
    "an attack": Run(_attack, "Epoch"),
    "a defence": Run(_defence, "Epoch"),
    "a private head": Run(_head, "Epoch"),
    "a map to a layer": Run(_layer, "Fitted"),
}
"""By what is trained."""


def lesson(texts: list[str]) -> Any:
    """Return a training batch: one classifier trained on the first half of the texts."""
    from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch

    n = len(texts)
    trained, validated = np.zeros((2, 1, n), dtype=bool)
    trained[0, : n // 2], validated[0, n // 2 : n // 2 + 4] = True, True
    return TrainingBatch(tuple(texts), np.arange(n, dtype=np.int64) % 2, 2, trained, validated, 0)


def _networks(making: Making) -> Any:
    """Train LSTM targets and return their answers."""
    from leakscope.core.attacks.membership.classifiers.targets.lstm import LSTMs

    made = LSTMs(vocabulary_size=20, max_length=6, dimension=4, hidden=4, epochs=1)
    return made.fit(lesson(making.texts), checkpoint_dir=str(making.place)).answers_


def _heads(making: Making) -> Any:
    """Train private heads and return their answers."""
    from leakscope.core.attacks.membership.classifiers.targets.private import PrivateHeads

    made = PrivateHeads(delta=1e-3, batch_size=16, steps=3)
    with _cached_noise():
        made.fit_vectors(lesson(making.texts), making.vectors, checkpoint_dir=str(making.place))
    return made.answers_


ANSWERING: dict[str, Callable[[Making], Any]] = {"networks": _networks, "heads": _heads}
"""What answers for the texts of a lesson: read back where it was trained before."""


_ENCODED = {
    "encoder": "minilm",
    "encoder_content": "",
    "precision": "float32",
    "defence": "text_to_text",
    "defence_settings": {"eta": 50.0},
}
CELL: dict[str, Any] = {
    **_ENCODED,
    "task": "news",
    "texts": "news.csv",
    "content": "a",
    "reader": "pretrained",
    "reader_settings": {},
    "n_train": 20,
    "n_test": 10,
    "seed": 0,
}
ADAPTED_CELL: dict[str, Any] = {
    **_ENCODED,
    "objective": "masked",
    "objective_settings": {},
    "etas": [50.0],
    "other": "texts.txt",
    "contents": ["b"],
    "pretraining_seed": 0,
}


class _TrainsAgainError(Exception):
    """Raised where a study would train again instead of using saved results."""


def _refuse_training(*_: Any, **__: Any) -> Any:
    """Raise _TrainsAgainError."""
    raise _TrainsAgainError


def kept(kind: str, folder: Path, texts: list[str]) -> Any:
    """Return what a study loads from a saved artifact; None if it would train again."""
    from leakscope.core.studies.membership import trained_classifiers
    from leakscope.core.studies.training import tuned_networks

    with (
        patch.object(tuned_networks, "_tune", _refuse_training),
        patch.object(tuned_networks, "_adapt", _refuse_training),
    ):
        try:
            if kind == "answers of a study":
                return trained_classifiers._load_answers(folder, lesson(texts))
            read, cell, part = {
                "tuned network": (tuned_networks.load_or_tune, CELL, "tuned"),
                "adapted network": (tuned_networks.load_or_adapt, ADAPTED_CELL, "adapted"),
            }[kind]
            place = folder.parent / part / tuned_networks._storage_key(cell)
            place.parent.mkdir()
            folder.rename(place)
            return read(cell, folder.parent)
        except _TrainsAgainError:
            return None
