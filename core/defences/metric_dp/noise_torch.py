"""The noise of d_χ-privacy on the device that computes, for training that draws much of it."""

from __future__ import annotations

import numpy as np
import torch

from core.defences.metric_dp.noise import check_eta

__all__ = ["draw_noise_there"]


def draw_noise_there(
    n_draws: int,
    dimension: int,
    eta: float = 1.0,
    *,
    rng: np.random.Generator,
    device: torch.device | str,
) -> torch.Tensor:
    """Return (n_draws, dimension) float64 draws of the noise at `eta`, made on a device.

    Norms are drawn from `rng`; directions there, by a generator that begins anew with 63 bits of
    `rng` at each call: equal states of it give equal draws, on a device of one kind. For training
    and measurements, not for what is released (`secure_generator`).
    """
    check_eta(eta)
    norms = rng.gamma(dimension, 1.0 / eta, size=(n_draws, 1))
    there = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
    directions = torch.randn(
        n_draws, dimension, generator=there, device=device, dtype=torch.float64
    )
    directions /= directions.norm(dim=1, keepdim=True)
    return directions * torch.from_numpy(norms).to(device)
