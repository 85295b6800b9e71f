"""Attacks that were trained behind a defence: what they learnt from, and what they may read.

`train --defence` records the defence with the attack. What such an attack reads has to be behind
the same one: other vectors are refused.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from core.cli.defended import notes_on, odds_notes, protected, turned_on
from core.errors import EncoderMismatchError
from core.protocols import Encoder, InversionAttack, OnProgress
from core.specs import AttackSpec, DefenceSpec

__all__ = ["behind", "open_behind", "own_defence"]


def behind(
    encoder: Encoder, defence: DefenceSpec | None, seed: int
) -> tuple[Encoder, dict[str, Any]]:
    """Return the encoder that an attack is trained on, and what its record tells of the defence.

    Noise is drawn by the seed, so that a run that was stopped goes on with the same vectors. What
    is encoded as it is comes from disk; privatised texts never come twice.
    """
    from core.defences.registry import entry_of
    from core.encoders.cache import CachedEncoder
    from core.studies.tradeoff_setting import setting_name

    if defence is None:
        return CachedEncoder(encoder), {}
    entry = entry_of(defence.name)
    noise = {"seed": seed} if entry.draws_noise else {}
    seeded = DefenceSpec.of(defence.name, noise | dict(defence.settings))
    base = encoder if entry.needs_white_box else CachedEncoder(encoder)
    told = {"defence": setting_name(defence.name, dict(defence.settings)),
            "undefended_fingerprint": encoder.fingerprint}  # fmt: skip
    return protected(base, seeded), told


def own_defence(attack: Any) -> str:
    """Return the defence that an attack was trained behind, by its name; empty for none."""
    return str((getattr(attack, "training_", None) or {}).get("defence", ""))


def open_behind(
    spec: AttackSpec,
    encoder: Encoder,
    defence: DefenceSpec | None,
    weights: Path | None,
    on_progress: OnProgress,
) -> tuple[InversionAttack, Encoder, list[str]]:
    """Return an attack, the encoder that it attacks, and what a reader of its figures should know.

    One that was trained behind a defence reads vectors behind the same alone. Any other is turned
    on those behind a defence by a map (`turned_on`).

    Raises
    ------
    EncoderMismatchError
        It was trained behind another defence than that of the vectors, or behind one and these
        are not; the message names what to say.
    """
    from core.cli.trained import open_for

    if weights is not None:
        from core.attacks.inversion.shipped import load_attack

        loaded = load_attack(weights)
        if own_defence(loaded):
            return _read_by(loaded, spec, encoder, defence, weights, on_progress)
    attack = open_for(spec, encoder, weights, on_progress)
    if defence is None:
        return attack, encoder, []
    turned = turned_on(attack, encoder, defence, spec, on_progress)
    return turned, turned.changed, [*notes_on(defence), *odds_notes(defence, encoder)]


def _read_by(
    loaded: Any,
    spec: AttackSpec,
    encoder: Encoder,
    defence: DefenceSpec | None,
    weights: Path,
    on_progress: OnProgress,
) -> tuple[InversionAttack, Encoder, list[str]]:
    from core.cli.trained import open_for
    from core.defences.told import read_defence

    told = own_defence(loaded)
    if defence is None or _decided(defence) != _decided(read_defence(told)):
        given = "none" if defence is None else _said(defence)
        raise EncoderMismatchError(
            f"--weights {weights} was trained behind the defence {told}, and these vectors are "
            f"behind {given}. Say --defence {told}, or give --weights that were trained for these."
        )
    if loaded.training_.get("undefended_fingerprint") != encoder.fingerprint:
        raise EncoderMismatchError(
            f"--weights {weights} was trained on encoder {loaded.encoder_name_!r}, and this is "
            f"{encoder.name!r}: say --encoder, --layer and --weights that belong together."
        )
    changed: Any = protected(encoder, defence)
    # The same defence, its noise drawn anew: what it was trained on.
    known: Encoder = replace(changed, fingerprint=loaded.encoder_fingerprint_)
    attack = open_for(spec, known, weights, on_progress)
    note = f"the attacker was trained behind {told}, on vectors whose noise was drawn apart."
    return attack, known, [note, *odds_notes(defence, encoder)]


def _said(defence: DefenceSpec) -> str:
    from core.studies.tradeoff_setting import setting_name

    return setting_name(defence.name, _seedless(defence.name, dict(defence.settings)))


def _seedless(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings but for the seed of noise: a matrix's seed is part of what it is."""
    from core.defences.registry import entry_of

    aside = {"seed"} if entry_of(name).draws_noise else set()
    return {k: v for k, v in settings.items() if k not in aside}


def _decided(defence: DefenceSpec) -> dict[str, dict[str, Any]]:
    """Return all settings of each stage, but the seed of its noise."""
    from core.defences.entries import ChainEntry, settings_by_stage
    from core.defences.registry import entry_of, make_defence

    entry, settings = entry_of(defence.name), dict(defence.settings)
    own = {defence.name: settings}
    if isinstance(entry, ChainEntry):
        own = settings_by_stage(entry, settings)
    found: dict[str, dict[str, Any]] = {}
    for stage, told in own.items():
        made: Any = make_defence(DefenceSpec.of(stage, told))
        found[stage] = _seedless(stage, asdict(made))
    return found
