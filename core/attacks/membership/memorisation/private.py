"""A language model trained with DP-SGD, and the ε that its accountant gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.attacks.membership.memorisation.gradients import GradientCanaries
from core.attacks.membership.memorisation.network import Network, make_network
from core.attacks.membership.memorisation.settings import MemorisationSettings
from core.attacks.membership.memorisation.tokens import Tokens
from core.attacks.membership.memorisation.training import (
    digest_texts,
    encoded,
    loss_of_texts,
    padded,
)
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.training.accounting import Privacy, Promise
from core.training.noise_source import digest_of_seed
from core.training.private import Noising, Poisson, poisson_rate, train_private

__all__ = ["CLIP_NORM", "train_model"]

CLIP_NORM = 1.0


def train_model(
    texts: Sequence[str],
    tokens: Tokens,
    settings: MemorisationSettings,
    seed: int,
    *,
    promise: Promise | None,
    n_expected: float = 0,
    canaries: GradientCanaries | None = None,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> tuple[Network, Privacy | None]:
    """Return a Transformer trained so that a text put in or left out changes it by (ε, δ) at most.

    See `core.training.private.train_private`; the gradient of each text is cut to a length of 1.

    Parameters
    ----------
    promise : Promise or None
        None for the same training without clipping and noise.
    n_expected : float
        Texts there are on average; needed without a promise, which says it.
    canaries : GradientCanaries, optional
        Gradients that are samples like the texts; their scores are read along.

    Raises
    ------
    MissingDependencyError
        opacus is not installed.
    InvalidInputError
        Another model than the Transformer: opacus has no gradient a text of torch's own LSTM. Or a
        promise that cannot be kept.
    DivergedError
        The training went astray; nothing of it is kept.
    """
    if settings.model != "transformer":
        raise InvalidInputError(f"Private training takes 'transformer', got {settings.model!r}.")
    network = make_network(settings.model, tokens.size, settings.hidden, settings.max_length,
                           seed=seed)  # fmt: skip
    expected = n_expected if promise is None else promise.n_expected
    n = len(texts) + len(canaries or ())
    loop = Poisson(
        n=n, epochs=settings.epochs, batch_size=settings.batch_size, seed=seed,
        identity={**settings.to_dict(), "seed": digest_of_seed(seed), "n": n,
                  "texts": digest_texts(texts), **({} if promise is None else asdict(promise))},
        decay=False, patience=settings.epochs, keep_best=False, is_half=False, unit="texts",
        say_score=lambda score: "no ε" if promise is None else f"ε = {promise.epsilon:g}",
        rate=poisson_rate(settings.batch_size, expected), checkpoint_dir=checkpoint_dir,
        extra_state=canaries,
    )  # fmt: skip
    noising = Noising(promise=promise, learning_rate=settings.learning_rate, clip_norm=CLIP_NORM)
    privacy = train_private(
        network, _losses(texts, tokens, settings.max_length, canaries), noising, loop,
        watch=None if canaries is None else lambda optimizer: _watch(optimizer, canaries),
        on_progress=on_progress,
    )  # fmt: skip
    return network.eval(), privacy


def _losses(
    texts: Sequence[str], tokens: Tokens, max_length: int, canaries: GradientCanaries | None
) -> Callable[[Any, NDArray[np.int64]], Tensor]:
    """Return what gives the losses of a batch's texts; canaries, the rows behind them, wait."""
    rows = [encoded(tokens, text, max_length) for text in texts]

    def losses(network: Any, chosen: NDArray[np.int64]) -> Tensor:
        if canaries is not None:
            canaries.await_step(chosen[chosen >= len(rows)] - len(rows))
        ids = padded([rows[i] for i in chosen if i < len(rows)], torch.device("cpu"))
        return loss_of_texts(network, ids, "none")

    return losses


def _watch(optimizer: Any, canaries: GradientCanaries) -> None:
    """Have canaries join the clipped gradients before the noise, and read them after it."""
    add_noise = optimizer.add_noise

    def joined() -> None:
        canaries.put_in(optimizer.params)
        add_noise()
        canaries.read(optimizer.params)

    optimizer.add_noise = joined
