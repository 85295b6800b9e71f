"""Trained defences that ship with Leakscope in assets/defences/<encoder>/, found by settings."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakscope.core.assets import ASSETS
from leakscope.core.defences.chain import Chain
from leakscope.core.defences.entries import ChainEntry, settings_by_stage
from leakscope.core.defences.registry import all_defences, entry_of, make_defence
from leakscope.core.defences.stored import load_defence
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence
from leakscope.core.errors import CoreError
from leakscope.core.protocols import Defence, TrainedDefence
from leakscope.core.specs import DefenceSpec, settings_of
from leakscope.core.storage.artifacts import META, read_json

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
    stage, settings = _first_stage(spec)
    if stage not in TRAINED_DEFENCES:
        return None
    wanted = _model_settings(make_trained_defence(DefenceSpec.of(stage, settings)))
    for name, stored, place in _list_shipped(folder / encoder):
        if (
            name == stage
            and {k: v for k, v in stored.items() if k not in _MACHINE_SETTINGS} == wanted
        ):
            return _load_cached(place)
    return None


def shipped_names(encoder: str, folder: Path = SHIPPED) -> list[str]:
    """Return the names of the trained defences that ship for an encoder."""
    there = {name for name, _, _ in _list_shipped(folder / encoder)}
    return [name for name in TRAINED_DEFENCES if name in there]


def with_trained(spec: DefenceSpec, trained: Any) -> Defence:
    """Build a defence or a chain whose first stage is the given trained defence.

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
    """List name, settings and folder of each readable defence that ships for an encoder.

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
    """Load a trained defence from its folder, cached."""
    return load_defence(place)


def _first_stage(spec: DefenceSpec) -> tuple[str, dict[str, Any]]:
    """Return the name and settings of the first stage of a defence or a chain."""
    entry = entry_of(spec.name)
    if not isinstance(entry, ChainEntry):
        return spec.name, dict(spec.settings)
    return entry.stages[0], settings_by_stage(entry, dict(spec.settings))[entry.stages[0]]


def _model_settings(defence: Any) -> dict[str, Any]:
    """Return a defence's settings as a dict, without those of the machine it was trained on."""
    return {
        k: getattr(defence, k) for k in settings_of(type(defence)) if k not in _MACHINE_SETTINGS
    }
