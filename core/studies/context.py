"""What decides a measurement beside a study's own settings: contents, defaults, weights, versions.

Joins a cell where it is not what it was when it was first recorded, in `first_settings.json`: what
was finished before stays finished, and what has changed since is measured anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.assets import ASSETS
from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.attacks.inversion.shipped import shipped_folder
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.attacks.membership.classifiers.targets.registry import TARGETS
from core.defences.registry import DEFENCES, stages_of
from core.defences.trained.registry import TRAINED_DEFENCES
from core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from core.encoders import load_encoder
from core.encoders.hub import fetched_revision
from core.encoders.registry import ENCODERS
from core.errors import CoreError, InvalidInputError
from core.registry import Entry
from core.specs import EncoderSpec, settings_of
from core.store import META, digest_file, digest_of, read_json
from core.studies.domains import encoder_content
from core.studies.rows import Cell

__all__ = [
    "FAMILIES",
    "FIRST",
    "check_machine",
    "context_of",
    "defaults_of",
    "precision_of",
    "versions_of",
    "weights_of",
]

FAMILIES: dict[str, Mapping[str, Entry]] = {
    "attack": INVERSION_ATTACKS,
    "encoder": ENCODERS,
    "defence": DEFENCES,
    "trained_defence": TRAINED_DEFENCES,
    "attribute_attack": ATTRIBUTE_ATTACKS,
    "classifier": TARGETS,
    "classifier_attack": CLASSIFIER_ATTACKS,
    "reader": READERS,
    "objective": OBJECTIVES,
}
"""By the entry of a cell that names one of them."""

FIRST = ASSETS / "first_settings.json"
"""Each default, and what identifies each of the weights that ship, as they were recorded first.
`python -m tools.versions` adds what is new, and changes nothing."""

_GIVEN = {
    "attack": "settings",
    "encoder": "encoder_settings",
    "defence": "defence_settings",
    "trained_defence": "trained_defence_settings",
    "attribute_attack": "attribute_settings",
    "classifier": "classifier_settings",
    "classifier_attack": "classifier_attack_settings",
    "reader": "reader_settings",
    "objective": "objective_settings",
}
"""The entry of a cell that holds what is given of settings, in the place of defaults."""


def context_of(cell: Cell, *, version: int = 1, beside: Sequence[str] = ()) -> Cell:
    """Return what joins a cell.

    Parameters
    ----------
    cell : dict
        With the attack, encoder and defence that it is measured by, as far as it has them.
    version : int
        Of the study.
    beside : sequence of str
        Attacks whose weights, as they ship, decide the measurement beside those of the cell's own.
    """
    used = _used(cell, beside)
    encoder = str(cell.get("encoder", ""))
    return {
        **encoder_content(encoder),
        **_revision_of(encoder),
        **precision_of(cell),
        **_versions(used, version),
        **_defaults(used, cell),
        **(_weights(encoder, used) if beside and "attack" in used else {}),
    }


def versions_of(cell: Cell, version: int = 1) -> dict[str, dict[str, int]]:
    """Return as `versions` those of the code that measures a cell, where they are not the first."""
    return _versions(_used(cell), version)


def _used(cell: Cell, beside: Sequence[str] = ()) -> dict[str, tuple[str, str, Entry]]:
    """Return the things of registries that measure a cell: their family, name and entry."""
    named = {family: str(cell.get(family, "")) for family in FAMILIES}
    found = {
        family: (family, name, FAMILIES[family][name.partition(":")[0]])
        for family, name in named.items()
        if name.partition(":")[0] in FAMILIES[family]
    }
    stages = stages_of(named["defence"])
    if len(stages) > 1:
        found |= {f"defence {s}": ("defence", s, DEFENCES[s]) for s in stages if s in DEFENCES}
    if "attack" not in found:
        return found
    others = (name for name in beside if name != named["attack"])
    return found | {f"attack {n}": ("attack", n, INVERSION_ATTACKS[n]) for n in others}


def _versions(used: Mapping[str, tuple[str, str, Entry]], version: int) -> dict[str, Any]:
    found = {"study": version} | {place: entry.version for place, (_, _, entry) in used.items()}
    raised = {place: number for place, number in found.items() if number != 1}
    return {"versions": raised} if raised else {}


def precision_of(cell: Cell) -> dict[str, str]:
    """Return as `precision` in what this machine computes vectors, where it is not float32.

    Nothing where the cell tells it itself.
    """
    if "encoder" not in cell or cell.get("encoder_precision", "auto") != "auto":
        return {}
    from core.training.devices import pick_device, pick_precision

    precision = pick_precision(pick_device())
    return {} if precision == "float32" else {"precision": precision}


def check_machine(cell: Cell) -> None:
    """Check that this machine measures a cell as the one does that began the study.

    Raises
    ------
    InvalidInputError
        It computes in another precision, or another state of the encoder lies on it.
    """
    here = {**_revision_of(str(cell.get("encoder", ""))), **precision_of(cell)}
    for what, name, usual in (
        ("computes vectors in", "precision", "float32"),
        ("holds the encoder in the state", "encoder_revision", "that is not known"),
    ):
        own, told = here.get(name, usual), cell.get(name, usual)
        if own != told:
            raise InvalidInputError(
                f"This machine {what} {own}, and the one that began the study {told}: their rows "
                "do not belong together. Use machines of one kind with the same models, or name "
                "the precision where the study has it."
            )


def _defaults(used: Mapping[str, tuple[str, str, Entry]], cell: Cell) -> dict[str, Any]:
    """Return as `defaults` those that are not the first, of settings that the cell leaves open."""
    changed = {}
    for place, (family, name, entry) in used.items():
        if ":" in name:  # it was fitted, and what it holds says how
            continue
        given = _given(place, family, cell)
        first = _first()["defaults"].get(f"{family} {name}", {})
        own = {
            setting: value
            for setting, value in defaults_of(entry).items()
            if setting not in given and (setting not in first or first[setting] != value)
        }
        if own:
            changed[place] = own
    return {"defaults": changed} if changed else {}


def _given(place: str, family: str, cell: Cell) -> Cell:
    """Return the settings that a cell gives to a thing; to a stage of a chain, those of its own."""
    if place == family:
        return dict(cell.get(_GIVEN[family], {}))
    stage = f"{place.partition(' ')[2]}."
    given = cell.get(_GIVEN[family], {}) if family == "defence" else {}
    return {key.removeprefix(stage): v for key, v in given.items() if key.startswith(stage)}


def defaults_of(entry: Entry) -> dict[str, Any]:
    """Return the default of each setting that can be given to a thing of a registry, as JSON."""
    kind = entry.kind
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return {}  # a function that opens it: it has no settings
    fixed = getattr(entry, "fixed", {})
    found = {
        name: spec.default
        for name, spec in settings_of(kind).items()
        if name not in fixed and spec.default is not MISSING
    }
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return plain


def _weights(encoder: str, used: Mapping[str, tuple[str, str, Entry]]) -> dict[str, Any]:
    """Return as `shipped` what identifies weights that ship, where they are not the first."""
    attacks = [name for family, name, _ in used.values() if family == "attack"]
    first = _first()["weights"]
    changed = {
        name.partition("/")[2]: digest
        for name, digest in weights_of(encoder, attacks).items()
        if first.get(name) != digest
    }
    return {"shipped": changed} if changed else {}


def weights_of(encoder: str, attacks: Sequence[str]) -> dict[str, str]:
    """Return what identifies the weights that ship for an encoder, and the texts held out."""
    named = EncoderSpec(name=encoder)
    places = {name: shipped_folder(named, name) / META for name in attacks}
    places["held_out"] = shipped_folder(named, "held_out.json")
    return {
        f"{encoder}/{name}": _digest(path, path.stat().st_mtime_ns)
        for name, path in places.items()
        if path.exists()
    }


@lru_cache(maxsize=64)
def _digest(path: Path, stamp: int) -> str:
    if path.name != META:
        return digest_file(path)[:16]
    meta = read_json(path)
    decides = ("arrays_sha256", "borrows", "settings", "state")
    return digest_of({}, {name: meta.get(name) for name in decides})[:16]


@lru_cache(maxsize=1)
def _first() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = read_json(FIRST)
    return found


def _revision_of(name: str) -> dict[str, str]:
    """Return as `encoder_revision` which state of a model of the hub lies on this machine.

    One that was not fetched yet is fetched: what it is has to be known before it is measured.
    """
    kind, _, place = name.partition(":")
    if kind not in ("st", "mlm") or not place or Path(place).is_dir():
        return {}
    revision = _fetched(kind, place)
    if not revision:
        _fetch(name)
        revision = _fetched(kind, place)
    return {"encoder_revision": revision[:16]} if revision else {}


def _fetched(kind: str, model: str) -> str:
    if kind == "mlm":
        return fetched_revision(model)
    ids = (f"sentence-transformers/{model}", model)
    return next(filter(None, (fetched_revision(each, has_modules=True) for each in ids)), "")


@lru_cache(maxsize=16)
def _fetch(name: str) -> None:
    """Open a model once; where it cannot be had, the cell that needs it says why."""
    with suppress(CoreError):
        load_encoder(name)
