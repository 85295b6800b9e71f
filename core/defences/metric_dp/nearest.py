"""The exact Euclidean nearest candidate of each noisy vector."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["NearestCandidate"]


class NearestCandidate:
    """Finds argmin_u ‖q − u‖₂ over all candidates: every one is looked at, none approximated.

    Parameters
    ----------
    known : float32 array (U, n)
        The candidates' vectors.
    device : str
        Where the products are computed.

    Notes
    -----
    ‖q − u‖² = ‖q‖² − 2(q·u − ½‖u‖²), so the greatest q·u − ½‖u‖² is the nearest. In float32:
    candidates whose distances differ by less than about 1e-6 of them may be taken for each other.
    """

    block = 1024

    def __init__(self, known: NDArray[np.float32], *, device: str = "cpu") -> None:
        self._known = torch.as_tensor(known, device=device)
        self._half_squares = self._known.double().square().sum(1).div(2).float()

    @torch.inference_mode()
    def __call__(self, queries: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the place of the candidate nearest to each of the (m, n) queries."""
        found = np.empty(len(queries), np.int64)
        for start in range(0, len(queries), self.block):
            block = torch.as_tensor(queries[start : start + self.block], device=self._known.device)
            scores = torch.addmm(-self._half_squares, block, self._known.T)
            found[start : start + self.block] = scores.argmax(1).cpu().numpy()
        return found
