"""One-run privacy audit of a language model: randomly included canaries, guessed from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.memorisation.canaries import make_canary
from leakscope.core.attacks.membership.memorisation.network import make_network
from leakscope.core.attacks.membership.memorisation.one_run import OneRunAudit, audit
from leakscope.core.attacks.membership.memorisation.perplexity import log_perplexities
from leakscope.core.attacks.membership.memorisation.private import (
    CLIP_NORM,
    GradientCanaries,
    train_model,
)
from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.attacks.membership.memorisation.texts import (
    check_private_tokens,
    check_sentences,
    check_settings,
    split_held_out,
)
from leakscope.core.attacks.membership.memorisation.tokens import make_tokens
from leakscope.core.attacks.membership.memorisation.training import train_network
from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.roc import auc
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.results import Score
from leakscope.core.training.accounting import Guarantee, Privacy

ACCESS = ("texts", "gradients")
"""What the auditor sees: the final model, or the gradients of every training step."""

CANARY = "{letters:6} {letters:6} {digits:6}"
"""The format of text canaries: distinct from all texts and from each other."""


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """The settings of a one-run audit.

    Attributes
    ----------
    epsilon : float
        The privacy budget of the training; 0 for training without differential privacy.
    access : str
        `texts`: canaries are texts, and the auditor sees the final model. `gradients`: canaries are
        gradients of one weight, and the auditor sees the noisy gradients of each step.
    n_guesses : int
        How many canaries are guessed, fixed before the scores are seen.
    """

    epsilon: float = 0.0
    access: str = "texts"
    n_canaries: int = 1000
    n_guesses: int = 200

    def check(self) -> None:
        """Raise InvalidInputError for inconsistent settings."""
        if self.epsilon < 0 or not 1 <= self.n_guesses <= self.n_canaries or self.n_canaries < 2:
            raise InvalidInputError(
                "epsilon must be 0 or more, n_canaries 2 or more and n_guesses between 1 and "
                f"n_canaries; got {self.epsilon}, {self.n_canaries} and {self.n_guesses}."
            )
        if self.access not in ACCESS or (self.access == "gradients" and not self.epsilon):
            raise InvalidInputError(
                f"access must be one of {', '.join(ACCESS)}, and 'gradients' needs private "
                f"training (epsilon above 0); got {self.access!r} and {self.epsilon}."
            )


@dataclass(frozen=True)
class ModelAudit:
    """The result of auditing a model.

    Attributes
    ----------
    found, shuffled : OneRunAudit
        The bound, and the control: that of the same guesses against re-randomised inclusion.
    auc : Score
        The AUC of the scores.
    privacy : Privacy or None
        The accountant's guarantee; None for training without differential privacy.
    """

    found: OneRunAudit
    shuffled: OneRunAudit
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
) -> ModelAudit:
    """Audit a model in one training run: include canaries with probability ½, guess, and bound ε.

    Implements Steinke, Nasr & Jagielski (2023), Algorithm 1. With the final model alone, a text's
    score is the decrease of its log-perplexity by training.
    Differs from the paper: the text canaries are ours.

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
    known, held_out = split_held_out(check_sentences(list(texts)), seed)
    rng = np.random.default_rng([seed, 42])
    is_in, control = rng.random(plan.n_canaries) < 0.5, rng.random(plan.n_canaries) < 0.5
    then: Any = {"checkpoint_dir": checkpoint_dir, "on_progress": on_progress}
    privacy: Privacy | None
    if plan.access == "gradients":
        scores, privacy = _score_gradient_canaries(known, settings, plan, is_in, seed, then)
    else:
        scores, privacy = _score_text_canaries((known, held_out), settings, plan, is_in, seed, then)
    delta = 0.0 if privacy is None else privacy.delta
    return ModelAudit(
        audit(scores, is_in, plan.n_guesses, delta=delta),
        audit(scores, control, plan.n_guesses, delta=delta),
        auc(Ranking(scores, is_in), seed=seed),
        privacy,
    )


def _score_text_canaries(
    texts: tuple[list[str], list[str]],
    settings: MemorisationSettings,
    plan: AuditPlan,
    is_in: NDArray[np.bool_],
    seed: int,
    then: Any,
) -> tuple[NDArray[np.float64], Privacy | None]:
    """Train with text canaries; score each by the decrease of its log-perplexity, in bits."""
    known, held_out = texts
    made = make_canary(CANARY, known, seed)
    canaries = [made.text, *made.draw_others(plan.n_canaries - 1, seed)]
    planted = [*known, *(text for text, put in zip(canaries, is_in, strict=True) if put)]
    tokens = make_tokens(settings.tokens, known, canaries, settings.vocabulary_size)
    before = make_network(
        settings.model, tokens.size, settings.hidden, settings.max_length, seed=seed
    )
    privacy: Privacy | None = None
    if plan.epsilon:
        promise = Guarantee(epsilon=plan.epsilon, n_expected=len(known) + plan.n_canaries / 2)
        after, privacy = train_model(planted, tokens, settings, seed, promise=promise, **then)
    else:
        after, _ = train_network(planted, held_out, tokens, settings, seed, **then)
    saved = log_perplexities(before, tokens, canaries)
    saved -= log_perplexities(after.cpu(), tokens, canaries)
    return saved, privacy


def _score_gradient_canaries(
    known: list[str],
    settings: MemorisationSettings,
    plan: AuditPlan,
    is_in: NDArray[np.bool_],
    seed: int,
    then: Any,
) -> tuple[NDArray[np.float64], Privacy | None]:
    """Train with gradient canaries; score each by the sum of noisy gradients at its weight."""
    tokens = make_tokens(settings.tokens, known, (), settings.vocabulary_size)
    shape = make_network(settings.model, tokens.size, settings.hidden, settings.max_length)
    n_weights = sum(weight.numel() for weight in shape.parameters())
    if plan.n_canaries > n_weights:
        raise InvalidInputError(
            f"n_canaries must lie in [2, {n_weights}], the weights of the model, got "
            f"{plan.n_canaries}."
        )
    canaries = GradientCanaries(plan.n_canaries, n_weights, is_in, CLIP_NORM, seed)
    promise = Guarantee(epsilon=plan.epsilon, n_expected=len(known) + plan.n_canaries / 2)
    _, privacy = train_model(
        known, tokens, settings, seed, promise=promise, canaries=canaries, **then
    )
    return canaries.scores, privacy
