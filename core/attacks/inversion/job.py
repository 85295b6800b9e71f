"""Slow inversion attacks as background jobs, in a process that keeps opened attacks in memory."""

from __future__ import annotations

import copy

from leakscope.core.attacks.inversion.reading import Reading, prior_words, read_vector
from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.protocols import InversionAttack, OnProgress, Vectors, no_progress
from leakscope.core.results import Recovery
from leakscope.core.specs import AttackSpec, EncoderSpec, validate_settings

_OPEN: dict[tuple[str, EncoderSpec], InversionAttack] = {}


def shared_attack(
    spec: AttackSpec, on: EncoderSpec, on_progress: OnProgress = no_progress
) -> InversionAttack:
    """Open a spec's attack for an encoder, with its settings; weights stay loaded for later jobs.

    Raises
    ------
    ArtifactError
        No weights ship for it.
    InvalidInputError
        A value outside its range; the message names the range.
    """
    if (spec.name, on) not in _OPEN:
        _OPEN[spec.name, on] = open_attack(spec.name, shared_encoder(on), on_progress)
    return with_settings(_OPEN[spec.name, on], spec)


def with_settings(ready: InversionAttack, spec: AttackSpec) -> InversionAttack:
    """Return a copy of an opened attack with the spec's settings, sharing its arrays.

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
    """Open an attack, invert one text's vector and return the answer compared with the text."""
    on_progress(0.0, "Loading the attack")
    encoder = shared_encoder(on)
    attack = shared_attack(spec, on, on_progress)
    guess = prior_words(encoder, shared_attack(AttackSpec(name=spec.name), on), counts_stop_words)
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


def invert_all(
    spec: AttackSpec, on: EncoderSpec, vectors: Vectors, on_progress: OnProgress = no_progress
) -> list[Recovery]:
    """Open an attack, invert several vectors and return their answers, without the texts.

    Raises
    ------
    StoppedSearch
        `on_progress` asked a search to stop; its `answers` are the best so far.
    """
    on_progress(0.0, "Loading the attack")
    encoder = shared_encoder(on)
    return shared_attack(spec, on, on_progress).invert(encoder, vectors, on_progress)
