"""Options that choose a defence, and attacks on defended vectors.

`train --defence` records the defence with the attack. Such an attack accepts only vectors behind
the same defence.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.evaluation import attack_name
from leakscope.core.attacks.inversion.registry import make_attack
from leakscope.core.attacks.inversion.shipped import load_attack, open_attack
from leakscope.core.defences.entries import ChainEntry, settings_by_stage
from leakscope.core.defences.registry import DEFENCES, entry_of, guarantee_of, make_defence
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.errors import EncoderMismatchError, InvalidInputError
from leakscope.core.protocols import Encoder, InversionAttack, OnProgress
from leakscope.core.specs import AttackSpec, DefenceSpec, validate_settings


def add_defence_argument(parser: argparse._ActionsContainer) -> None:
    """Add the option that names the defence of the vectors."""
    parser.add_argument(
        "--defence",
        metavar="NAME",
        help="defence of the vectors: NAME, NAME:SETTING=VALUE, or several joined by +, as in "
        "text_to_text:eta=60+int8; `list --defence NAME` shows one",
    )


def defence_spec(arguments: argparse.Namespace, *, seed: int | None = None) -> DefenceSpec | None:
    """Build the spec of the defence or chain that the arguments choose; None if none is chosen.

    Parameters
    ----------
    seed : int, optional
        Of its noise, to make a measurement repeatable; without it, noise is fresh.

    Raises
    ------
    InvalidInputError
        No such defence or setting, or stages that cannot follow each other.
    """
    if arguments.defence is None:
        return None

    spec = read_defence(arguments.defence)
    entry = entry_of(spec.name)
    if entry.is_baseline:
        return None
    settings = dict(spec.settings)
    if seed is not None and entry.takes_seed:
        settings.setdefault("seed", seed)
    return DefenceSpec.of(spec.name, settings)


def adapted_attack_notes(defence: DefenceSpec) -> list[str]:
    """Return notes on the limits of an attack that was adapted to a defence by a linear map."""
    from leakscope.core.defences.adaptive_attack import N_PAIRS

    notes = [
        f"the attacker knows the defence: a linear map, learned from {N_PAIRS:,} shipped "
        "sentences, undoes it. Attackers trained behind it may recover more: `study tradeoff`."
    ]
    if entry_of(defence.name).releases_tokens:
        notes.append(
            "this defence releases a text or its tokens, which anyone can read without an attack. "
            "Only the vector is attacked here."
        )
    return notes


def odds_notes(defence: DefenceSpec, encoder: Encoder) -> list[str]:
    """Return a one-note list on the odds that a defence's privacy parameter guarantees, or []."""
    from leakscope.core.defences.metric_dp.distances import EXAMPLE
    from leakscope.core.defences.metric_dp.exponential_guarantee import guarantees_of
    from leakscope.core.defences.setting import first_of

    first = first_of(defence)
    if first.name not in DEFENCES or not guarantee_of(first):
        return []
    found = guarantees_of(encoder, first)
    of = "" if found.is_of_texts else f", for a text such as “{EXAMPLE}”,"
    guaranteed = f"{found.symbol} {found.nearest.eta:g} of {first.name} guarantees{of}"
    return [f"{guaranteed} {found.brief_with_caveat} {found.comparison}"]


def training_encoder(
    encoder: Encoder, defence: DefenceSpec | None, seed: int
) -> tuple[Encoder, dict[str, Any]]:
    """Return the cached or defended encoder to train an attack on, and a record of the defence.

    Noise is seeded, so that a resumed run has the same vectors. Undefended vectors are cached;
    privatised texts differ each time and are not.
    """
    from leakscope.core.defences.adaptive_attack import defended_encoder
    from leakscope.core.defences.setting import setting_name

    if defence is None:
        return CachedEncoder(encoder), {}
    entry = entry_of(defence.name)
    noise = {"seed": seed} if entry.draws_noise else {}
    seeded = DefenceSpec.of(defence.name, noise | dict(defence.settings))
    base = encoder if entry.needs_white_box else CachedEncoder(encoder)
    record = {
        "defence": setting_name(defence.name, dict(defence.settings)),
        "undefended_fingerprint": encoder.fingerprint,
    }
    return defended_encoder(base, seeded), record


def trained_behind(attack: Any) -> str:
    """Return the name of the defence whose vectors an attack was trained on; "" for none."""
    return str((getattr(attack, "training_", None) or {}).get("defence", ""))


def open_behind(
    spec: AttackSpec,
    encoder: Encoder,
    defence: DefenceSpec | None,
    weights: Path | None,
    on_progress: OnProgress,
) -> tuple[InversionAttack, Encoder, list[str]]:
    """Open an attack for defended vectors; return it, its (defended) encoder, and notes to print.

    An attack that was trained behind a defence accepts only vectors behind the same one. Any other
    attack is adapted to the defence by a linear map (`adapt_to_defence`).

    Raises
    ------
    EncoderMismatchError
        It was trained behind another defence than that of the vectors, or these have none; the
        message names the option to change.
    """
    from leakscope.core.defences.adaptive_attack import adapt_to_defence

    if weights is not None:
        loaded = load_attack(weights)
        if trained_behind(loaded):
            return _open_trained_behind(loaded, spec, encoder, defence, weights, on_progress)
    attack = load_or_open_attack(spec, encoder, weights, on_progress)
    if defence is None:
        return attack, encoder, []
    turned = adapt_to_defence(attack, encoder, defence, spec, on_progress)
    return turned, turned.changed, [*adapted_attack_notes(defence), *odds_notes(defence, encoder)]


def _open_trained_behind(
    loaded: Any,
    spec: AttackSpec,
    encoder: Encoder,
    defence: DefenceSpec | None,
    weights: Path,
    on_progress: OnProgress,
) -> tuple[InversionAttack, Encoder, list[str]]:
    """Open an attack trained on defended vectors; raise unless the given defence is the same."""
    from leakscope.core.defences.adaptive_attack import defended_encoder

    own = trained_behind(loaded)
    if defence is None or _settings_by_stage(defence) != _settings_by_stage(read_defence(own)):
        given = "none" if defence is None else _format_defence(defence)
        raise EncoderMismatchError(
            f"--weights {weights} was trained behind the defence {own}, but these vectors are "
            f"behind {given}. Give --defence {own}, or --weights trained for these vectors."
        )
    if loaded.training_.get("undefended_fingerprint") != encoder.fingerprint:
        raise EncoderMismatchError(
            f"--weights {weights} was trained on encoder {loaded.encoder_name_!r}, but this is "
            f"{encoder.name!r}. Give --encoder, --layer and --weights that belong together."
        )
    changed: Any = defended_encoder(encoder, defence)
    # The same defence with fresh noise counts as the encoder that it was trained on.
    known: Encoder = replace(changed, fingerprint=loaded.encoder_fingerprint_)
    attack = load_or_open_attack(spec, known, weights, on_progress)
    note = f"the attacker was trained behind {own}, on vectors with independent noise."
    return attack, known, [note, *odds_notes(defence, encoder)]


def _format_defence(defence: DefenceSpec) -> str:
    """Return a defence and its settings as one name, without the seed of its noise."""
    from leakscope.core.defences.setting import setting_name

    return setting_name(defence.name, _without_noise_seed(defence.name, dict(defence.settings)))


def _without_noise_seed(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return a defence's settings without the seed of its noise.

    A seed that draws a matrix stays: it is part of the defence.
    """
    aside = {"seed"} if entry_of(name).draws_noise else set()
    return {k: v for k, v in settings.items() if k not in aside}


def _settings_by_stage(defence: DefenceSpec) -> dict[str, dict[str, Any]]:
    """Return, for each stage of a defence, all settings including defaults, without noise seeds."""
    entry, settings = entry_of(defence.name), dict(defence.settings)
    own = {defence.name: settings}
    if isinstance(entry, ChainEntry):
        own = settings_by_stage(entry, settings)
    found: dict[str, dict[str, Any]] = {}
    for stage, stage_settings in own.items():
        made: Any = make_defence(DefenceSpec.of(stage, stage_settings))
        found[stage] = _without_noise_seed(stage, asdict(made))
    return found


def load_or_open_attack(
    spec: AttackSpec, encoder: Encoder, weights: Path | None, on_progress: OnProgress
) -> InversionAttack:
    """Load the attack of `spec` from `weights`, or open the shipped one for `encoder`.

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
            f"--weights {weights} contains {attack_name(attack)!r}, not {spec.name!r}. "
            f"Give --attack {attack_name(attack)}."
        )
    known = getattr(attack, "encoder_fingerprint_", encoder.fingerprint)
    if known != encoder.fingerprint:
        raise EncoderMismatchError(
            f"--weights {weights} was trained on encoder {getattr(attack, 'encoder_name_', '?')!r} "
            f"and cannot attack vectors of {encoder.name!r}. Give --encoder, --layer and --weights "
            "that belong together."
        )
    for name, value in spec.settings:
        setattr(attack, name, value)
    validate_settings(attack)
    return attack
