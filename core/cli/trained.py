"""Attacks ready to answer: from a folder that `train` wrote, or as they ship."""

from __future__ import annotations

from pathlib import Path

from core.attacks.inversion.evaluation import attack_name
from core.attacks.inversion.registry import make_attack
from core.attacks.inversion.shipped import load_attack, open_attack
from core.errors import EncoderMismatchError, InvalidInputError
from core.protocols import Encoder, InversionAttack, OnProgress
from core.specs import AttackSpec, validate_settings

__all__ = ["open_for"]


def open_for(
    spec: AttackSpec, encoder: Encoder, weights: Path | None, on_progress: OnProgress
) -> InversionAttack:
    """Return the attack of `spec`, loaded from `weights` or as it ships for `encoder`.

    Raises
    ------
    InvalidInputError
        The folder holds another attack, or a setting is outside its range.
    EncoderMismatchError
        It was trained on another encoder; both are named.
    """
    make_attack(spec)  # refuses a bad setting before anything is read
    if weights is None:
        return open_attack(spec, encoder, on_progress)
    attack = load_attack(weights)
    if attack_name(attack) != spec.name:
        raise InvalidInputError(
            f"--weights {weights} holds {attack_name(attack)!r}, not {spec.name!r}: "
            f"say --attack {attack_name(attack)}."
        )
    known = getattr(attack, "encoder_fingerprint_", encoder.fingerprint)
    if known != encoder.fingerprint:
        raise EncoderMismatchError(
            f"--weights {weights} was trained on encoder {getattr(attack, 'encoder_name_', '?')!r} "
            f"and cannot read vectors of {encoder.name!r}: say --encoder, --layer and --weights "
            "that belong together."
        )
    for name, value in spec.settings:
        setattr(attack, name, value)
    validate_settings(attack)
    return attack
