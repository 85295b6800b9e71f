"""Reading one text by a slow attack: work for a process of its own, which keeps what it opened."""

from __future__ import annotations

import copy

from core.attacks.inversion.reading import Reading, prior_words, read_vector
from core.attacks.inversion.shipped import open_attack
from core.encoders.at_hand import encoder_at_hand
from core.protocols import InversionAttack, OnProgress, Vectors, no_progress
from core.results import Recovery
from core.specs import AttackSpec, EncoderSpec, validate_settings

__all__ = ["attack_at_hand", "read_all", "read_text", "with_settings"]

_OPEN: dict[tuple[str, EncoderSpec], InversionAttack] = {}


def attack_at_hand(
    spec: AttackSpec, on: EncoderSpec, on_progress: OnProgress = no_progress
) -> InversionAttack:
    """Return an attack with the settings of a spec, its weights kept for the next job.

    Raises
    ------
    ArtifactError
        No weights ship for it.
    InvalidInputError
        A value outside its range; the message names the range.
    """
    if (spec.name, on) not in _OPEN:
        _OPEN[spec.name, on] = open_attack(spec.name, encoder_at_hand(on), on_progress)
    return with_settings(_OPEN[spec.name, on], spec)


def with_settings(ready: InversionAttack, spec: AttackSpec) -> InversionAttack:
    """Return an open attack with the settings of a spec; its arrays are shared, not copied.

    Raises
    ------
    InvalidInputError
        A value outside its range; the message names the range.
    """
    changed = copy.copy(ready)
    for name, value in spec.settings:
        setattr(changed, name, value)
    validate_settings(changed)
    return changed


def read_text(
    spec: AttackSpec,
    on: EncoderSpec,
    text: str,
    vector: Vectors,
    counts_stop_words: bool,
    on_progress: OnProgress = no_progress,
) -> Reading:
    """Return what an attack reads from the vector of a text."""
    on_progress(0.0, "Loading the attack")
    encoder = encoder_at_hand(on)
    attack = attack_at_hand(spec, on, on_progress)
    guess = prior_words(encoder, attack_at_hand(AttackSpec(name=spec.name), on), counts_stop_words)
    return read_vector(
        spec.name,
        attack,
        encoder,
        text,
        vector,
        guess,
        counts_stop_words=counts_stop_words,
        on_progress=on_progress,
    )


def read_all(
    spec: AttackSpec, on: EncoderSpec, vectors: Vectors, on_progress: OnProgress = no_progress
) -> list[Recovery]:
    """Return what an attack answers to each of several vectors, which is all that it is given.

    Raises
    ------
    StoppedSearch
        `on_progress` asked a search to stop; its `answers` are the best so far.
    """
    on_progress(0.0, "Loading the attack")
    encoder = encoder_at_hand(on)
    return attack_at_hand(spec, on, on_progress).invert(encoder, vectors, on_progress)
