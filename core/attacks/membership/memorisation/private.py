"""Train a language model by DP-SGD, with the accountant's ε, and with gradient canaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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

_Rows = NDArray[np.int64]


class GradientCanaries:
    """Canary gradients of one weight each, of the maximum clipped length.

    Implements the gradient-space canaries of Steinke, Nasr & Jagielski (2023): the gradient of
    canary i is C·e_j, j drawn for it, and its score is the sum over the steps of the noisy gradient
    at j.
    Differs from the paper: the texts' own gradient at j is subtracted, since the auditor knows it;
    in a model of few weights it would hide the canaries.

    Parameters
    ----------
    n : int
        Canaries, m.
    n_weights : int
        Weights of the model; no two canaries share one.
    is_in : ndarray of bool, shape (n,)
        Which of them are included.
    length : float
        C.
    """

    def __init__(
        self, n: int, n_weights: int, is_in: NDArray[np.bool_], length: float, seed: int
    ) -> None:
        rng = np.random.default_rng([seed, 43])
        self.places: _Rows = rng.choice(n_weights, n, replace=False).astype(np.int64)
        self.planted: _Rows = np.flatnonzero(is_in)
        self.length = length
        self.scores = np.zeros(n)
        self.waiting: _Rows = np.zeros(0, dtype=np.int64)
        self._of_texts = np.zeros(n)

    def __len__(self) -> int:
        """Return the number of included canaries."""
        return len(self.planted)

    def set_batch(self, rows: _Rows) -> None:
        """Set which included canaries (by row) the batch of the next step contains."""
        self.waiting = self.planted[rows]

    def add_to_gradients(self, weights: Sequence[Any]) -> None:
        """Add the batch's canaries in place to the summed clipped gradients, before the noise."""
        for weight, rows, places in self._split_by_weight(weights, np.arange(len(self.places))):
            self._of_texts[rows] = weight.summed_grad.view(-1)[places].double().numpy()
        for weight, _, places in self._split_by_weight(weights, self.waiting):
            weight.summed_grad.view(-1)[places] += self.length

    def update_scores(self, weights: Sequence[Any]) -> None:
        """Add a step's noisy gradients at the canaries, less the texts' own, to the scores."""
        for weight, rows, places in self._split_by_weight(weights, np.arange(len(self.places))):
            self.scores[rows] += weight.grad.view(-1)[places].double().numpy()
        self.scores -= self._of_texts

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the scores so far as arrays and metadata, for a checkpoint."""
        return {"scores": self.scores}, {}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the scores from what `state` returned."""
        self.scores = np.array(arrays["scores"])
        return self

    def _split_by_weight(
        self, weights: Sequence[Any], rows: _Rows
    ) -> Iterator[tuple[Any, _Rows, torch.Tensor]]:
        """Yield each weight array with the canaries in it and their positions."""
        start = 0
        for weight in weights:
            places = self.places[rows] - start
            is_here = (places >= 0) & (places < weight.numel())
            if is_here.any():
                yield weight, rows[is_here], torch.from_numpy(places[is_here])
            start += weight.numel()


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
    """Train a Transformer with (ε, δ)-differential privacy per text; return it and its privacy.

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
    """Build the function that computes a batch's losses; rows beyond the texts are canaries."""
    rows = [encode_with_ends(tokens, text, max_length) for text in texts]

    def losses(network: Any, chosen: NDArray[np.int64]) -> Tensor:
        """Set the batch's canaries; return the loss of each of its texts, given by row number."""
        if canaries is not None:
            canaries.set_batch(chosen[chosen >= len(rows)] - len(rows))
        ids = pad_rows([rows[i] for i in chosen if i < len(rows)], torch.device("cpu"))
        return loss_of_texts(network, ids, "none")

    return losses


def _hook_canaries(optimizer: Any, canaries: GradientCanaries) -> None:
    """Patch an optimiser so that it adds canaries before the noise and scores them after it."""
    add_noise = optimizer.add_noise

    def joined() -> None:
        """Add the canaries and the noise to the gradients, then update the canaries' scores."""
        canaries.add_to_gradients(optimizer.params)
        add_noise()
        canaries.update_scores(optimizer.params)

    optimizer.add_noise = joined
