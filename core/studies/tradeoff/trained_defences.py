"""Trained defences shared by the cells of a study: trained once, stored, retrained if damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.core.defences.stored import load_defence, save_defence
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES, make_trained_defence
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell
from leakscope.core.specs import DefenceSpec
from leakscope.core.storage.artifacts import META
from leakscope.core.storage.file_lock import exclusive_lock
from leakscope.core.studies.membership.halves import trained_encoder
from leakscope.core.studies.runner import cell_key
from leakscope.core.studies.tradeoff.texts import fold_text
from leakscope.core.studies.training.adversarial_texts import Sides


@dataclass(frozen=True)
class DefenceTexts:
    """The training texts of a defence, disjoint from what attackers know or attack.

    Attributes
    ----------
    defence : tuple of str
    defence_labels : tuple of str or None
        The attribute of each text, if the defence hides it.
    others : frozenset of str
        The texts that attackers know or attack.

    Raises
    ------
    InvalidInputError
        A text is among the others; case and punctuation make no other text.
    """

    defence: tuple[str, ...]
    defence_labels: tuple[str, ...] | None
    others: frozenset[str]

    def __post_init__(self) -> None:
        """Raise InvalidInputError if a training text is known to an attacker or attacked."""
        both = {fold_text(text) for text in self.defence} & {
            fold_text(text) for text in self.others
        }
        if both:
            raise InvalidInputError(
                f"{len(both)} training texts of a defence are known to an attacker or attacked, "
                "so the study could not measure it on new texts."
            )


@dataclass(frozen=True)
class ProtectedEncoder:
    """An encoder behind a defence, with and without memory, and its training record.

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


class MemoizedEncoder:
    """An encoder that keeps encoded vectors in memory, as a cell encodes the same texts again.

    On disk nothing is kept: a study trains many encoders, each of which serves a cell or two.
    """

    def __init__(self, encoder: Encoder) -> None:
        """Wrap an encoder, with an empty memory of vectors."""
        self.name, self.dimension = encoder.name, encoder.dimension
        self.fingerprint = encoder.fingerprint
        self.base = encoder
        self._found: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode n texts to (n, dimension) vectors; known texts come from memory."""
        new = [text for text in dict.fromkeys(texts) if text not in self._found]
        if new:
            self._found.update(zip(new, self.base.encode(new, on_progress), strict=True))
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([self._found[text] for text in texts])


def trained_dual(
    name: str, settings: dict[str, Any], told: Cell, sides: Sides, folder: Path
) -> ProtectedEncoder:
    """Load or train a dual encoder against its adversary, on the defence's pairs."""

    def fit(encoder: Any, checkpoint: str) -> Any:
        """Train an encoder on the pairs, with labels if the attribute is hidden."""
        labels = sides.pair_labels if encoder.against == "attribute" else None
        return encoder.fit_pairs(sides.pairs, labels=labels, checkpoint_dir=checkpoint)

    encoder = trained_encoder(name, settings, told, fit, folder)
    during, seconds = tuple(encoder.during_), encoder.seconds_
    return ProtectedEncoder(MemoizedEncoder(encoder), encoder, during, seconds)


def trained_defence(
    cell: Cell, base: ProtectedEncoder, told: Cell, sides: Sides, folder: Path
) -> ProtectedEncoder:
    """Load or train a cell's defence on its texts; return the base encoder behind it.

    Parameters
    ----------
    base : ProtectedEncoder
        The encoder without that defence.
    told : dict
        What decides the texts.
    """
    defence = load_or_train_defence(cell, base.encoder, told, lambda: sides, folder)
    during = tuple(getattr(defence, "during_", ()))
    seconds = base.seconds + float(defence.training_["seconds"])
    own, bare = (MemoizedEncoder(defence.protect(base.encoder)), defence.protect(base.bare))
    return ProtectedEncoder(own, bare, during, seconds)


def load_or_train_defence(
    cell: Cell, base: Encoder, told: Cell, learnt: Callable[[], Sides | DefenceTexts], folder: Path
) -> Any:
    """Load the trained defence of a cell, or train and save it under a lock.

    Its `training_` tells how long it was trained, and on how many texts.

    Parameters
    ----------
    told : dict
        Entries that decide the texts.
    learnt : callable
        Returns the texts; called if the defence is not trained yet.
    """
    name, settings = cell["trained_defence"], cell["trained_defence_settings"]
    spec, version = DefenceSpec.of(name, settings), TRAINED_DEFENCES[name].version
    identity = {
        **told,
        "defence": name,
        "settings": settings,
        "base": base.fingerprint,
        "version": version,
    }
    place = folder / "defences" / f"{name}-{cell_key(identity)}"
    with exclusive_lock(place.with_name(f".lock-{place.name}")):
        if (place / META).exists():
            with suppress(ArtifactError):  # damaged: it is trained again
                return load_defence(place)
        texts, checkpoint = learnt(), place.with_name(f"{place.name}.checkpoint")
        try:
            defence = _train(spec, base, texts, checkpoint)
        except ArtifactError:  # the checkpoint is damaged: start over
            shutil.rmtree(checkpoint, ignore_errors=True)
            defence = _train(spec, base, texts, checkpoint)
        spent = {"seconds": defence.seconds_, "n_texts": len(texts.defence)}
        save_defence(defence, place, training={**identity, **spent})
        shutil.rmtree(checkpoint, ignore_errors=True)
        return load_defence(place)


def _train(spec: DefenceSpec, base: Encoder, texts: Sides | DefenceTexts, checkpoint: Path) -> Any:
    """Train the defence of a spec on its texts, resuming from a checkpoint, and return it."""
    defence: Any = make_trained_defence(spec)
    return defence.fit(
        base, texts.defence, labels=texts.defence_labels, checkpoint_dir=str(checkpoint)
    )


def check_unchanged(is_same: bool) -> None:
    """Raise InvalidInputError if `is_same` is false: files changed since the study was started.

    Raises
    ------
    InvalidInputError
        They have changed.
    """
    if not is_same:
        raise InvalidInputError(
            "The task files or the attacker's sentences have changed since the study was started. "
            "Copy the same files to every machine, or start the study again."
        )
