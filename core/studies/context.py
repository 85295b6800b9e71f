"""What a cell depends on besides a study's own settings: contents, defaults, weights, versions.

It is added to a cell only if it differs from what `first_settings.json` recorded first: finished
cells stay valid, and cells with a changed context are measured again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakscope.core.assets import ASSETS
from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.shipped import shipped_folder
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.attacks.membership.classifiers.targets.registry import TARGETS
from leakscope.core.defences.entries import stages_of
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.hub import fetched_revision
from leakscope.core.encoders.registry import ENCODERS
from leakscope.core.errors import CoreError, InvalidInputError
from leakscope.core.registry import Entry
from leakscope.core.results.rows import Cell
from leakscope.core.specs import EncoderSpec, settings_of
from leakscope.core.storage.artifacts import META, digest_file, digest_of, read_json
from leakscope.core.studies.domains import encoder_content

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
"""The registries, by the cell entry that names one of their entries."""

FIRST = ASSETS / "first_settings.json"
"""The first recorded default of each setting, and digests of the first shipped weights.
`python -m tools.versions` adds what is new, and changes nothing."""

_GIVEN = {family: f"{family}_settings" for family in FAMILIES} | {
    "attack": "settings",
    "attribute_attack": "attribute_settings",
}
"""The cell entry that holds the settings given instead of defaults, by family."""


def cell_context(cell: Cell, *, version: int = 1, beside: Sequence[str] = ()) -> Cell:
    """Return the entries to add to a cell: changed contents, precision, versions and defaults.

    Parameters
    ----------
    cell : dict
        With the attack, encoder and defence that it is measured by, as far as it has them.
    version : int
        Of the study.
    beside : sequence of str
        Attacks whose weights, as they ship, decide the measurement beside those of the cell's own.
    """
    used = _registry_entries(cell, beside)
    encoder = str(cell.get("encoder", ""))
    return {
        **encoder_content(encoder),
        **_encoder_revision(encoder),
        **precision_of(cell),
        **_versions(used, version),
        **_changed_defaults(used, cell),
        **(_changed_weights(encoder, used) if beside and "attack" in used else {}),
    }


def versions_of(cell: Cell, version: int = 1) -> dict[str, dict[str, int]]:
    """Return {"versions": …}: the code versions other than 1 that measure a cell; else empty."""
    return _versions(_registry_entries(cell), version)


def _registry_entries(cell: Cell, beside: Sequence[str] = ()) -> dict[str, tuple[str, str, Entry]]:
    """Return the registry entries that measure a cell: family, name and entry by cell entry."""
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
    """Return {"versions": …}: the versions of study and entries that are not 1; may be empty."""
    found = {"study": version} | {place: entry.version for place, (_, _, entry) in used.items()}
    raised = {place: number for place, number in found.items() if number != 1}
    return {"versions": raised} if raised else {}


def precision_of(cell: Cell) -> dict[str, str]:
    """Return {"precision": …}: that of vectors on this machine; empty if float32 or given.

    Empty if the cell names its precision.
    """
    if "encoder" not in cell or cell.get("encoder_precision", "auto") != "auto":
        return {}
    from leakscope.core.training.devices import pick_device, pick_precision

    precision = pick_precision(pick_device())
    return {} if precision == "float32" else {"precision": precision}


def check_machine(cell: Cell) -> None:
    """Raise InvalidInputError unless this machine's precision and encoder are the cell's.

    Raises
    ------
    InvalidInputError
        It computes in another precision, or another state of the encoder lies on it.
    """
    here = {**_encoder_revision(str(cell.get("encoder", ""))), **precision_of(cell)}
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


def _changed_defaults(used: Mapping[str, tuple[str, str, Entry]], cell: Cell) -> dict[str, Any]:
    """Return {"defaults": …}: changed defaults of the settings that a cell does not give."""
    changed = {}
    for place, (family, name, entry) in used.items():
        if ":" in name:  # a fitted encoder: its content decides
            continue
        given = _given_settings(place, family, cell)
        first = _first_settings()["defaults"].get(f"{family} {name}", {})
        own = {
            setting: value
            for setting, value in defaults_of(entry).items()
            if setting not in given and (setting not in first or first[setting] != value)
        }
        if own:
            changed[place] = own
    return {"defaults": changed} if changed else {}


def _given_settings(place: str, family: str, cell: Cell) -> Cell:
    """Return the settings that a cell gives to an entry, or to a stage of a chain of defences."""
    if place == family:
        return dict(cell.get(_GIVEN[family], {}))
    stage = f"{place.partition(' ')[2]}."
    given = cell.get(_GIVEN[family], {}) if family == "defence" else {}
    return {key.removeprefix(stage): v for key, v in given.items() if key.startswith(stage)}


def defaults_of(entry: Entry) -> dict[str, Any]:
    """Return the defaults of a registry entry's open settings by name, as JSON values."""
    kind = entry.kind
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return {}  # a loading function has no settings
    fixed = getattr(entry, "fixed", {})
    found = {
        name: spec.default
        for name, spec in settings_of(kind).items()
        if name not in fixed and spec.default is not MISSING
    }
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return plain


def _changed_weights(encoder: str, used: Mapping[str, tuple[str, str, Entry]]) -> dict[str, Any]:
    """Return {"shipped": …}: digests of shipped weights that changed since first recorded."""
    attacks = [name for family, name, _ in used.values() if family == "attack"]
    first = _first_settings()["weights"]
    changed = {
        name.partition("/")[2]: digest
        for name, digest in weight_digests(encoder, attacks).items()
        if first.get(name) != digest
    }
    return {"shipped": changed} if changed else {}


def weight_digests(encoder: str, attacks: Sequence[str]) -> dict[str, str]:
    """Return digests, by name, of an encoder's shipped attack weights and held-out texts."""
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
    """Return a digest of a file; of a model's metadata, only the entries that decide answers."""
    if path.name != META:
        return digest_file(path)[:16]
    meta = read_json(path)
    decides = ("arrays_sha256", "borrows", "settings", "state")
    return digest_of({}, {name: meta.get(name) for name in decides})[:16]


@lru_cache(maxsize=1)
def _first_settings() -> dict[str, dict[str, Any]]:
    """Read the recorded defaults and digests in `first_settings.json`, once per process."""
    found: dict[str, dict[str, Any]] = read_json(FIRST)
    return found


def _encoder_revision(name: str) -> dict[str, str]:
    """Return {"encoder_revision": …} of a hub model, downloaded if absent; else empty.

    A model that is missing here is downloaded first: its revision must be known before measuring.
    """
    kind, _, place = name.partition(":")
    if kind not in ("st", "mlm") or not place or Path(place).is_dir():
        return {}
    revision = _cached_revision(kind, place)
    if not revision:
        _download(name)
        revision = _cached_revision(kind, place)
    return {"encoder_revision": revision[:16]} if revision else {}


def _cached_revision(kind: str, model: str) -> str:
    """Return the revision of a hub model in this machine's cache; "" if it is not there."""
    if kind == "mlm":
        return fetched_revision(model)
    ids = (f"sentence-transformers/{model}", model)
    return next(filter(None, (fetched_revision(each, has_modules=True) for each in ids)), "")


@lru_cache(maxsize=16)
def _download(name: str) -> None:
    """Load a hub model once, which downloads it; errors are ignored, the cell meets them again."""
    with suppress(CoreError):
        load_encoder(name)
