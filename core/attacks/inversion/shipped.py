"""Save, load and open trained attacks, including the shipped ones.

Weights that ship with Leakscope lie in assets/weights/<encoder>/<attack>/.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from leakscope.core.assets import ASSETS
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS, make_attack
from leakscope.core.errors import ArtifactError, CoreError, InvalidInputError
from leakscope.core.protocols import (
    Encoder,
    InversionAttack,
    OnProgress,
    TrainedAttack,
    no_progress,
)
from leakscope.core.registry import name_of
from leakscope.core.specs import AttackSpec, setting_values
from leakscope.core.storage.artifacts import META, UNFIT, load_artifact, read_record, save_artifact
from leakscope.core.text import Vocabulary

WEIGHTS = ASSETS / "weights"


class Named(Protocol):
    """Anything with an encoder's name, by which its shipped weights are found."""

    @property
    def name(self) -> str:
        """The encoder's name."""
        ...


def save_attack(
    attack: TrainedAttack,
    folder: Path,
    *,
    training: dict[str, Any] | None = None,
    borrow: tuple[str, str] | None = None,
) -> Path:
    """Write a fitted attack to a folder: arrays and metadata; return the path.

    Parameters
    ----------
    training : dict, optional
        What it was trained on: corpus, seed, seconds, hardware, scores.
    borrow : (prefix, neighbour), optional
        Leave out the arrays whose name begins with `prefix`; they are read from the attack in
        the folder `neighbour` beside this one, which must hold the same.
    """
    arrays, meta = attack.state()
    name = name_of(INVERSION_ATTACKS, type(attack))
    if name is None:
        raise InvalidInputError(f"{type(attack).__name__} is not in the registry of attacks.")
    head: dict[str, Any] = {
        "attack": name,
        "settings": setting_values(attack),
        "training": training or {},
    }
    if borrow is not None:
        prefix, neighbour = borrow
        lent, lender = load_artifact(folder.parent / neighbour)
        for key, array in lent.items():
            if not np.array_equal(arrays.pop(prefix + key), array):
                raise InvalidInputError(f"{neighbour} does not contain {prefix}{key} of {folder}.")
        head["borrows"] = [prefix, neighbour, lender["arrays_sha256"]]
    return save_artifact(folder, arrays, {**head, "state": meta})


def load_attack(folder: Path) -> TrainedAttack:
    """Load a fitted attack from a folder; its `training_` is the stored training record.

    Raises
    ------
    ArtifactError
        The files are missing, damaged or do not describe an attack.
    """
    arrays, meta = load_artifact(folder)
    try:
        if "borrows" in meta:
            prefix, neighbour, digest = meta["borrows"]
            path = folder.parent / Path(neighbour).name
            lent, lender = load_artifact(path)
            if lender["arrays_sha256"] != digest:
                raise ArtifactError(
                    f"{path} is not the attack that {folder} was built on. Restore it."
                )
            arrays |= {prefix + name: array for name, array in lent.items()}
        attack = make_attack(AttackSpec.of(meta["attack"], meta["settings"]))
        assert isinstance(attack, TrainedAttack)
        attack = attack.load_state(arrays, meta["state"])
        attack.training_ = dict(meta.get("training") or {})  # type: ignore[attr-defined]
        return attack
    except ArtifactError:
        raise
    except (*UNFIT, AssertionError, CoreError) as error:
        reason = str(error) if isinstance(error, CoreError) else f"{error!r}."
        raise ArtifactError(f"{folder} does not contain a trained attack: {reason}") from error


def shipped_vocabulary(encoder: Encoder) -> Vocabulary:
    """Read the vocabulary of an encoder's shipped weights, or count that of the bundled corpora."""
    path = shipped_folder(encoder, "probe_mlc") / META
    if path.exists():
        return Vocabulary.from_dict(read_record(path, state=dict)["state"]["vocabulary"])
    from leakscope.core.corpora import bundled_sentences

    return Vocabulary.count(bundled_sentences())


def shipped_settings(encoder: Named, attack: str) -> dict[str, Any]:
    """Read the settings of the attack shipped for an encoder; empty if there is none."""
    path = shipped_folder(encoder, attack) / META
    return dict(read_record(path, settings=dict)["settings"]) if path.exists() else {}


def shipped_digest(encoder: Named, attack: str) -> str:
    """Read the SHA-256 of the weights shipped for an encoder; empty if there are none."""
    path = shipped_folder(encoder, attack) / META
    return str(read_record(path, arrays_sha256=str)["arrays_sha256"]) if path.exists() else ""


def n_training_texts(folder: Path) -> int:
    """Read on how many texts the attack in a folder was trained, or its base if that is more."""
    training = read_record(folder / META, training=dict)["training"]
    base = training.get("built_on")
    own = int(training.get("n_texts") or 0)
    return max(own, n_training_texts(folder.with_name(str(base)))) if base else own


def shipped_held_out(encoder: Named) -> frozenset[str]:
    """Read the hashes (`text_mark`) of the sentences that no shipped attack was trained on.

    Raises
    ------
    ArtifactError
        None are recorded for this encoder.
    """
    path = shipped_folder(encoder, "held_out.json")
    if not path.exists():
        raise ArtifactError(f"There is no record of held-out sentences for {encoder.name}: {path}.")
    return frozenset(read_record(path, marks=list)["marks"])


def text_mark(text: str) -> str:
    """Return the first twelve hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def shipped_folder(encoder: Named, attack: str) -> Path:
    """Return the path of the attack shipped for an encoder, whether or not it exists."""
    return WEIGHTS / encoder.name.replace(":", "_").replace("/", "_") / attack


def open_attack(
    spec: AttackSpec | str, encoder: Encoder, on_progress: OnProgress = no_progress
) -> InversionAttack:
    """Load an attack's shipped weights, or set it up without training, to invert vectors.

    Shipped weights are loaded; attacks that learn nothing are set up from the shipped
    vocabulary. Settings of the spec that do not change the weights override the stored ones.

    Raises
    ------
    ArtifactError
        No weights ship for this attack and encoder; the message names the training command.
    """
    spec = AttackSpec(name=spec) if isinstance(spec, str) else spec
    fresh = make_attack(spec)
    folder = shipped_folder(encoder, spec.name)
    if (folder / META).exists():
        attack = load_attack(folder)
        for name, value in spec.settings:  # make_attack has checked the names
            setattr(attack, name, value)
        return attack
    open_untrained = getattr(fresh, "open", None)
    if open_untrained is None:
        raise ArtifactError(
            f"No trained {spec.name!r} ships for encoder {encoder.name!r}. Train one: "
            f"leakscope train --encoder {encoder.name} --attack {spec.name} "
            "--corpus bundled --out FOLDER"
        )
    opened: InversionAttack = open_untrained(encoder, on_progress)
    return opened
