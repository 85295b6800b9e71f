"""Trained defences that ship with Leakscope, in assets/defences/<encoder>/, found by settings."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from core.assets import ASSETS
from core.defences.chain import Chain
from core.defences.entries import ChainEntry, settings_by_stage
from core.defences.registry import all_defences, entry_of, make_defence
from core.defences.stored import load_defence
from core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence
from core.protocols import Defence, TrainedDefence
from core.specs import DefenceSpec, settings_of

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
    same = (each for each in _shipped(folder / encoder) if _settings(each) == wanted)
    return next((each for each in same if isinstance(each, TRAINED_DEFENCES[stage].kind)), None)


def shipped_names(encoder: str, folder: Path = SHIPPED) -> list[str]:
    """Return the names of the defences of which any ships for an encoder."""
    kinds = tuple(type(each) for each in _shipped(folder / encoder))
    return [name for name, entry in TRAINED_DEFENCES.items() if entry.kind in kinds]


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
def _shipped(folder: Path) -> tuple[TrainedDefence, ...]:
    """Return what ships for an encoder, read once a process."""
    return tuple(load_defence(each) for each in sorted(folder.glob("*")) if each.is_dir())


def _first(spec: DefenceSpec) -> tuple[str, dict[str, Any]]:
    entry = entry_of(spec.name)
    if not isinstance(entry, ChainEntry):
        return spec.name, dict(spec.settings)
    return entry.stages[0], settings_by_stage(entry, dict(spec.settings))[entry.stages[0]]


def _settings(defence: Any) -> dict[str, Any]:
    return {k: getattr(defence, k) for k in settings_of(type(defence)) if k not in _ASIDE}
