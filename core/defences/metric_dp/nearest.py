"""The exact Euclidean nearest candidate of each noisy vector, or that of a rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from core.defences.metric_dp.side_by_side import side_by_side
from core.defences.metric_dp.sieve import Format, Sieve, fast_format

__all__ = ["NearestCandidate"]

_FEW = 2048
"""Candidates up to which the quick way saves nothing."""
_MOST_RANKS = 32
"""How far down the quick way looks: below lie too many that rounding cannot tell apart."""


class NearestCandidate:
    """Finds argmin_u ‖q − u‖₂ over all candidates: every one is looked at, none approximated.

    Parameters
    ----------
    known : float32 array (U, n)
        The candidates' vectors.
    device : str
        Where the products are computed.
    format : str, optional
        Of the numbers in them: `fast_format` unless said.

    Notes
    -----
    ‖q − u‖² = ‖q‖² − 2(q·u − ½‖u‖²), so the greatest q·u − ½‖u‖² is the nearest. In float32:
    candidates whose distances differ by less than about 1e-6 of them may be taken for each other.
    Where the processor multiplies int8 or bfloat16 faster, products in it leave a few candidates
    that can be nearest, whatever their rounding, and these alone are compared exactly.
    """

    block = 1024

    def __init__(
        self, known: NDArray[np.float32], *, device: str = "cpu", format: Format | None = None
    ) -> None:
        self._known = torch.as_tensor(known, device=device)
        half_squares = self._known.double().square().sum(1).div(2)
        self._half_squares = half_squares.float()
        format = format or fast_format(self._known.device)
        is_usual = 2.0**-80 < float(half_squares.max()) < 2.0**80
        self._sieve = None
        if format != "float32" and len(known) > _FEW and is_usual:
            self._sieve = Sieve(self._known, half_squares, format)

    def __call__(self, queries: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the place of the candidate nearest to each of the (m, n) queries."""
        found = np.empty(len(queries), np.int64)

        @torch.inference_mode()
        def find(rows: slice) -> None:
            block = torch.as_tensor(queries[rows], device=self._known.device)
            places = (self._sieve or self._find)(block)
            if (places == len(self._known)).any():  # numbers beyond what can be bounded
                exact = block.double() @ self._known.double().T
                places = (exact - self._known.double().square().sum(1) / 2).argmax(1)
            found[rows] = places.cpu().numpy()

        self._in_blocks(find, len(queries))
        return found

    def of_ranks(self, queries: NDArray[np.float32], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of the candidate of a rank for each of the (m, n) queries.

        Parameters
        ----------
        ranks : int64 array (m,)
            0 for the nearest, 1 for the next. Like ranks beside each other are found sooner: a
            block looks as far down as its greatest.
        """
        found = np.empty(len(queries), np.int64)

        @torch.inference_mode()
        def find(rows: slice) -> None:
            block = torch.as_tensor(queries[rows], device=self._known.device)
            places = None
            if self._sieve and ranks[rows].max() < _MOST_RANKS:
                places = self._sieve.of_ranks(block, ranks[rows])
            found[rows] = self._of_ranks(block, ranks[rows]) if places is None else places

        self._in_blocks(find, len(queries))
        return found

    def _in_blocks(self, find: Callable[[slice], None], n: int) -> None:
        step = Sieve.block if self._known.device.type == "cpu" else self.block
        blocks = [slice(start, start + step) for start in range(0, n, step)]
        if self._known.device.type == "cpu":
            side_by_side(find, blocks)
            return
        for rows in blocks:
            find(rows)

    def _of_ranks(self, block: torch.Tensor, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        scores = torch.addmm(-self._half_squares, block, self._known.T)
        nearest = scores.topk(int(ranks.max()) + 1, dim=1).indices.cpu()
        found: NDArray[np.int64] = nearest.gather(1, torch.from_numpy(ranks)[:, None])[:, 0].numpy()
        return found

    def _find(self, block: torch.Tensor) -> torch.Tensor:
        return torch.addmm(-self._half_squares, block, self._known.T).argmax(1)
