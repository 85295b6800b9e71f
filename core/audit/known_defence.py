"""Attacks on vectors behind a defence that the attacker knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from leakscope.core.attacks.inversion.evaluation import attack_vocabulary
from leakscope.core.attacks.inversion.lifted import LiftedAttack
from leakscope.core.attacks.inversion.shipped import open_attack
from leakscope.core.audit.identification import (
    MOST_OTHERS,
    RELATED,
    SAME,
    Identification,
    median_cosine,
)
from leakscope.core.audit.leakage import Leakage, measure_leakage
from leakscope.core.audit.sources import Sample
from leakscope.core.defences.adaptive_attack import (
    N_COPIES,
    N_TAUGHT,
    KnownVectors,
    adapt_to_defence,
    defended_encoder,
    finetune_behind,
    relabel_result,
)
from leakscope.core.defences.entries import stages_of
from leakscope.core.defences.registry import entry_of
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.specs import AttackSpec, DefenceSpec
from leakscope.core.text import check_texts
from leakscope.core.vectors import unit

N_DRAWS = 5
"""Number of noise samples per known text, to learn how similar two samples of a text are."""

TRAINED_ATTACK = "probe_mlc"
"""The classifier that is trained further on defended vectors."""

LEAST_COSINE = 0.15
"""Minimum median cosine of two noise samples at which texts of other rows are noticed."""

CHANCE = 2.0
"""Standard errors by which a median cosine may lie outside those of two noise samples."""


@dataclass(frozen=True)
class DefenceAgreement:
    """Whether stored vectors match what a defence makes of the known texts.

    Attributes
    ----------
    identification : Identification
        Its encoder is None where the vectors match the encoder neither with nor without the
        defence.
    is_undefended : bool
        Whether they match the encoder without the defence: it is switched off.
    cosine : float
        Median cosine of the stored vectors with protected vectors of the same texts; NaN where
        they are not comparable.
    expected : (float, float)
        The least and the greatest median cosine of two draws of the defence on these texts.
    """

    identification: Identification
    is_undefended: bool
    cosine: float
    expected: tuple[float, float]


def agreement_with_defence(
    encoder: Encoder,
    defence: DefenceSpec,
    texts: Sequence[str],
    vectors: Vectors,
    on_progress: OnProgress = no_progress,
) -> DefenceAgreement:
    """Encode texts behind a defence and compare with stored vectors, to tell whether it was used.

    New noise never equals the stored noise. The stored vectors are one sample, so
    their cosine with other draws is distributed as that of two draws, which is measured.

    Parameters
    ----------
    encoder : Encoder
        Without the defence.
    texts : sequence of n str
        What the vectors were made from; some 50 are enough.
    vectors : ndarray of float32, shape (n, m)

    Raises
    ------
    InvalidInputError
        No text, or one that cannot be encoded; no such defence or setting, or one that the encoder
        cannot be put behind.
    """
    known = check_texts(texts)
    if len(known) != len(vectors):
        raise InvalidInputError(
            f"Got {len(known)} texts for {len(vectors)} vectors. Give one text per vector."
        )
    behind = f"{encoder.name} behind {describe_defence(defence)}"
    n_draws = N_DRAWS if entry_of(defence.name).draws_noise else 1
    base: Encoder = encoder
    if not entry_of(defence.name).needs_white_box:  # of vectors alone: the texts are encoded once
        base = KnownVectors(encoder, known, encoder.encode(known, on_progress))
    changed = defended_encoder(base, defence)
    draws = [unit(changed.encode(known, on_progress).astype(np.float64)) for _ in range(n_draws)]
    by_pair = np.array([(one * other).sum(axis=1) for one, other in combinations(draws, 2)])
    pairs = np.median(by_pair, axis=1) if len(by_pair) else np.ones(1)
    low, high = float(pairs.min()), float(pairs.max())
    # Of few texts, another draw lies outside these ten pairs by chance: once in forty without it.
    spread = by_pair.std(axis=0, ddof=1).mean() if len(by_pair) else 0.0
    chance = CHANCE * spread / len(known) ** 0.5
    cosine, n_other = float("nan"), 0
    if changed.dimension == vectors.shape[1]:
        stored = unit(vectors.astype(np.float64))
        by_draw = np.array([(stored * draw).sum(axis=1) for draw in draws])
        cosine = float(np.median(by_draw, axis=1).mean())
        n_other = int((by_draw.mean(axis=0) < RELATED * low).sum())
    n = f"{len(known):,} known text{'s' if len(known) > 1 else ''}"
    expected = f"{low:.3f}" if low == high else f"{low:.3f} to {high:.3f}"
    cosines = f"median cosine {cosine:.3f}, expected {expected}"
    is_weak = low < LEAST_COSINE  # what is left of a text is within chance
    is_alike = cosine >= SAME * low - chance - LEAST_COSINE * is_weak
    own = median_cosine(base, known, vectors)
    # Else the defence changes hardly anything.
    is_undefended = own >= SAME and own > SAME * high
    if is_undefended:
        reason = (
            f"The defence is off: {encoder.name} makes the same vectors of {n} without it (median "
            f"cosine {own:.3f})."
        )
        found = Identification(encoder.name, reason, is_certain=True)
    elif is_alike and n_other > MOST_OTHERS * len(known) and not is_weak:
        reason = (
            f"{n_other:,} of {n} do not match their vectors behind {behind}. The texts belong to "
            "other rows."
        )
        found = Identification(None, reason, is_certain=True)
    elif is_alike and cosine <= high / SAME + chance + LEAST_COSINE * is_weak:
        reason = f"These vectors match those that {behind} makes of {n} ({cosines})."
        if is_weak:
            reason = f"{behind} changes the vectors of {n} too much for a comparison ({cosines})."
        found = Identification(encoder.name, reason, is_certain=not is_weak, is_changed=is_weak)
    elif is_alike:
        reason = (
            f"These vectors match {n} better than {behind} allows ({cosines}): the defence is "
            "weaker than its settings state."
        )
        found = Identification(encoder.name, reason, is_changed=True)
    elif changed.dimension != vectors.shape[1]:
        reason = (
            f"{behind} makes vectors of {changed.dimension} dimensions, but these have "
            f"{vectors.shape[1]}."
        )
        found = Identification(None, reason)
    else:
        reason = (
            f"These vectors do not match those that {behind} makes of {n} ({cosines}). Another "
            "defence or encoder made them, or the texts belong to other rows."
        )
        found = Identification(None, reason, is_certain=True)
    return DefenceAgreement(found, is_undefended, cosine, (low, high))


def describe_defence(defence: DefenceSpec) -> str:
    """Format a defence spec as a command-line argument, without the seed of its noise.

    Examples
    --------
    >>> describe_defence(DefenceSpec.of("gaussian", {"sigma": 0.05, "seed": 1}))
    'gaussian:sigma=0.05'
    >>> describe_defence(DefenceSpec.of("gaussian+int8", {"gaussian.sigma": 0.05}))
    'gaussian:sigma=0.05+int8'
    """
    stages = stages_of(defence.name)
    parts = []
    for stage in stages:
        start = "" if len(stages) == 1 else f"{stage}."
        own = {
            key.removeprefix(start): value
            for key, value in defence.settings
            if key.startswith(start)
        }
        if entry_of(stage).draws_noise:
            own.pop("seed", None)
        settings = ",".join(f"{key}={value}" for key, value in own.items())
        parts.append(f"{stage}:{settings}" if settings else stage)
    return "+".join(parts)


def measure_leakage_behind(
    sample: Sample,
    encoder: Encoder,
    attack: LiftedAttack,
    spec: AttackSpec,
    *,
    name: str,
    on_progress: OnProgress = no_progress,
) -> Leakage:
    """Attack a sample's vectors, stored behind a defence, and score the recovered words.

    Parameters
    ----------
    encoder : Encoder
        Without the defence.
    attack : LiftedAttack
        From `adapt_to_defence`.
    spec : AttackSpec
        Of the attack that was turned on the defence: the result has its name.
    name : str
        How the result calls the texts.

    Raises
    ------
    InvalidInputError
        No row has a text with a word to find.
    """
    attack.vocabulary_ = attack_vocabulary(attack.attack, encoder)
    found = measure_leakage(sample, attack.changed, attack, name=name, on_progress=on_progress)
    assert found.result is not None
    return replace(
        found, attack=spec.name, result=relabel_result(found.result, attack, encoder, spec)
    )


def measure_stronger_leakage(
    sample: Sample,
    encoder: Encoder,
    attackers: tuple[LiftedAttack, LiftedAttack | None],
    spec: AttackSpec,
    *,
    name: str,
    on_progress: OnProgress = no_progress,
) -> tuple[Leakage, str]:
    """Attack changed vectors in one or two ways; return the greater leakage and its attacker.

    Parameters
    ----------
    encoder : Encoder
        Without the change.
    attackers : (LiftedAttack, LiftedAttack or None)
        From `adapt_to_defence` or `adapt_to_change`, then from `finetune_behind`, which may be
        None. The second counts if both have the same vocabulary.
    spec : AttackSpec
        Of the first.
    name : str
        How the result calls the texts.

    Returns
    -------
    (Leakage, str)
        By the greater F1.
    """
    lifted, trained = attackers
    found = measure_leakage_behind(
        sample, encoder, lifted, spec, name=name, on_progress=on_progress
    )
    if trained is None or trained.vocabulary_.words != lifted.vocabulary_.words:
        return found, spec.name
    other = measure_leakage_behind(
        sample, encoder, trained, AttackSpec(name=TRAINED_ATTACK), name=name
    )
    if other.f1.value > found.f1.value:
        return other, f"{TRAINED_ATTACK}, trained behind the change"
    return found, spec.name


def measure_leakage_known(
    sample: Sample,
    encoder: Encoder,
    defence: DefenceSpec,
    spec: AttackSpec,
    *,
    name: str,
    n_taught: int = N_TAUGHT,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> tuple[Leakage, str]:
    """Attack rows behind a known defence in two ways; return the greater leakage and its attacker.

    One maps the vectors back linearly; the other was fine-tuned on bundled sentences behind the
    same defence, with its own draws of noise.

    Parameters
    ----------
    sample : Sample
        As stored.
    encoder : Encoder
        Without the defence.
    spec : AttackSpec
        Of the first attacker.
    n_taught : int
        Sentences that the second is trained on with; 0 for the first alone.
    seed : int
        Of their draw, and of the attacker's noise.

    Returns
    -------
    (Leakage, str)
        And which attacker it was.
    """
    opened = open_attack(spec, encoder, on_progress)
    own = with_noise_seed(defence, seed)
    lifted = adapt_to_defence(opened, encoder, own, spec, on_progress)
    trained = None
    if n_taught:
        entry = entry_of(defence.name)
        trained = finetune_behind(
            encoder,
            lambda base: defended_encoder(base, own),
            reads_texts=entry.needs_white_box,
            n_copies=N_COPIES if entry.draws_noise and not entry.needs_white_box else 1,
            n=n_taught,
            seed=seed,
            on_progress=on_progress,
        )
    return measure_stronger_leakage(
        sample, encoder, (lifted, trained), spec, name=name, on_progress=on_progress
    )


def with_noise_seed(spec: DefenceSpec, seed: int) -> DefenceSpec:
    """Return a defence spec with the given noise seed; unchanged if it draws no noise."""
    if not entry_of(spec.name).draws_noise:
        return spec
    return DefenceSpec.of(spec.name, {**dict(spec.settings), "seed": seed})
