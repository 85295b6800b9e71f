"""d_χ-privacy noise drawn on the computing device, for training that needs much of it."""

from __future__ import annotations

import numpy as np
import torch

from leakscope.core.defences.metric_dp.noise import check_eta


def draw_noise_on_device(
    n_draws: int,
    dimension: int,
    eta: float = 1.0,
    *,
    rng: np.random.Generator,
    device: torch.device | str,
) -> torch.Tensor:
    """Draw (n_draws, dimension) float64 noise vectors at `eta` on a torch device.

    Norms come from `rng`, directions from a generator on the device that is seeded with 63 bits of
    `rng` at each call: equal states of `rng` give equal draws on devices of one kind. For training
    and measurements, not for releases (see `secure_generator`).
    """
    check_eta(eta)
    norms = rng.gamma(dimension, 1.0 / eta, size=(n_draws, 1))
    there = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
    directions = torch.randn(
        n_draws, dimension, generator=there, device=device, dtype=torch.float64
    )
    directions /= directions.norm(dim=1, keepdim=True)
    return directions * torch.from_numpy(norms).to(device)
