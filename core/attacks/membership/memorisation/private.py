"""A language model trained with DP-SGD by opacus, and the ε that its accountant gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
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
from core.errors import InvalidInputError, MissingDependencyError
from core.protocols import OnProgress, no_progress
from core.training.loop import Loop, train

__all__ = ["CLIP_NORM", "DELTA", "Poisson", "Privacy", "Promise", "train_private"]

DELTA = 1e-5
CLIP_NORM = 1.0


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """What DP-SGD promises: (ε, δ) by the accountant of Rényi differential privacy."""

    epsilon: float
    delta: float
    noise_multiplier: float
    sample_rate: float
    n_steps: int


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What training is to keep to.

    Attributes
    ----------
    n_expected : float
        Samples there are on average, by which the rate of sampling is set: how many coins fell on
        one side is no business of the training.
    """

    epsilon: float
    n_expected: float
    delta: float = DELTA


@dataclass(kw_only=True)
class Poisson(Loop):
    """A loop whose batches hold each text with the same probability, as the accountant assumes."""

    rate: float

    @property
    def n_batches(self) -> int:
        """Steps of an epoch."""
        return max(1, round(1 / self.rate))

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Return the rows of each batch of an epoch; a batch may be empty."""
        rng = np.random.default_rng([self.seed, epoch, 41])
        return [np.flatnonzero(rng.random(self.n) < self.rate) for _ in range(self.n_batches)]


def train_private(
    texts: Sequence[str],
    tokens: Tokens,
    settings: MemorisationSettings,
    seed: int,
    *,
    promise: Promise,
    canaries: GradientCanaries | None = None,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> tuple[Network, Privacy]:
    """Return a Transformer trained so that a text put in or left out changes it by (ε, δ) at most.

    Implements C22 §3.5.1, Eq. 3.5 (Abadi et al. 2016) by opacus: the gradient of each text is cut
    to a length of 1, and Gaussian noise of σ is added to their sum; σ is the least that the
    accountant allows for ε. Differs from the paper: nothing. The noise follows from the seed, so
    that a run resumes: a model that is to be released needs noise that nobody knows.

    Parameters
    ----------
    canaries : GradientCanaries, optional
        Gradients that are samples like the texts; their scores are read along.

    Raises
    ------
    MissingDependencyError
        opacus is not installed.
    InvalidInputError
        Another model than the Transformer: opacus has no gradient a text of torch's own LSTM.
    """
    if settings.model != "transformer":
        raise InvalidInputError(f"Private training takes 'transformer', got {settings.model!r}.")
    noised, samples, accounting = _opacus()
    network = make_network(settings.model, tokens.size, settings.hidden, settings.max_length,
                           seed=seed)  # fmt: skip
    wrapped = samples(network, loss_reduction="sum")
    loop = _loop(texts, len(canaries or ()), settings, seed, promise)
    loop.checkpoint_dir, loop.extra_state = checkpoint_dir, canaries
    n_steps = loop.n_batches * settings.epochs
    sigma = accounting.utils.get_noise_multiplier(
        target_epsilon=promise.epsilon, target_delta=promise.delta, sample_rate=loop.rate,
        steps=n_steps, accountant="rdp",
    )  # fmt: skip
    # Each text's own loss is added up, so that its gradient is its own; the mean is of the texts
    # that a batch holds on average.
    optimizer = noised(
        torch.optim.Adam(wrapped.parameters(), lr=settings.learning_rate),
        noise_multiplier=sigma, max_grad_norm=CLIP_NORM, loss_reduction="mean",
        expected_batch_size=max(1, round(loop.rate * promise.n_expected)),
    )  # fmt: skip
    if canaries is not None:
        _watch(optimizer, canaries)
    loss_of = _loss(wrapped, texts, tokens, settings.max_length, canaries)
    train(wrapped, optimizer, loss_of, lambda: 0.0, loop, on_progress)
    plain = make_network(settings.model, tokens.size, settings.hidden, settings.max_length)
    plain.load_state_dict(wrapped._module.state_dict())
    return plain.eval(), _spent(accounting.RDPAccountant(), promise, sigma, loop.rate, n_steps)


def _spent(accountant: Any, promise: Promise, sigma: float, rate: float, n_steps: int) -> Privacy:
    """Return what the accountant says of so many noisy steps."""
    accountant.history = [(sigma, rate, n_steps)]
    return Privacy(
        epsilon=float(accountant.get_epsilon(promise.delta)), delta=promise.delta,
        noise_multiplier=float(sigma), sample_rate=rate, n_steps=n_steps,
    )  # fmt: skip


def _loop(
    texts: Sequence[str], n_more: int, settings: MemorisationSettings, seed: int, promise: Promise
) -> Poisson:
    n = len(texts) + n_more
    return Poisson(
        n=n, epochs=settings.epochs, batch_size=settings.batch_size, seed=seed,
        identity={**settings.to_dict(), "seed": seed, "n": n, "texts": digest_texts(texts),
                  **asdict(promise)},
        decay=False, patience=settings.epochs, keep_best=False, is_half=False, unit="texts",
        say_score=lambda score: f"ε = {promise.epsilon:g}",
        rate=min(1.0, settings.batch_size / promise.n_expected),
    )  # fmt: skip


def _loss(
    network: Any, texts: Sequence[str], tokens: Tokens, max_length: int,
    canaries: GradientCanaries | None,
) -> Callable[[NDArray[np.int64]], Tensor]:  # fmt: skip
    """Return the sum of the losses of a batch's texts; canaries, the rows behind them, wait."""
    rows = [encoded(tokens, text, max_length) for text in texts]

    def loss_of(chosen: NDArray[np.int64]) -> Tensor:
        network.train()
        if canaries is not None:
            canaries.await_step(chosen[chosen >= len(rows)] - len(rows))
        ids = padded([rows[i] for i in chosen if i < len(rows)], torch.device("cpu"))
        return loss_of_texts(network, ids, "none").sum()

    return loss_of


def _watch(optimizer: Any, canaries: GradientCanaries) -> None:
    """Have canaries join the clipped gradients before the noise, and read them after it."""
    add_noise = optimizer.add_noise

    def joined() -> None:
        canaries.put_in(optimizer.params)
        add_noise()
        canaries.read(optimizer.params)

    optimizer.add_noise = joined


def _opacus() -> tuple[Any, Any, Any]:
    """Return opacus's optimiser, its gradients by sample, and its accountants."""
    try:
        from opacus import GradSampleModule, accountants
        from opacus.optimizers import DPOptimizer
    except ImportError as error:
        raise MissingDependencyError(
            "Training with differential privacy needs the `opacus` package: "
            "pip install leakscope[private]"
        ) from error
    return DPOptimizer, GradSampleModule, accountants
