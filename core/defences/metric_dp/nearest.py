"""The exact Euclidean nearest candidate of each noisy vector, or that of a rank."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from core.training.devices import fast_dtype

__all__ = ["NearestCandidate"]

_FEW = 2048
"""Candidates up to which the quick way saves nothing."""
_MOST_RANKS = 32
"""How far down the quick way looks: below lie too many that rounding cannot tell apart."""
_UNIT = 2.0**-8
"""Largest relative error of rounding to bfloat16."""


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
    Where the processor multiplies bfloat16 faster, products in it leave a few candidates that can
    be nearest, whatever their rounding, and these alone are compared exactly.
    """

    block = 1024

    def __init__(self, known: NDArray[np.float32], *, device: str = "cpu") -> None:
        self._known = torch.as_tensor(known, device=device)
        half_squares = self._known.double().square().sum(1).div(2)
        self._half_squares = half_squares.float()
        place = self._known.device
        is_quick = place.type == "cpu" and fast_dtype(place) == torch.bfloat16
        self._sieve = _Sieve(self._known, half_squares) if is_quick and len(known) > _FEW else None

    @torch.inference_mode()
    def __call__(self, queries: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the place of the candidate nearest to each of the (m, n) queries."""
        find, step = (self._sieve or self._find), (_Sieve.block if self._sieve else self.block)
        found = np.empty(len(queries), np.int64)
        for start in range(0, len(queries), step):
            block = torch.as_tensor(queries[start : start + step], device=self._known.device)
            places = find(block)
            if (places == len(self._known)).any():  # numbers beyond what can be bounded
                places = self._find(block)
            found[start : start + step] = places.cpu().numpy()
        return found

    @torch.inference_mode()
    def of_ranks(self, queries: NDArray[np.float32], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of the candidate of a rank for each of the (m, n) queries.

        Parameters
        ----------
        ranks : int64 array (m,)
            0 for the nearest, 1 for the next. Like ranks beside each other are found sooner: a
            block looks as far down as its greatest.
        """
        found = np.empty(len(queries), np.int64)
        step = _Sieve.block if self._sieve else self.block // 2
        for start in range(0, len(queries), step):
            rows = slice(start, start + step)
            block = torch.as_tensor(queries[rows], device=self._known.device)
            places = None
            if self._sieve and ranks[rows].max() < _MOST_RANKS:
                places = self._sieve.of_ranks(block, ranks[rows])
            found[rows] = self._of_ranks(block, ranks[rows]) if places is None else places
        return found

    def _of_ranks(self, block: torch.Tensor, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        scores = torch.addmm(-self._half_squares, block, self._known.T)
        nearest = scores.topk(int(ranks.max()) + 1, dim=1).indices.cpu()
        found: NDArray[np.int64] = nearest.gather(1, torch.from_numpy(ranks)[:, None])[:, 0].numpy()
        return found

    def _find(self, block: torch.Tensor) -> torch.Tensor:
        return torch.addmm(-self._half_squares, block, self._known.T).argmax(1)


class _Sieve:
    """Finds the same with products in bfloat16, by a bound on what rounding can do to them.

    Candidates u come in groups of `group`. A product's inputs are rounded, each by a share of 2⁻⁸
    at most, so that it errs by (2·2⁻⁸ + 2⁻¹⁶)·‖q‖·‖u‖ (Cauchy–Schwarz) and by its own rounding;
    a little more is allowed for the sum. Whoever may be nearest lies within twice that of the best.
    """

    block, group = 256, 16  # as many products as a processor's cache holds

    def __init__(self, known: torch.Tensor, half_squares: torch.Tensor) -> None:
        n_known, self._n = known.shape
        self._n_groups = -(-n_known // self.group)
        self._known, self._half_squares = known, half_squares
        self._longest = float((2 * half_squares.max()).sqrt())
        # ½‖u‖² in three parts, each of them exact in bfloat16, against a query of ones.
        rest, parts = half_squares, []
        for _ in range(3):
            parts.append(rest.bfloat16())
            rest = rest - parts[-1].double()
        table = torch.zeros(self._n + 3, self.group * self._n_groups, dtype=torch.bfloat16)
        table[: self._n, :n_known] = known.T.bfloat16()
        table[self._n :, :n_known] = -torch.stack(parts)
        table[self._n, n_known:] = -torch.inf  # none of those that fill the last group up
        self._table = table

    def __call__(self, block: torch.Tensor) -> torch.Tensor:
        """Return the nearest candidate's place for each of the (m, n) queries; U where unknown."""
        rows, places = self._left(block, 1)
        return self._best(block, rows, places)

    def of_ranks(self, block: torch.Tensor, ranks: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the place of each query's candidate of a rank; None where it is not known.

        At least r + 1 groups, and so r + 1 candidates, reach what the best of the (r + 1)-th group
        does: whoever is among the nearest r + 1 lies within twice the error of that.
        """
        rows, places = self._left(block, int(ranks.max()) + 1)
        exact = self._exact(block, rows, places)
        if not torch.isfinite(exact).all():
            return None
        in_order = np.lexsort((places.numpy(), -exact.numpy(), rows.numpy()))
        starts = np.searchsorted(rows.numpy()[in_order], np.arange(len(block)))
        ends = np.append(starts[1:], len(in_order))
        if (starts + ranks >= ends).any():
            return None
        found: NDArray[np.int64] = places.numpy()[in_order[starts + ranks]]
        return found

    def _left(self, block: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return queries and places of the candidates that may be among the n nearest."""
        ones = torch.ones(len(block), 3, dtype=torch.bfloat16)
        scores = torch.cat([block.bfloat16(), ones], 1) @ self._table
        scores = scores.view(len(block), self.group, self._n_groups)
        best_of_groups = scores.amax(1)
        last = best_of_groups.amax(1) if n == 1 else best_of_groups.topk(n, 1).values[:, -1]
        bound = self._bound(block, last.float())
        rows, groups = (best_of_groups >= bound[:, None]).nonzero().T
        few, members = (scores[rows, :, groups] >= bound[rows, None]).nonzero().T
        return rows[few], members * self._n_groups + groups[few]

    def _exact(self, block: torch.Tensor, rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        products = (block[rows].double() * self._known[places].double()).sum(1)
        return products - self._half_squares[places]

    def _bound(self, block: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
        """Return what a product cannot lie below whose candidate is as near as one of `best`."""
        error = (2 * _UNIT + 2**-12) * self._longest * block.norm(dim=1)
        error = error + 1.1 * _UNIT * (best.abs() + 4 * error)
        bound = best - 2 * error
        return (bound - _UNIT * bound.abs()).bfloat16()

    def _best(self, block: torch.Tensor, rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Return the nearest of those that are left for each query; of equals, the first."""
        exact = self._exact(block, rows, places)
        best = torch.full((len(block),), -torch.inf, dtype=torch.float64)
        best = best.scatter_reduce(0, rows, exact, "amax")
        last = len(self._known)
        equal = torch.where(exact >= best[rows], places, last)
        return torch.full((len(block),), last).scatter_reduce(0, rows, equal, "amin")
