"""Envelopes by plain tensor arithmetic for a GPU: every candidate at every step.

No pruning: a GPU reads all lines of a token and 1,000 draws (118 MB for MiniLM) faster than it
would decide which to skip. Slower than the compiled walk on a CPU.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray


@torch.inference_mode()
def walk_tokens_torch(
    squared: NDArray[np.float32],
    starts: NDArray[np.int64],
    products: torch.Tensor,
    least_rate: float,
    rates: NDArray[np.float32],
    ids: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> None:
    """Compute envelopes into `rates`, `ids` and `counts` as `envelope_kernel.walk_tokens` does.

    Parameters
    ----------
    squared : float32 array (T, U)
        Squared distance of each token to each candidate.
    starts : int64 array (T,)
        The candidate nearest to each token.
    products : float32 tensor (S, U)
        Draw times candidate, on the device that computes.
    """
    n_draws, capacity = counts.shape[1], rates.shape[2]
    draws = torch.arange(n_draws, device=products.device)
    for i, start in enumerate(starts):
        distance = torch.as_tensor(squared[i], device=products.device)
        here = torch.full((n_draws,), int(start), device=products.device)
        is_walking = torch.ones(n_draws, dtype=torch.bool, device=products.device)
        counts[i] = 0
        for step in range(capacity):
            rise = distance - distance[here][:, None]
            rate = (products - products[draws, here][:, None]) / rise
            rate[rise <= 0] = -torch.inf
            best, found = rate.max(1)
            is_walking &= best > least_rate
            if not is_walking.any():
                break
            here = torch.where(is_walking, found, here)
            walked = is_walking.cpu().numpy()
            rates[i, walked, step] = best[is_walking].cpu().numpy()
            ids[i, walked, step] = found[is_walking].cpu().numpy()
            counts[i, walked] += 1
