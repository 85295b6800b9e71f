"""Train a language model by DP-SGD, with the accountant's ε."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakscope.core.attacks.membership.memorisation.gradients import GradientCanaries
from leakscope.core.attacks.membership.memorisation.network import Network, make_network
from leakscope.core.attacks.membership.memorisation.settings import MemorisationSettings
from leakscope.core.attacks.membership.memorisation.tokens import Tokens
from leakscope.core.attacks.membership.memorisation.training import (
    digest_texts,
    encode_with_ends,
    loss_of_texts,
    pad_rows,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.training.accounting import Guarantee, Privacy
from leakscope.core.training.noise_source import seed_digest
from leakscope.core.training.private import DPSettings, PoissonLoop, poisson_rate, train_private

CLIP_NORM = 1.0


def train_model(
    texts: Sequence[str],
    tokens: Tokens,
    settings: MemorisationSettings,
    seed: int,
    *,
    promise: Guarantee | None,
    n_expected: float = 0,
    canaries: GradientCanaries | None = None,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> tuple[Network, Privacy | None]:
    """Train a Transformer with (ε, δ)-differential privacy for adding or removing one text.

    See `leakscope.core.training.private.train_private`; the gradient of each text is clipped to a
    length of 1.

    Parameters
    ----------
    promise : Promise or None
        None for the same training without clipping and noise.
    n_expected : float
        The expected number of texts; needed without a guarantee, which holds it.
    canaries : GradientCanaries, optional
        Gradient canaries that are sampled like the texts; their scores are collected.

    Raises
    ------
    MissingDependencyError
        opacus is not installed.
    InvalidInputError
        Another model than the Transformer: opacus has no gradient a text of torch's own LSTM. Or a
        promise that cannot be kept.
    DivergedError
        The training diverged; nothing of it is stored.
    """
    if settings.model != "transformer":
        raise InvalidInputError(f"Private training takes 'transformer', got {settings.model!r}.")
    network = make_network(
        settings.model, tokens.size, settings.hidden, settings.max_length, seed=seed
    )
    expected = n_expected if promise is None else promise.n_expected
    n = len(texts) + len(canaries or ())
    loop = PoissonLoop(
        n=n,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        seed=seed,
        identity={
            **settings.to_dict(),
            "seed": seed_digest(seed),
            "n": n,
            "texts": digest_texts(texts),
            **({} if promise is None else asdict(promise)),
        },
        decay=False,
        patience=settings.epochs,
        keep_best=False,
        is_half=False,
        unit="texts",
        say_score=lambda score: "no ε" if promise is None else f"ε = {promise.epsilon:g}",
        rate=poisson_rate(settings.batch_size, expected),
        checkpoint_dir=checkpoint_dir,
        extra_state=canaries,
    )
    noising = DPSettings(promise=promise, learning_rate=settings.learning_rate, clip_norm=CLIP_NORM)
    privacy = train_private(
        network,
        _batch_losses(texts, tokens, settings.max_length, canaries),
        noising,
        loop,
        watch=None if canaries is None else lambda optimizer: _hook_canaries(optimizer, canaries),
        on_progress=on_progress,
    )
    return network.eval(), privacy


def _batch_losses(
    texts: Sequence[str], tokens: Tokens, max_length: int, canaries: GradientCanaries | None
) -> Callable[[Any, NDArray[np.int64]], Tensor]:
    """Return a function for a batch's losses; rows beyond the texts are canaries to add."""
    rows = [encode_with_ends(tokens, text, max_length) for text in texts]

    def losses(network: Any, chosen: NDArray[np.int64]) -> Tensor:
        if canaries is not None:
            canaries.set_batch(chosen[chosen >= len(rows)] - len(rows))
        ids = pad_rows([rows[i] for i in chosen if i < len(rows)], torch.device("cpu"))
        return loss_of_texts(network, ids, "none")

    return losses


def _hook_canaries(optimizer: Any, canaries: GradientCanaries) -> None:
    """Make an optimiser add canaries before the noise and read them after it."""
    add_noise = optimizer.add_noise

    def joined() -> None:
        canaries.add_to_gradients(optimizer.params)
        add_noise()
        canaries.read(optimizer.params)

    optimizer.add_noise = joined
