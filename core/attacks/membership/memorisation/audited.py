"""A model audited in one run: canaries put in by coin toss, and guessed from its training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.memorisation.canaries import make_canary
from core.attacks.membership.memorisation.gradients import GradientCanaries
from core.attacks.membership.memorisation.network import make_network
from core.attacks.membership.memorisation.one_run import OneRun, audit
from core.attacks.membership.memorisation.perplexity import log_perplexities
from core.attacks.membership.memorisation.private import CLIP_NORM, train_model
from core.attacks.membership.memorisation.settings import MemorisationSettings
from core.attacks.membership.memorisation.texts import (
    check_private_tokens,
    check_settings,
    checked,
    split_held_out,
)
from core.attacks.membership.memorisation.tokens import make_tokens
from core.attacks.membership.memorisation.training import train_network
from core.attacks.membership.roc import Ranking, auc
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.results import Score
from core.training.accounting import Privacy, Promise

__all__ = ["ACCESS", "CANARY", "AuditPlan", "Audited", "audit_model"]

ACCESS = ("texts", "gradients")
"""What the auditor sees: the model at the end, or every step of its training."""

CANARY = "{letters:6} {letters:6} {digits:6}"
"""What is put in where the model alone is seen: texts unlike all others, and unlike each other."""


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """How a model is trained and audited.

    Attributes
    ----------
    epsilon : float
        That the training is to keep to; 0 for a training without differential privacy.
    access : str
        `texts`: canaries are texts, and the model at the end is seen. `gradients`: canaries are
        gradients of one weight, and the noisy gradients of each step are seen.
    n_guesses : int
        How many canaries are guessed, fixed before the scores are seen; of the others nothing is
        said.
    """

    epsilon: float = 0.0
    access: str = "texts"
    n_canaries: int = 1000
    n_guesses: int = 200

    def check(self) -> None:
        """Raise InvalidInputError where the numbers do not fit together."""
        if self.epsilon < 0 or not 1 <= self.n_guesses <= self.n_canaries or self.n_canaries < 2:
            raise InvalidInputError(
                "epsilon must be 0 or more, n_canaries 2 or more and n_guesses between 1 and "
                f"n_canaries; got {self.epsilon}, {self.n_canaries} and {self.n_guesses}."
            )
        if self.access not in ACCESS or (self.access == "gradients" and not self.epsilon):
            raise InvalidInputError(
                f"access must be one of {', '.join(ACCESS)}, and gradients are seen in private "
                f"training alone (epsilon above 0); got {self.access!r} and {self.epsilon}."
            )


@dataclass(frozen=True)
class Audited:
    """What an audit of a model found.

    Attributes
    ----------
    found, shuffled : OneRun
        The bound, and that of the same guesses held against coins tossed anew.
    auc : Score
        Of the scores that the guesses follow.
    privacy : Privacy or None
        What the accountant says; None for a model trained without differential privacy.
    """

    found: OneRun
    shuffled: OneRun
    auc: Score
    privacy: Privacy | None


def audit_model(
    texts: Sequence[str],
    settings: MemorisationSettings,
    plan: AuditPlan,
    seed: int,
    *,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> Audited:
    """Put each canary in with probability ½, train once, guess, and bound ε from below.

    Implements Steinke, Nasr & Jagielski (2023), Algorithm 1. Who sees the model alone scores a
    text by what the training saved: its log-perplexity before, less that after.
    Differs from the paper: canaries that are texts are of ours.

    Raises
    ------
    MissingDependencyError
        opacus is not installed, and ε was asked for.
    InvalidInputError
        Numbers that do not fit together, too few texts, or words as tokens where ε was asked for.
    """
    check_settings(settings)
    plan.check()
    if plan.epsilon:
        check_private_tokens(settings)
    known, held_out = split_held_out(checked(list(texts)), seed)
    rng = np.random.default_rng([seed, 42])
    is_in, anew = rng.random(plan.n_canaries) < 0.5, rng.random(plan.n_canaries) < 0.5
    then: Any = {"checkpoint_dir": checkpoint_dir, "on_progress": on_progress}
    privacy: Privacy | None
    if plan.access == "gradients":
        scores, privacy = _by_gradients(known, settings, plan, is_in, seed, then)
    else:
        scores, privacy = _by_texts((known, held_out), settings, plan, is_in, seed, then)
    delta = 0.0 if privacy is None else privacy.delta
    return Audited(
        audit(scores, is_in, plan.n_guesses, delta=delta),
        audit(scores, anew, plan.n_guesses, delta=delta),
        auc(Ranking(scores, is_in), seed=seed),
        privacy,
    )


def _by_texts(
    texts: tuple[list[str], list[str]], settings: MemorisationSettings, plan: AuditPlan,
    is_in: NDArray[np.bool_], seed: int, then: Any,
) -> tuple[NDArray[np.float64], Privacy | None]:  # fmt: skip
    """Return by how many bits the training made each canary likelier."""
    known, held_out = texts
    made = make_canary(CANARY, known, seed)
    canaries = [made.text, *made.replaced(plan.n_canaries - 1, seed)]
    planted = [*known, *(text for text, put in zip(canaries, is_in, strict=True) if put)]
    tokens = make_tokens(settings.tokens, known, canaries, settings.vocabulary_size)
    before = make_network(settings.model, tokens.size, settings.hidden, settings.max_length,
                          seed=seed)  # fmt: skip
    privacy: Privacy | None = None
    if plan.epsilon:
        promise = Promise(epsilon=plan.epsilon, n_expected=len(known) + plan.n_canaries / 2)
        after, privacy = train_model(planted, tokens, settings, seed, promise=promise, **then)
    else:
        after, _ = train_network(planted, held_out, tokens, settings, seed, **then)
    saved = log_perplexities(before, tokens, canaries)
    saved -= log_perplexities(after.cpu(), tokens, canaries)
    return saved, privacy


def _by_gradients(
    known: list[str], settings: MemorisationSettings, plan: AuditPlan, is_in: NDArray[np.bool_],
    seed: int, then: Any,
) -> tuple[NDArray[np.float64], Privacy | None]:  # fmt: skip
    """Return the sum of the noisy gradients at the weight of each canary."""
    tokens = make_tokens(settings.tokens, known, (), settings.vocabulary_size)
    shape = make_network(settings.model, tokens.size, settings.hidden, settings.max_length)
    n_weights = sum(weight.numel() for weight in shape.parameters())
    if plan.n_canaries > n_weights:
        raise InvalidInputError(
            f"n_canaries must lie in [2, {n_weights}], the weights of the model, got "
            f"{plan.n_canaries}."
        )
    canaries = GradientCanaries(plan.n_canaries, n_weights, is_in, CLIP_NORM, seed)
    promise = Promise(epsilon=plan.epsilon, n_expected=len(known) + plan.n_canaries / 2)
    _, privacy = train_model(known, tokens, settings, seed, promise=promise, canaries=canaries,
                             **then)  # fmt: skip
    return canaries.scores, privacy
