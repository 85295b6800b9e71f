"""Defences that cells of a study share: trained once, kept, and trained again where damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from core.defences.stored import load_defence, save_defence
from core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence
from core.errors import ArtifactError
from core.protocols import Encoder, OnProgress, Vectors, no_progress
from core.results import Score
from core.specs import DefenceSpec
from core.store import META
from core.studies.adversarial_texts import Sides
from core.studies.alone import alone
from core.studies.membership_halves import trained_encoder
from core.studies.rows import Cell
from core.studies.runner import cell_key

__all__ = ["Learnt", "Remembered", "Trained", "kept_defence", "trained_defence", "trained_dual"]


class Learnt(Protocol):
    """The texts that a defence is trained on."""

    @property
    def defence(self) -> Sequence[str]:
        """The texts."""
        ...

    @property
    def defence_labels(self) -> Sequence[str] | None:
        """The attribute of each, where it is known."""
        ...


@dataclass(frozen=True)
class Trained:
    """An encoder as its defence lets the world see it, and how that was trained.

    Attributes
    ----------
    encoder, bare : Encoder
        The former remembers what it has encoded; the latter does not, and can be timed.
    during : tuple of Score
        What the adversary read after each epoch; empty where there was none.
    seconds : float
        Of the training.
    """

    encoder: Encoder
    bare: Encoder
    during: tuple[Score, ...] = ()
    seconds: float = 0.0


class Remembered:
    """An encoder that keeps in memory what it has encoded: a cell's attackers and tasks ask again.

    On disk nothing is kept: a study trains many encoders, each of which serves a cell or two.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.name, self.dimension = encoder.name, encoder.dimension
        self.fingerprint = encoder.fingerprint
        self.base = encoder
        self._found: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the (n, dimension) vectors of n texts; those that are new are encoded."""
        new = [text for text in dict.fromkeys(texts) if text not in self._found]
        if new:
            self._found.update(zip(new, self.base.encode(new, on_progress), strict=True))
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([self._found[text] for text in texts])


def trained_dual(
    name: str, settings: dict[str, Any], told: Cell, sides: Sides, folder: Path
) -> Trained:
    """Return a dual encoder that was trained against its adversary on the defence's pairs."""

    def fit(encoder: Any, checkpoint: str) -> Any:
        labels = sides.pair_labels if encoder.against == "attribute" else None
        return encoder.fit_pairs(sides.pairs, labels=labels, checkpoint_dir=checkpoint)

    encoder = trained_encoder(name, settings, told, fit, folder)
    during, seconds = tuple(encoder.during_), encoder.seconds_
    return Trained(Remembered(encoder), encoder, during, seconds)


def trained_defence(cell: Cell, base: Trained, told: Cell, sides: Sides, folder: Path) -> Trained:
    """Return an encoder behind the defence of a cell, which is trained on the defence's texts.

    Parameters
    ----------
    base : Trained
        The encoder without that defence.
    told : dict
        What decides the texts.
    """
    defence = kept_defence(cell, base.encoder, told, lambda: sides, folder)
    during = tuple(getattr(defence, "during_", ()))
    seconds = base.seconds + float(defence.training_["seconds"])
    own, bare = (Remembered(defence.protect(base.encoder)), defence.protect(base.bare))
    return Trained(own, bare, during, seconds)


def kept_defence(
    cell: Cell, base: Encoder, told: Cell, learnt: Callable[[], Learnt], folder: Path
) -> Any:
    """Return the trained defence of a cell: trained once for all cells that tell the same of it.

    Its `training_` tells how long it was trained, and on how many texts.

    Parameters
    ----------
    told : dict
        What decides the texts.
    learnt : callable
        Returns the texts; asked where it is yet to be trained.
    """
    name, settings = cell["trained_defence"], cell["trained_defence_settings"]
    spec, version = DefenceSpec.of(name, settings), TRAINED_DEFENCES[name].version
    identity = {**told, "defence": name, "settings": settings, "base": base.fingerprint,
                "version": version}  # fmt: skip
    place = folder / "defences" / f"{name}-{cell_key(identity)}"
    with alone(place.with_name(f".lock-{place.name}")):
        if (place / META).exists():
            with suppress(ArtifactError):  # damaged: it is trained again
                return load_defence(place)
        texts, checkpoint = learnt(), place.with_name(f"{place.name}.checkpoint")
        try:
            defence = _fitted(spec, base, texts, checkpoint)
        except ArtifactError:  # the checkpoint is damaged: it begins anew
            shutil.rmtree(checkpoint, ignore_errors=True)
            defence = _fitted(spec, base, texts, checkpoint)
        spent = {"seconds": defence.seconds_, "n_texts": len(texts.defence)}
        save_defence(defence, place, training={**identity, **spent})
        shutil.rmtree(checkpoint, ignore_errors=True)
        return load_defence(place)


def _fitted(spec: DefenceSpec, base: Encoder, texts: Learnt, checkpoint: Path) -> Any:
    defence: Any = make_trained_defence(spec)
    return defence.fit(
        base, texts.defence, labels=texts.defence_labels, checkpoint_dir=str(checkpoint)
    )
