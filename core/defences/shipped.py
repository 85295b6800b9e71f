"""Trained defences that ship with Leakscope, in assets/defences/<encoder>/, found by settings."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.assets import ASSETS
from core.defences.chain import Chain
from core.defences.entries import ChainEntry, settings_by_stage
from core.defences.registry import all_defences, entry_of, make_defence
from core.defences.stored import load_defence
from core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence
from core.errors import CoreError
from core.protocols import Defence, TrainedDefence
from core.specs import DefenceSpec, settings_of
from core.store import META, read_json

__all__ = ["SHIPPED", "find_shipped", "shipped_names", "with_trained"]

SHIPPED = ASSETS / "defences"

_ASIDE = {"device"}
"""Settings that say where it was trained, not what."""


def find_shipped(spec: DefenceSpec, encoder: str, folder: Path = SHIPPED) -> TrainedDefence | None:
    """Return the trained first stage of a defence or a chain for an encoder, by its name.

    None where none ships that was trained with just these settings.

    Raises
    ------
    ArtifactError
        One is damaged.
    """
    stage, settings = _first(spec)
    if stage not in TRAINED_DEFENCES:
        return None
    wanted = _settings(make_trained_defence(DefenceSpec.of(stage, settings)))
    for name, stored, place in _told(folder / encoder):
        if name == stage and {k: v for k, v in stored.items() if k not in _ASIDE} == wanted:
            return _opened(place)
    return None


def shipped_names(encoder: str, folder: Path = SHIPPED) -> list[str]:
    """Return the names of the defences of which any ships for an encoder."""
    there = {name for name, _, _ in _told(folder / encoder)}
    return [name for name in TRAINED_DEFENCES if name in there]


def with_trained(spec: DefenceSpec, trained: Any) -> Defence:
    """Return a defence, or a chain, whose first stage is trained already.

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
def _told(folder: Path) -> tuple[tuple[str, dict[str, Any], Path], ...]:
    """Return the name, settings and place of what ships for an encoder; what cannot be read is not.

    Each is opened, and checked, where it is wanted.
    """
    found = []
    for meta in sorted(folder.glob(f"*/{META}")):
        with suppress(CoreError):
            said = read_json(meta)
            if isinstance(said, dict) and isinstance(said.get("settings"), dict):
                found.append((str(said.get("defence")), said["settings"], meta.parent))
    return tuple(found)


@lru_cache(maxsize=4)
def _opened(place: Path) -> TrainedDefence:
    return load_defence(place)


def _first(spec: DefenceSpec) -> tuple[str, dict[str, Any]]:
    entry = entry_of(spec.name)
    if not isinstance(entry, ChainEntry):
        return spec.name, dict(spec.settings)
    return entry.stages[0], settings_by_stage(entry, dict(spec.settings))[entry.stages[0]]


def _settings(defence: Any) -> dict[str, Any]:
    return {k: getattr(defence, k) for k in settings_of(type(defence)) if k not in _ASIDE}
