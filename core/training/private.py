"""Training with differential privacy: DP-SGD by opacus, its accountant part of the checkpoint."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from core.errors import ArtifactError, DivergedError, MissingDependencyError, install
from core.protocols import OnProgress, Restorable, no_progress
from core.training.accounting import Privacy, Promise, epsilon_of, noise_for, opacus_accountants
from core.training.loop import Loop, train
from core.training.noise_source import NoiseSource
from core.training.watch import or_nothing

__all__ = ["CLIPPINGS", "Ledger", "Noising", "Poisson", "poisson_rate", "train_private"]

CLIPPINGS = ("sample", "ghost")
"""Each sample's gradient is made and cut; or its length alone is found, and the loss is weighed:
the second saves time and memory where batches are large and layers read no sequences."""


@dataclass(kw_only=True)
class Poisson(Loop):
    """A loop whose batches hold each sample with the same probability, as accountants assume.

    Parameters
    ----------
    secret : int, optional
        What batches and noise follow from, of any size; the seed where there is none.
    """

    rate: float
    secret: int | None = None

    @property
    def source(self) -> int:
        """What batches and noise follow from."""
        return self.seed if self.secret is None else self.secret

    @property
    def n_batches(self) -> int:
        """Steps of an epoch."""
        return max(1, round(1 / self.rate))

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Return the rows of each batch of an epoch; a batch may be empty."""
        rng = np.random.default_rng([self.source, epoch, 41])
        return [np.flatnonzero(rng.random(self.n) < self.rate) for _ in range(self.n_batches)]


def poisson_rate(batch_size: int, n_expected: float) -> float:
    """Return the probability of a sample to be in a batch that holds so many on average."""
    return min(1.0, batch_size / n_expected)


class Ledger:
    """The accountant of a run: each noisy step is counted as it is made, and kept with the weights.

    What a kill took away is not counted: its weights are gone too, nobody saw them, and the run
    makes the same steps with the same noise again. What the weights hold is always counted.

    Parameters
    ----------
    also, noise : Restorable, optional
        What else the run keeps beside its network, and where its noise comes from.
    """

    def __init__(self, also: Restorable | None = None, noise: Restorable | None = None) -> None:
        self.accountant: Any = opacus_accountants().RDPAccountant()
        self._also, self._noise = also, noise

    @property
    def steps(self) -> list[tuple[float, float, int]]:
        """Noise, rate and number of the steps so far."""
        return [(float(noise), float(rate), int(n)) for noise, rate, n in self.accountant.history]

    @property
    def n_steps(self) -> int:
        """Steps that were counted."""
        return sum(n for _, _, n in self.steps)

    def check(self, noise: float, rate: float, n_steps: int) -> None:
        """Check that no step went by uncounted, and none with less noise than was promised.

        Raises
        ------
        ArtifactError
            One did: the checkpoint was altered, and what it says of ε is not to be believed.
        """
        is_low = any(sigma < noise or q > rate for sigma, q, _ in self.steps)
        if self.n_steps < n_steps or is_low:
            raise ArtifactError(
                f"The accountant counted {self.n_steps:,} of {n_steps:,} noisy steps, or steps "
                "with less noise: what it says of ε does not hold. Move the checkpoint aside and "
                "train again."
            )

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the steps so far, and the state of noise and of what is kept beside."""
        arrays, meta = ({}, {}) if self._also is None else self._also.state()
        if self._noise is not None:
            arrays = arrays | self._noise.state()[0]
        return arrays, {"steps": [list(each) for each in self.steps], "also": meta}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        self.accountant.history = [(float(a), float(b), int(n)) for a, b, n in meta["steps"]]
        if self._also is not None:
            self._also.load_state(arrays, meta["also"])
        if self._noise is not None:
            self._noise.load_state(arrays, {})
        return self


@dataclass(frozen=True, kw_only=True)
class Noising:
    """How a network is trained.

    Attributes
    ----------
    promise : Promise or None
        None trains alike without clipping and without noise: what ε = ∞ stands for.
    learning_rate : float
        Of Adam.
    clip_norm : float
        C, to which the gradient of each sample is cut.
    clipping : str
        One of CLIPPINGS.
    """

    promise: Promise | None
    learning_rate: float
    clip_norm: float = 1.0
    clipping: str = "sample"


def train_private(
    network: nn.Module,
    losses_of: Callable[[nn.Module, NDArray[np.int64]], Tensor],
    noising: Noising,
    loop: Poisson,
    *,
    watch: Callable[[Any], None] | None = None,
    on_progress: OnProgress = no_progress,
) -> Privacy | None:
    """Train a network so that a sample put in or left out changes it by (ε, δ) at most.

    Implements Corò (2022), §3.5.1, Eq. 3.5 (Abadi et al. 2016) by opacus: g = (Σ_i g_i · min(1,
    C / ‖g_i‖) + N(0, σ²C² I)) / B, B being the samples that a batch holds on average; σ is the
    least that the accountant allows for ε. Differs from the paper: Adam takes the place of plain
    descent, which costs no privacy.

    Batches and noise follow from the seed of the loop, or from its secret, so that a run resumes:
    a model that is to be released needs a secret that nobody knows, and that nobody can try.

    Parameters
    ----------
    losses_of : callable
        Returns the loss of each sample of a batch, shape (n,), from the network and their rows.
        Nothing else may reach the network: no statistic over a batch, no other sample.
    watch : callable, optional
        Is given opacus's optimiser before the first step.

    Returns
    -------
    Privacy or None
        What was spent, by the accountant's own count of steps; None without a promise.

    Raises
    ------
    MissingDependencyError
        opacus is not installed.
    InvalidInputError
        A promise that cannot be kept.
    DivergedError
        The training went astray; no checkpoint of it is left.
    ArtifactError
        The checkpoint is damaged, of another run, or its accountant lost steps.
    """
    with or_nothing(loop.checkpoint_dir):
        if noising.promise is None:
            _train_plain(network, losses_of, noising, loop, on_progress)
            privacy = None
        else:
            privacy = _train_noised(
                network, losses_of, noising, noising.promise, loop, watch, on_progress
            )
        _check_finite(all(bool(torch.isfinite(p).all()) for p in network.parameters()))
    return privacy


def _train_plain(
    network: nn.Module, losses_of: Callable[[nn.Module, NDArray[np.int64]], Tensor],
    noising: Noising, loop: Poisson, on_progress: OnProgress,
) -> None:  # fmt: skip
    """Train on the same batches without clipping and noise."""
    expected = max(1, round(loop.rate * loop.n))

    def loss_of(rows: NDArray[np.int64]) -> Tensor:
        network.train()
        return _checked(losses_of(network, rows)).sum() / expected

    optimizer = torch.optim.Adam(network.parameters(), lr=noising.learning_rate)
    train(network, optimizer, loss_of, lambda: 0.0, loop, on_progress)


def _train_noised(
    network: nn.Module, losses_of: Callable[[nn.Module, NDArray[np.int64]], Tensor],
    noising: Noising, promise: Promise, loop: Poisson, watch: Callable[[Any], None] | None,
    on_progress: OnProgress,
) -> Privacy:  # fmt: skip
    n_steps = loop.n_batches * loop.epochs
    sigma = noise_for(promise, loop.rate, n_steps)
    noise = NoiseSource(loop.source)
    ledger = Ledger(loop.extra_state, noise)
    loop.extra_state = ledger
    expected = max(1, round(loop.rate * promise.n_expected))
    wrapped, optimizer, reduced = _opacus(network, noising, sigma, expected, noise.generator)
    optimizer.attach_step_hook(ledger.accountant.get_optimizer_hook_fn(sample_rate=loop.rate))
    if watch is not None:
        watch(optimizer)

    def loss_of(rows: NDArray[np.int64]) -> Any:
        wrapped.train()
        return reduced(_checked(losses_of(wrapped, rows)))

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Full backward hook is firing")  # how opacus works
        train(wrapped, optimizer, loss_of, lambda: 0.0, loop, on_progress)
    wrapped.to_standard_module()
    ledger.check(sigma, loop.rate, n_steps)
    return Privacy(
        epsilon=epsilon_of(ledger.steps, promise.delta), delta=promise.delta,
        noise_multiplier=sigma, sample_rate=loop.rate, n_steps=ledger.n_steps,
    )  # fmt: skip


def _opacus(
    network: nn.Module, noising: Noising, sigma: float, expected: int, generator: torch.Generator
) -> tuple[Any, Any, Callable[[Tensor], Any]]:
    """Return the network and the optimiser as opacus wraps them, and what reduces the losses.

    Each sample's own loss is added up, so that its gradient is its own; the mean is of the samples
    that a batch holds on average.
    """
    try:
        from opacus import grad_sample, optimizers
        from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
    except ImportError as error:
        raise MissingDependencyError(
            "Training with differential privacy needs the `opacus` package: "
            f"{install('opacus', 'dp-accounting')}"
        ) from error
    is_ghost = noising.clipping == "ghost"
    wrapped: Any
    if is_ghost:
        wrapped = grad_sample.GradSampleModuleFastGradientClipping(
            network, loss_reduction="sum", max_grad_norm=noising.clip_norm
        )
    else:
        wrapped = grad_sample.GradSampleModule(network, loss_reduction="sum")
    adam = torch.optim.Adam(wrapped.parameters(), lr=noising.learning_rate)
    kind = optimizers.DPOptimizerFastGradientClipping if is_ghost else optimizers.DPOptimizer
    optimizer = kind(
        adam, noise_multiplier=sigma, max_grad_norm=noising.clip_norm, loss_reduction="mean",
        expected_batch_size=expected, generator=generator,
    )  # fmt: skip
    if not is_ghost:
        return wrapped, optimizer, Tensor.sum
    return (
        wrapped,
        optimizer,
        lambda losses: DPTensorFastGradientClipping(wrapped, optimizer, losses, "sum"),
    )


def _checked(losses: Tensor) -> Tensor:
    _check_finite(bool(torch.isfinite(losses).all()))
    return losses


def _check_finite(is_finite: bool) -> None:
    if not is_finite:
        raise DivergedError(
            "The training diverged: its loss or its weights are no finite numbers any more. It was "
            "stopped, and nothing is stored. Lower learning_rate, or raise epsilon for less noise."
        )
