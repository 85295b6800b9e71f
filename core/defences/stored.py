"""Trained defences on disk: saved and loaded without pickle, as trained attacks are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.defences.registry import DEFENCES, make_defence
from core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence
from core.errors import ArtifactError, CoreError, InvalidInputError
from core.protocols import TrainedDefence
from core.registry import name_of
from core.specs import DefenceSpec, settings_of
from core.store import UNFIT, load_artifact, save_artifact

__all__ = ["load_defence", "save_defence"]


def save_defence(
    defence: TrainedDefence, folder: Path, *, training: dict[str, Any] | None = None
) -> Path:
    """Write a trained defence: its arrays, its settings and what it was trained on.

    A seed of its noise that is not a declared setting is left out: whoever had the file could
    draw the same noise and take it off again.

    Raises
    ------
    InvalidInputError
        It is not in the registry.
    NotFittedError
        It was not fitted.
    StorageError
        The disk is full or the folder cannot be written.
    """
    name = name_of({**DEFENCES, **TRAINED_DEFENCES}, type(defence))
    if name is None:
        raise InvalidInputError(f"{type(defence).__name__} is not in the registry of defences.")
    arrays, state = defence.state()
    settings = {key: getattr(defence, key) for key in settings_of(type(defence))}
    head = {"kind": "defence", "defence": name, "settings": settings, "training": training or {}}
    return save_artifact(folder, arrays, {**head, "state": state})


def load_defence(folder: Path, *, seed: int | None = None) -> TrainedDefence:
    """Read what `save_defence` wrote; its `training_` tells what it was trained on.

    Parameters
    ----------
    seed : int, optional
        Of the noise, for a defence that draws some beside its declared settings.

    Raises
    ------
    ArtifactError
        The files are missing, damaged or do not describe a trained defence.
    """
    arrays, meta = load_artifact(folder)
    try:
        settings = dict(meta.get("settings") or {}) | ({} if seed is None else {"seed": seed})
        if meta["kind"] != "defence":
            raise InvalidInputError(f"it holds something of kind {meta['kind']!r}")
        spec = DefenceSpec.of(meta["defence"], settings)
        is_trained = spec.name in TRAINED_DEFENCES
        defence: Any = make_trained_defence(spec) if is_trained else make_defence(spec)
        if not isinstance(defence, TrainedDefence):
            raise InvalidInputError(f"{meta['defence']} learns nothing")
        defence = defence.load_state(arrays, meta["state"])
    except (*UNFIT, CoreError) as error:
        raise ArtifactError(f"{folder} does not hold a trained defence: {error}") from error
    defence.training_ = dict(meta.get("training") or {})
    return defence
