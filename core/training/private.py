"""Training with differential privacy: DP-SGD by opacus, with a checkpointed accountant."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.errors import ArtifactError, DivergedError, MissingDependencyError, install
from leakscope.core.protocols import OnProgress, Restorable, no_progress
from leakscope.core.training.accounting import (
    Guarantee,
    Privacy,
    epsilon_spent,
    noise_multiplier_for,
    opacus_accountants,
)
from leakscope.core.training.loop import Loop, train
from leakscope.core.training.noise_source import NoiseSource
from leakscope.core.training.watch import discard_on_divergence

CLIPPINGS = ("sample", "ghost")
""""sample" computes and clips each sample's gradient; "ghost" computes only its norm and reweights
the loss, which saves time and memory for large batches without sequence layers."""


@dataclass(kw_only=True)
class PoissonLoop(Loop):
    """A training loop with Poisson sampling, as privacy accountants assume.

    Parameters
    ----------
    secret : int, optional
        The number that determines batches and noise, of any size; the seed by default.
    """

    rate: float
    secret: int | None = None

    @property
    def source(self) -> int:
        """The seed of batches and noise: the loop's secret, or its seed if there is none."""
        return self.seed if self.secret is None else self.secret

    @property
    def n_batches(self) -> int:
        """The number of steps per epoch."""
        return max(1, round(1 / self.rate))

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Draw an epoch's Poisson-sampled batches of row indices; a batch may be empty."""
        rng = np.random.default_rng([self.source, epoch, 41])
        return [np.flatnonzero(rng.random(self.n) < self.rate) for _ in range(self.n_batches)]


def poisson_rate(batch_size: int, n_expected: float) -> float:
    """Return the probability of each sample that gives batches of batch_size on average."""
    return min(1.0, batch_size / n_expected)


class PrivacyLedger:
    """The privacy accountant of a run: counts each noisy step, and is saved with the checkpoint.

    Steps lost to a kill are not counted: their weights are lost too, nobody saw them, and the run
    repeats them with the same noise. Every step that the weights contain is counted.

    Parameters
    ----------
    also, noise : Restorable, optional
        Other state of the run besides its network, and the source of its noise.
    """

    def __init__(self, also: Restorable | None = None, noise: Restorable | None = None) -> None:
        self.accountant: Any = opacus_accountants().RDPAccountant()
        self._also, self._noise = also, noise

    @property
    def steps(self) -> list[tuple[float, float, int]]:
        """The steps so far, as (noise multiplier, sampling rate, number) of each phase."""
        return [(float(noise), float(rate), int(n)) for noise, rate, n in self.accountant.history]

    @property
    def n_steps(self) -> int:
        """The number of noisy steps counted."""
        return sum(n for _, _, n in self.steps)

    def check(self, noise: float, rate: float, n_steps: int) -> None:
        """Raise ArtifactError if steps are uncounted or had less noise than guaranteed.

        Raises
        ------
        ArtifactError
            The checkpoint was altered, and its ε cannot be trusted.
        """
        is_low = any(sigma < noise or q > rate for sigma, q, _ in self.steps)
        if self.n_steps < n_steps or is_low:
            raise ArtifactError(
                f"The accountant counted {self.n_steps:,} of {n_steps:,} noisy steps, or steps "
                "with too little noise, so its ε does not hold. Move the checkpoint away and train "
                "again."
            )

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the counted steps and the states of the noise source and of `also`."""
        arrays, meta = ({}, {}) if self._also is None else self._also.state()
        if self._noise is not None:
            arrays = arrays | self._noise.state()[0]
        return arrays, {"steps": [list(each) for each in self.steps], "also": meta}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the counted steps, the noise source and `also` from what `state` returned."""
        self.accountant.history = [(float(a), float(b), int(n)) for a, b, n in meta["steps"]]
        if self._also is not None:
            self._also.load_state(arrays, meta["also"])
        if self._noise is not None:
            self._noise.load_state(arrays, {})
        return self


@dataclass(frozen=True, kw_only=True)
class DPSettings:
    """Settings of DP-SGD: guarantee, learning rate and clipping.

    Attributes
    ----------
    promise : Guarantee or None
        None trains in the same way without clipping and noise (ε = ∞).
    learning_rate : float
        Learning rate of Adam.
    clip_norm : float
        C, to which the gradient of each sample is clipped.
    clipping : str
        One of CLIPPINGS.
    """

    promise: Guarantee | None
    learning_rate: float
    clip_norm: float = 1.0
    clipping: str = "sample"


def train_private(
    network: nn.Module,
    losses_of: Callable[[nn.Module, NDArray[np.int64]], Tensor],
    noising: DPSettings,
    loop: PoissonLoop,
    *,
    watch: Callable[[Any], None] | None = None,
    on_progress: OnProgress = no_progress,
) -> Privacy | None:
    """Train a network by DP-SGD; return the (ε, δ) spent, or None if there is no guarantee.

    Implements Corò (2022), §3.5.1, Eq. 3.5 (Abadi et al. 2016) by opacus: g = (Σ_i g_i · min(1,
    C / ‖g_i‖) + N(0, σ²C² I)) / B, where B is the expected batch size and σ the smallest noise
    that the accountant allows for ε. Differs from the paper: Adam replaces plain descent, which
    costs no privacy.

    Batches and noise follow from the seed of the loop, or from its secret, so that a run can
    resume. A model to be released needs a secret that nobody knows or can guess by trying.

    Parameters
    ----------
    losses_of : callable
        Returns the loss of each sample of a batch, shape (n,), from the network and their rows.
        Nothing else may reach the network: no statistic over a batch, no other sample.
    watch : callable, optional
        Receives opacus's optimiser before the first step.

    Returns
    -------
    Privacy or None
        The privacy spent, by the accountant's own count of steps; None without a guarantee.

    Raises
    ------
    MissingDependencyError
        opacus is not installed.
    InvalidInputError
        A guarantee that cannot be satisfied.
    DivergedError
        The training diverged; its checkpoint is deleted.
    ArtifactError
        The checkpoint is damaged, of another run, or its accountant lost steps.
    """
    with discard_on_divergence(loop.checkpoint_dir):
        if noising.promise is None:
            _train_plain(network, losses_of, noising, loop, on_progress)
            privacy = None
        else:
            privacy = _train_dp(
                network, losses_of, noising, noising.promise, loop, watch, on_progress
            )
        _check_finite(all(bool(torch.isfinite(p).all()) for p in network.parameters()))
    return privacy


def _train_plain(
    network: nn.Module,
    losses_of: Callable[[nn.Module, NDArray[np.int64]], Tensor],
    noising: DPSettings,
    loop: PoissonLoop,
    on_progress: OnProgress,
) -> None:
    """Baseline: train on the same Poisson batches without clipping and noise (ε = ∞)."""
    expected = max(1, round(loop.rate * loop.n))

    def loss_of(rows: NDArray[np.int64]) -> Tensor:
        """Return the summed loss of a batch of rows, divided by the expected batch size."""
        network.train()
        return _require_finite(losses_of(network, rows)).sum() / expected

    optimizer = torch.optim.Adam(network.parameters(), lr=noising.learning_rate)
    train(network, optimizer, loss_of, lambda: 0.0, loop, on_progress)


def _train_dp(
    network: nn.Module,
    losses_of: Callable[[nn.Module, NDArray[np.int64]], Tensor],
    noising: DPSettings,
    promise: Guarantee,
    loop: PoissonLoop,
    watch: Callable[[Any], None] | None,
    on_progress: OnProgress,
) -> Privacy:
    """Train with DP-SGD by opacus; return the privacy spent, as counted."""
    n_steps = loop.n_batches * loop.epochs
    sigma = noise_multiplier_for(promise, loop.rate, n_steps)
    noise = NoiseSource(loop.source)
    ledger = PrivacyLedger(loop.extra_state, noise)
    loop.extra_state = ledger
    expected = max(1, round(loop.rate * promise.n_expected))
    wrapped, optimizer, reduced = _wrap_with_opacus(
        network, noising, sigma, expected, noise.generator
    )
    optimizer.attach_step_hook(ledger.accountant.get_optimizer_hook_fn(sample_rate=loop.rate))
    if watch is not None:
        watch(optimizer)

    def loss_of(rows: NDArray[np.int64]) -> Any:
        """Return the loss of a batch of rows, reduced as DP-SGD needs it."""
        wrapped.train()
        return reduced(_require_finite(losses_of(wrapped, rows)))

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Full backward hook is firing")  # how opacus works
        train(wrapped, optimizer, loss_of, lambda: 0.0, loop, on_progress)
    wrapped.to_standard_module()
    ledger.check(sigma, loop.rate, n_steps)
    return Privacy(
        epsilon=epsilon_spent(ledger.steps, promise.delta),
        delta=promise.delta,
        noise_multiplier=sigma,
        sample_rate=loop.rate,
        n_steps=ledger.n_steps,
    )


def _wrap_with_opacus(
    network: nn.Module, noising: DPSettings, sigma: float, expected: int, generator: torch.Generator
) -> tuple[Any, Any, Callable[[Tensor], Any]]:
    """Build opacus's network and optimiser for DP-SGD, and the function that reduces losses.

    The samples' losses are summed, so that each has its own gradient; the mean is over the expected
    batch size.
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
        adam,
        noise_multiplier=sigma,
        max_grad_norm=noising.clip_norm,
        loss_reduction="mean",
        expected_batch_size=expected,
        generator=generator,
    )
    if not is_ghost:
        return wrapped, optimizer, Tensor.sum
    return (
        wrapped,
        optimizer,
        lambda losses: DPTensorFastGradientClipping(wrapped, optimizer, losses, "sum"),
    )


def _require_finite(losses: Tensor) -> Tensor:
    """Return the losses unchanged; raise DivergedError if one is not finite."""
    _check_finite(bool(torch.isfinite(losses).all()))
    return losses


def _check_finite(is_finite: bool) -> None:
    """Raise DivergedError unless `is_finite` is True."""
    if not is_finite:
        raise DivergedError(
            "The training diverged: its loss or its weights are no longer finite. It was stopped, "
            "and nothing is stored. Lower learning_rate, or raise epsilon for less noise."
        )
