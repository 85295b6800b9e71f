"""Save and load trained defences, without pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leakscope.core.defences.registry import DEFENCES, make_defence
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence
from leakscope.core.errors import ArtifactError, CoreError, InvalidInputError
from leakscope.core.protocols import TrainedDefence
from leakscope.core.registry import name_of
from leakscope.core.specs import DefenceSpec, settings_of
from leakscope.core.storage.artifacts import UNFIT, load_artifact, save_artifact


def save_defence(
    defence: TrainedDefence, folder: Path, *, training: dict[str, Any] | None = None
) -> Path:
    """Write a trained defence to a folder: its arrays, settings and training record.

    A seed of its noise that is not a declared setting is left out: anyone with the file could draw
    the same noise and subtract it.

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
        raise InvalidInputError(f"{type(defence).__name__} is not a registered defence.")
    arrays, state = defence.state()
    settings = {key: getattr(defence, key) for key in settings_of(type(defence))}
    head = {"kind": "defence", "defence": name, "settings": settings, "training": training or {}}
    return save_artifact(folder, arrays, {**head, "state": state})


def load_defence(folder: Path, *, seed: int | None = None) -> TrainedDefence:
    """Load a trained defence from a folder that `save_defence` wrote, with its `training_` record.

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
            raise InvalidInputError(f"its kind is {meta['kind']!r}")
        spec = DefenceSpec.of(meta["defence"], settings)
        is_trained = spec.name in TRAINED_DEFENCES
        defence: Any = make_trained_defence(spec) if is_trained else make_defence(spec)
        if not isinstance(defence, TrainedDefence):
            raise InvalidInputError(f"{meta['defence']} is not a trained defence")
        defence = defence.load_state(arrays, meta["state"])
    except (*UNFIT, CoreError) as error:
        raise ArtifactError(f"{folder} does not contain a trained defence: {error}") from error
    defence.training_ = dict(meta.get("training") or {})
    return defence
