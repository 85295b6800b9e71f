"""Encoders behind a defence that a command names, and attackers who know which it is."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from core.protocols import Encoder, InversionAttack, OnProgress, Vectors, no_progress
from core.specs import AttackSpec, DefenceSpec

if TYPE_CHECKING:
    from core.attacks.inversion.lifted import LiftedAttack

__all__ = [
    "N_PAIRS",
    "add_defence_argument",
    "defence_spec",
    "notes_on",
    "odds_notes",
    "protected",
    "turned_on",
]

N_PAIRS = 2_000
"""Bundled sentences of which an attacker learns how the defence changes vectors."""


def add_defence_argument(parser: argparse.ArgumentParser) -> None:
    """Add what chooses the defence that the vectors are behind."""
    parser.add_argument(
        "--defence",
        metavar="NAME",
        help="what protects the vectors: NAME, NAME:SETTING=VALUE, or a chain of such, as in "
        "text_to_text:eta=60+int8; `list --defence NAME` shows one",
    )


def defence_spec(arguments: argparse.Namespace, *, seed: int | None = None) -> DefenceSpec | None:
    """Return the defence or chain that the arguments choose; None where nothing is changed.

    Parameters
    ----------
    seed : int, optional
        Of its noise, where a measurement is to be repeated; else noise is fresh.

    Raises
    ------
    InvalidInputError
        No such defence or setting, or stages that cannot follow each other.
    """
    if arguments.defence is None:
        return None
    from core.defences.registry import entry_of
    from core.defences.told import read_defence

    spec = read_defence(arguments.defence)
    entry = entry_of(spec.name)
    if entry.is_baseline:
        return None
    settings = dict(spec.settings)
    if seed is not None and entry.takes_seed:
        settings.setdefault("seed", seed)
    return DefenceSpec.of(spec.name, settings)


def protected(encoder: Encoder, defence: DefenceSpec | None) -> Encoder:
    """Return an encoder behind a defence; itself where there is none."""
    from core.defences.registry import make_defence

    return encoder if defence is None else make_defence(defence).protect(encoder)


def turned_on(
    attack: InversionAttack,
    encoder: Encoder,
    defence: DefenceSpec,
    spec: AttackSpec,
    on_progress: OnProgress = no_progress,
) -> LiftedAttack:
    """Turn an attack on the encoder behind a defence, which the attacker knows and can use.

    A linear map, learned of bundled sentences with their vectors before and after, leads back what
    is attacked. What is certain of the defence is applied to texts that the attack tries itself.

    Returns
    -------
    LiftedAttack
        Its `changed` is the encoder under attack.
    """
    from core.attacks.inversion.evaluation import sample_texts
    from core.attacks.inversion.lifted import Lift, LiftedAttack
    from core.corpora import bundled_sentences
    from core.defences.registry import entry_of
    from core.encoders.cache import CachedEncoder

    known = sample_texts(bundled_sentences(), N_PAIRS, 0)
    clean = CachedEncoder(encoder).encode(known, on_progress)
    is_plain = entry_of(defence.name).needs_white_box
    changed = protected(encoder if is_plain else _Recalled(encoder, known, clean), defence)
    lift = Lift.fit(changed.encode(known, on_progress), clean)
    return LiftedAttack(attack, lift, _queried(encoder, changed, defence, spec, lift), changed)


def _queried(
    encoder: Encoder, changed: Encoder, defence: DefenceSpec, spec: AttackSpec, lift: Any
) -> Encoder:
    """Return what the attack encodes its own texts with: noise cannot be applied to a guess."""
    from core.attacks.inversion.lifted import LiftedEncoder
    from core.attacks.inversion.registry import INVERSION_ATTACKS
    from core.defences.chain import Chain
    from core.defences.registry import entry_of, make_defence
    from core.protocols import Access

    made = make_defence(defence)
    if INVERSION_ATTACKS[spec.name].access is Access.WHITE_BOX:  # reads gradients, which it has
        return encoder
    if not entry_of(defence.name).draws_noise:
        return LiftedEncoder(encoder, changed, lift)
    if isinstance(made, Chain) and made.certain.stages:
        return LiftedEncoder(encoder, made.certain.protect(encoder), lift)
    return encoder


def notes_on(defence: DefenceSpec) -> list[str]:
    """Return what whoever reads the figures of `turned_on` should know."""
    from core.defences.registry import entry_of

    told = [
        f"the attacker knows the defence: a linear map, learned of {N_PAIRS:,} sentences that "
        "ship, leads vectors back. Attackers trained behind it may read more: `study tradeoff`."
    ]
    if entry_of(defence.name).releases_tokens:
        told.append("what leaves the house is a text or its tokens, which anybody reads without "
                    "an attack; only the vector is attacked here.")  # fmt: skip
    return told


def odds_notes(defence: DefenceSpec, encoder: Encoder) -> list[str]:
    """Return what the η of a defence, or of the first of a chain, promises on an encoder."""
    from core.defences.metric_dp.choice_promise import promises_of
    from core.defences.metric_dp.promised import EXAMPLE
    from core.defences.registry import DEFENCES, guarantee_of
    from core.studies.tradeoff_setting import first_of

    first = first_of(defence)
    if first.name not in DEFENCES or not guarantee_of(first):
        return []
    found = promises_of(encoder, first)
    of = "" if found.is_of_texts else f", of a text such as “{EXAMPLE}”"
    promised = f"{found.symbol} {found.nearest.eta:g} of {first.name} promises{of}"
    return [f"{promised} {found.brief_and_also} {found.comparison}"]


class _Recalled:
    """An encoder that has encoded some texts before; typed texts are kept nowhere."""

    def __init__(self, encoder: Encoder, texts: Sequence[str], vectors: Vectors) -> None:
        self.name, self.dimension = encoder.name, encoder.dimension
        self.fingerprint = encoder.fingerprint
        self.base, self._texts, self._vectors = encoder, texts, vectors

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the vectors that are known, or encode."""
        if texts is self._texts:
            return self._vectors
        return self.base.encode(texts, on_progress)
