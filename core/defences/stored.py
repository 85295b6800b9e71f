"""Save, load and find trained defences, without pickle; those in assets/defences ship."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakscope.core.assets import ASSETS
from leakscope.core.defences.chain import Chain
from leakscope.core.defences.entries import ChainEntry, first_stage, settings_by_stage
from leakscope.core.defences.registry import DEFENCES, all_defences, entry_of, make_defence
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence
from leakscope.core.encoders import load_encoder
from leakscope.core.errors import ArtifactError, CoreError, InvalidInputError
from leakscope.core.protocols import Defence, Encoder, TrainedDefence
from leakscope.core.registry import name_of
from leakscope.core.specs import DefenceSpec, EncoderSpec, settings_of
from leakscope.core.storage.artifacts import META, UNFIT, load_artifact, read_json, save_artifact


def save_defence(
    defence: TrainedDefence, folder: Path, *, training: dict[str, Any] | None = None
) -> Path:
    """Write a fitted defence's arrays, settings and training record to a folder; return it.

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
    """Load a trained defence from a folder that `save_defence` wrote; set its `training_` record.

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


def open_defended(spec: EncoderSpec, folder: str) -> Encoder:
    """Load a trained defence and the encoder it was trained for; return the protected encoder.

    Raises
    ------
    ArtifactError
        The folder holds none, or not the name of its encoder.
    EncoderMismatchError
        The encoder of that name is another than the defence was trained for.
    """
    defence = load_defence(Path(folder))
    name = defence.training_.get("encoder")  # type: ignore[attr-defined]
    if not isinstance(name, str) or name.startswith("defended:"):
        raise ArtifactError(
            f"{folder} does not name the encoder of its defence. Train it again with `defend`."
        )
    return defence.protect(load_encoder(replace(spec, name=name)))


SHIPPED = ASSETS / "defences"

_MACHINE_SETTINGS = {"device"}
"""Settings that describe only the machine of the training."""


def find_shipped(spec: DefenceSpec, encoder: str, folder: Path = SHIPPED) -> TrainedDefence | None:
    """Load the shipped trained defence for a spec's first stage and an encoder; None if none ships.

    The settings it was trained with must be exactly those of the spec.

    Raises
    ------
    ArtifactError
        One is damaged.
    """
    first = first_stage(entry_of(spec.name), spec)
    if first.name not in TRAINED_DEFENCES:
        return None
    wanted = _model_settings(make_trained_defence(first))
    for name, stored, place in _list_shipped(folder / encoder):
        if (
            name == first.name
            and {k: v for k, v in stored.items() if k not in _MACHINE_SETTINGS} == wanted
        ):
            return _load_cached(place)
    return None


def shipped_names(encoder: str, folder: Path = SHIPPED) -> list[str]:
    """Return the names of the trained defences that ship for an encoder."""
    there = {name for name, _, _ in _list_shipped(folder / encoder)}
    return [name for name in TRAINED_DEFENCES if name in there]


def with_trained(spec: DefenceSpec, trained: Any) -> Defence:
    """Build a spec's defence or chain with the given fitted defence as first stage, if not None.

    Parameters
    ----------
    trained : TrainedDefence or None
        None where nothing of it is trained.
    """
    entry = entry_of(spec.name)
    if trained is None:
        return make_defence(spec)
    if not isinstance(entry, ChainEntry):
        found: Defence = trained
        return found
    own = settings_by_stage(entry, dict(spec.settings))
    first, *later = entry.stages
    stages = {first: trained} | {s: make_defence(DefenceSpec.of(s, own[s])) for s in later}
    return Chain(tuple((all_defences()[name].acts_on, each) for name, each in stages.items()))


@lru_cache(maxsize=4)
def _list_shipped(folder: Path) -> tuple[tuple[str, dict[str, Any], Path], ...]:
    """Read the name, settings and folder of each trained defence that ships in a folder.

    Each is opened, and checked, when it is needed.
    """
    found = []
    for meta in sorted(folder.glob(f"*/{META}")):
        with suppress(CoreError):
            record = read_json(meta)
            if isinstance(record, dict) and isinstance(record.get("settings"), dict):
                found.append((str(record.get("defence")), record["settings"], meta.parent))
    return tuple(found)


@lru_cache(maxsize=4)
def _load_cached(place: Path) -> TrainedDefence:
    """Load a trained defence from its folder; later calls return the same object."""
    return load_defence(place)


def _model_settings(defence: Any) -> dict[str, Any]:
    """Return a defence's settings by name, except those of the machine that trained it."""
    return {
        k: getattr(defence, k) for k in settings_of(type(defence)) if k not in _MACHINE_SETTINGS
    }
