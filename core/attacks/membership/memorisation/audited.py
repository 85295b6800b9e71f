"""A model audited in one run: canaries put in by coin toss, and guessed from the model alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.memorisation.canaries import make_canary
from core.attacks.membership.memorisation.network import Network, make_network
from core.attacks.membership.memorisation.one_run import OneRun, audit
from core.attacks.membership.memorisation.perplexity import log_perplexities
from core.attacks.membership.memorisation.private import DELTA, Privacy, train_private
from core.attacks.membership.memorisation.settings import MemorisationSettings
from core.attacks.membership.memorisation.texts import check_settings, checked, split_held_out
from core.attacks.membership.memorisation.tokens import Tokens, make_tokens
from core.attacks.membership.memorisation.training import train_network
from core.attacks.membership.roc import Ranking, auc
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.results import Score

__all__ = ["CANARY", "Audited", "audit_model"]

CANARY = "{letters:6} {letters:6} {digits:6}"
"""What is put in: texts unlike all others, and unlike each other."""


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
    seed: int,
    *,
    epsilon: float = 0.0,
    n_canaries: int = 1000,
    n_guesses: int = 200,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> Audited:
    """Put each canary in with probability ½, train once, guess, and bound ε from below.

    Implements Steinke, Nasr & Jagielski (2023), Algorithm 1, with black-box access: the score is
    what the training saved, log-perplexity before less that after. Differs from the paper: the
    canaries are texts of ours.

    Parameters
    ----------
    epsilon : float
        That the training is to keep to; 0 for a training without differential privacy.
    n_guesses : int
        How many canaries are guessed, fixed before the scores are seen; of the others nothing is
        said.

    Raises
    ------
    MissingDependencyError
        opacus is not installed, and ε was asked for.
    """
    check_settings(settings)
    if epsilon < 0 or n_canaries < 2 or not 1 <= n_guesses <= n_canaries:
        raise InvalidInputError(
            "epsilon must be 0 or more, n_canaries 2 or more and n_guesses between 1 and "
            f"n_canaries; got {epsilon}, {n_canaries} and {n_guesses}."
        )
    known, held_out = split_held_out(checked(list(texts)), seed)
    made = make_canary(CANARY, known, seed)
    canaries = [made.text, *made.replaced(n_canaries - 1, seed)]
    rng = np.random.default_rng([seed, 42])
    is_in, anew = rng.random(n_canaries) < 0.5, rng.random(n_canaries) < 0.5
    planted = [*known, *(text for text, put in zip(canaries, is_in, strict=True) if put)]
    tokens = make_tokens(settings.tokens, known, canaries, settings.vocabulary_size)
    before = make_network(settings.model, tokens.size, settings.hidden, settings.max_length,
                          seed=seed)  # fmt: skip
    privacy: Privacy | None = None
    then: Any = {"checkpoint_dir": checkpoint_dir, "on_progress": on_progress}
    if epsilon:
        network, privacy = train_private(planted, tokens, settings, seed, epsilon=epsilon, **then)
    else:
        network, _ = train_network(planted, held_out, tokens, settings, seed, **then)
    scores = _saved(before, network.cpu(), tokens, canaries)
    delta = DELTA if epsilon else 0.0
    return Audited(
        audit(scores, is_in, n_guesses, delta=delta),
        audit(scores, anew, n_guesses, delta=delta),
        auc(Ranking(scores, is_in), seed=seed),
        privacy,
    )


def _saved(
    before: Network, after: Network, tokens: Tokens, texts: Sequence[str]
) -> NDArray[np.float64]:
    """Return by how many bits the training made each text likelier."""
    return log_perplexities(before, tokens, texts) - log_perplexities(after, tokens, texts)
