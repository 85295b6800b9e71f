"""Adaptive attacks: the attacker knows the defence, its settings and its implementation.

A linear map takes protected vectors to the encoder's clean space, where attacks that were fitted on
that encoder apply. The map is fitted on bundled sentences, which the attacker protects too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leakscope.core.attacks.inversion.classifiers.tuned import (
    fine_tune,
    pairs_in_vocabulary,
    teacher_for,
)
from leakscope.core.attacks.inversion.evaluation import sample_texts
from leakscope.core.attacks.inversion.lifted import Lift, LiftedAttack, LiftedEncoder
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.shipped import (
    load_attack,
    shipped_digest,
    shipped_folder,
)
from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences.chain import Chain
from leakscope.core.defences.registry import entry_of, make_defence
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.protocols import (
    Access,
    Encoder,
    InversionAttack,
    OnProgress,
    Vectors,
    no_progress,
)
from leakscope.core.results import EvaluationResult
from leakscope.core.specs import AttackSpec, DefenceSpec, setting_values

N_PAIRS = 2_000
"""Bundled sentences from which an attacker learns how a defence changes vectors."""


N_TAUGHT = 5_000
"""Bundled sentences that a classifier is trained on with, behind a defence."""

N_COPIES = 3
"""Times that noise is drawn for each of them."""

EPOCHS, LEARNING_RATE = 6, 2e-3
"""Of that training; copies count as epochs (docs/decisions/0015-the-trade-offs-attacker.md)."""


class KnownVectors:
    """An encoder that returns stored vectors for one list of texts and encodes all other texts.

    Parameters
    ----------
    encoder : Encoder
    texts : sequence of n str
    vectors : ndarray of float32, shape (n, d)
    """

    def __init__(self, encoder: Encoder, texts: Sequence[str], vectors: Vectors) -> None:
        self.name, self.dimension = encoder.name, encoder.dimension
        self.fingerprint = encoder.fingerprint
        self.base, self._texts, self._vectors = encoder, texts, vectors

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return the stored vectors if `texts` equal the stored texts; otherwise encode `texts`."""
        if texts is self._texts or list(texts) == list(self._texts):
            return self._vectors
        return self.base.encode(texts, on_progress)


def defended_encoder(encoder: Encoder, defence: DefenceSpec | None) -> Encoder:
    """Return the encoder protected by the defence, or the encoder itself if the defence is None."""
    return encoder if defence is None else make_defence(defence).protect(encoder)


def attacker_pairs(
    encoder: Encoder, on_progress: OnProgress = no_progress
) -> tuple[list[str], Vectors]:
    """Sample bundled sentences and encode them; return the texts and their clean vectors."""
    known = sample_texts(bundled_sentences(), N_PAIRS, 0)
    return known, CachedEncoder(encoder).encode(known, on_progress)


def adapt_to_defence(
    attack: InversionAttack,
    encoder: Encoder,
    defence: DefenceSpec,
    spec: AttackSpec,
    on_progress: OnProgress = no_progress,
) -> LiftedAttack:
    """Wrap a fitted attack so that it maps defended vectors to the clean space, then attacks.

    The attack applies the defence to its own texts as far as the defence is deterministic.

    Parameters
    ----------
    attack : InversionAttack
        Fitted on `encoder`.
    encoder : Encoder
        Without the defence.
    defence : DefenceSpec
        Of the vectors under attack; a noise seed in it applies to the attacker's copies only.
    spec : AttackSpec
        Of `attack`.

    Returns
    -------
    LiftedAttack
        Attacks vectors of `changed`, the encoder behind the defence. It also attacks stored
        vectors whose noise was drawn elsewhere.

    Raises
    ------
    InvalidInputError
        No such defence or setting.
    """
    known, clean = attacker_pairs(encoder, on_progress)
    is_plain = entry_of(defence.name).needs_white_box
    base = encoder if is_plain else KnownVectors(encoder, known, clean)
    changed = defended_encoder(base, defence)
    lift = Lift.fit(changed.encode(known, on_progress), clean)
    return LiftedAttack(
        attack, lift, _choose_guess_encoder(encoder, changed, defence, spec, lift), changed
    )


def _choose_guess_encoder(
    encoder: Encoder, changed: Encoder, defence: DefenceSpec, spec: AttackSpec, lift: Lift
) -> Encoder:
    """Return the encoder for the attack's guessed texts, behind the noiseless stages only."""
    if reads_gradients(spec):
        return encoder
    if not entry_of(defence.name).draws_noise:
        return LiftedEncoder(encoder, changed, lift)
    certain = deterministic_part(encoder, defence)
    return encoder if certain is encoder else LiftedEncoder(encoder, certain, lift)


def deterministic_part(encoder: Encoder, defence: DefenceSpec) -> Encoder:
    """Return the encoder behind a defence's noiseless stages; the plain encoder without any.

    Noise that is drawn again would only blur the comparison of a guess with a vector.
    """
    made = make_defence(defence)
    if not entry_of(defence.name).draws_noise:
        return made.protect(encoder)
    if isinstance(made, Chain) and made.deterministic.stages:
        return made.deterministic.protect(encoder)
    return encoder


def adapt_to_change(
    attack: InversionAttack,
    encoder: Encoder,
    changed: Encoder,
    spec: AttackSpec,
    known: tuple[Sequence[str], Vectors],
) -> LiftedAttack:
    """Wrap a fitted attack with a linear map that undoes a known change of the vectors.

    Parameters
    ----------
    attack : InversionAttack
        Fitted on `encoder`.
    changed : Encoder
        The encoder with its vectors changed.
    spec : AttackSpec
        Of `attack`.
    known : (sequence of n str, ndarray of float32 of shape (n, d))
        From `attacker_pairs`: texts and their unchanged vectors.
    """
    lift = Lift.fit(changed.encode(known[0]), known[1])
    queried = encoder if reads_gradients(spec) else LiftedEncoder(encoder, changed, lift)
    return LiftedAttack(attack, lift, queried, changed)


def reads_gradients(spec: AttackSpec) -> bool:
    """Return whether the attack of a spec needs the encoder's gradients (white-box access)."""
    return INVERSION_ATTACKS[spec.name].access is Access.WHITE_BOX


def relabel_result(
    found: EvaluationResult, attack: InversionAttack, encoder: Encoder, spec: AttackSpec
) -> EvaluationResult:
    """Return the result with the name and settings of the attack that the adaptive one wraps.

    Parameters
    ----------
    encoder : Encoder
        Without the defence: the result names this encoder and its precision.
    """
    own: Any = attack.attack if isinstance(attack, LiftedAttack) else attack
    machine: dict[str, Any] = {
        name: str(getattr(encoder, name, getattr(found, name)))
        for name in ("device", "precision", "backend")
    }
    settings = setting_values(own)
    training = dict(getattr(own, "training_", None) or {})
    return replace(found, attack=spec.name, settings=settings, training=training, **machine)


def finetune_behind(
    encoder: Encoder,
    protect: Callable[[Encoder], Encoder],
    *,
    reads_texts: bool = False,
    n_copies: int = 1,
    n: int = N_TAUGHT,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> LiftedAttack | None:
    """Fine-tune the shipped word classifier on defended vectors; return None if none ships.

    The classifier starts from its shipped weights, reads vectors restored by a linear map, and
    learns from its own answers to the unchanged vectors (distillation). Other bundled sentences
    choose the epoch.

    Parameters
    ----------
    encoder : Encoder
        Without the change.
    protect : callable
        Puts an encoder behind a defence or a storage format.
    reads_texts : bool
        Whether the change needs the encoder itself, not only its vectors.
    n_copies : int
        Protected copies of each sentence: several if noise is drawn.
    n : int
        Bundled sentences for training; a tenth as many choose the epoch.
    seed : int
        Random seed of the sentences.

    Returns
    -------
    LiftedAttack or None
        None if no classifier ships for the encoder.
    """
    if not shipped_digest(encoder, "probe_mlc"):
        return None
    shipped: Any = load_attack(shipped_folder(encoder, "probe_mlc"))
    sentences = list(dict.fromkeys(sample_texts(bundled_sentences(), None, seed)))
    order = np.random.default_rng(seed).permutation(len(sentences))
    texts = [sentences[i] for i in order[: n + max(20, n // 10)]]
    known, held = texts[:n], texts[n:]
    clean = CachedEncoder(encoder).encode(texts, on_progress)
    changed = protect(encoder if reads_texts else KnownVectors(encoder, texts, clean))
    copies = [changed.encode(texts, on_progress) for _ in range(n_copies)]
    own = clean[: len(known)]
    seen = [vectors[: len(known)] for vectors in copies]
    lift = Lift.fit(np.concatenate(seen), np.concatenate([own] * n_copies))
    back = [lift(vectors) for vectors in seen]
    pairs = pairs_in_vocabulary(
        shipped.vocabulary_, (known, back), (held, lift(copies[0][len(known) :]))
    )
    tuned = fine_tune(
        shipped,
        encoder,
        pairs,
        epochs=-(-EPOCHS // n_copies),
        learning_rate=LEARNING_RATE,
        teacher=teacher_for(shipped, known, own),
        on_progress=on_progress,
    )
    return LiftedAttack(tuned, lift, encoder, changed)
