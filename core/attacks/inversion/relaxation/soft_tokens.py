"""Gradient optimisation of a soft choice of tokens at each position (SR20 Eq. 4 to 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

INITIAL_SPREAD = 0.01
"""Standard deviation of the starting z: positions with equal starts would stay equal."""
PATIENCE = 50
LEAST_GAIN = 1e-3
"""At a constant temperature: stop when the loss fell by less than this share in PATIENCE steps."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The optimisation schedule of a relaxation: learning rate, temperatures and steps.

    Parameters
    ----------
    final_temperature : float
        T falls geometrically to it over the steps; 0 keeps T, as the paper does.
    """

    learning_rate: float
    temperature: float
    final_temperature: float
    n_steps: int

    def temperature_at(self, step: int) -> float:
        """Return the softmax temperature of an optimisation step, given its number."""
        if not self.final_temperature:
            return self.temperature
        share = step / max(1, self.n_steps - 1)
        return self.temperature * float(self.final_temperature / self.temperature) ** share


@dataclass(frozen=True)
class Choice:
    """The hard token choice for n targets, with weights and losses.

    Parameters
    ----------
    columns : ndarray of int64, shape (n, length)
        argmax z_j among the candidates.
    weights : ndarray of float32, shape (n, length)
        softmax(z_j/T) of the chosen token.
    losses : ndarray of float32, shape (n,)
        ‖Φ(x̂) − target‖² of the hardened text, Eq. 3.
    """

    columns: NDArray[np.int64]
    weights: NDArray[np.float32]
    losses: NDArray[np.float32]


def mix_tokens(z: Tensor, token_vectors: Tensor, temperature: float) -> Tensor:
    """Mix token vectors by soft choices: v̂_i = Vᵀ softmax(z_i/T), (n, length, hidden).

    Implements Song & Raghunathan (2020), Eq. 4. `token_vectors` is (m, hidden) or (n, m, hidden).
    """
    return torch.softmax(z / temperature, dim=-1) @ token_vectors


def relax_tokens(
    embed: Callable[[Tensor], Tensor],
    targets: Tensor,
    token_vectors: Tensor,
    *,
    length: int,
    schedule: Schedule,
    seeds: list[list[int]],
    on_step: Callable[[int], None],
) -> Choice:
    """Optimise soft token choices so that their embedding matches the target; return hard ones.

    Implements Song & Raghunathan (2020), min ‖embed(relaxed(Z, T)) − target‖² over Z: Eq. 5 with
    embed = Φ, and Eq. 6 with embed = Ψ and target = M(Φ(x*)).
    Differs from the paper: T may fall, which makes the choices firm before they are hardened.

    Parameters
    ----------
    embed : callable
        Differentiable: (n, length, hidden) token vectors to (n, d) embeddings.
    token_vectors : Tensor
        Of the candidates: (m, hidden), or (n, m, hidden) where each target has its own.
    seeds : list of list of int
        One a target: an answer does not depend on which targets share the batch.
    on_step : callable
        Called with the number of steps done; may raise StoppedError.
    """
    shape = (length, token_vectors.shape[-2])
    starts = [
        np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) for seed in seeds
    ]
    z = torch.from_numpy(np.stack(starts)).to(targets.device) * INITIAL_SPREAD
    z.requires_grad_()
    optimizer = torch.optim.Adam([z], lr=schedule.learning_rate)
    before = np.inf
    temperature = schedule.temperature
    for step in range(schedule.n_steps):
        temperature = schedule.temperature_at(step)
        optimizer.zero_grad(set_to_none=True)
        loss = ((embed(mix_tokens(z, token_vectors, temperature)) - targets) ** 2).sum()
        loss.backward()
        optimizer.step()
        on_step(step + 1)
        if not schedule.final_temperature and (step + 1) % PATIENCE == 0:
            now = loss.item()
            if before - now < LEAST_GAIN * now:
                break
            before = now
    return _harden(embed, targets, token_vectors, z.detach(), temperature)


@torch.no_grad()
def _harden(
    embed: Callable[[Tensor], Tensor], targets: Tensor, token_vectors: Tensor, z: Tensor, t: float
) -> Choice:
    """Choose the token of largest weight at each position, and compute the loss of that text."""
    weights, columns = torch.softmax(z / t, dim=-1).max(-1)
    if token_vectors.dim() == 2:
        chosen = token_vectors[columns]
    else:
        rows = torch.arange(len(columns), device=columns.device)[:, None]
        chosen = token_vectors[rows, columns]
    losses = ((embed(chosen) - targets) ** 2).sum(1)
    return Choice(columns.cpu().numpy(), weights.cpu().numpy(), losses.cpu().numpy())
