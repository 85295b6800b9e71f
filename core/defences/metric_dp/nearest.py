"""The exact Euclidean nearest candidate of each noisy vector, or that of a rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from core.defences.metric_dp.side_by_side import in_parts, side_by_side
from core.defences.metric_dp.sieve import Format, Sieve, fast_format

__all__ = ["NearestCandidate"]

_T = TypeVar("_T")
_U = TypeVar("_U")
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
        (found,) = self.of_blocks([queries])
        return found

    def of_blocks(self, blocks: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.int64]]:
        """Give the same for each block of queries; some are drawn while others are compared."""

        @torch.inference_mode()
        def find(queries: NDArray[np.float32]) -> NDArray[np.int64]:
            if not len(queries):
                return np.empty(0, np.int64)
            block = torch.as_tensor(queries, device=self._known.device)
            places = self._sieve(block)[:, 0] if self._sieve else self._find(block)
            if (places == len(self._known)).any():  # numbers beyond what can be bounded
                exact = block.double() @ self._known.double().T
                exact -= self._known.double().square().sum(1) / 2
                places = exact.argmax(1).cpu().numpy()
            return places

        yield from map(np.concatenate, in_parts(partial(self._run, find), blocks, self._pieces))

    def of_ranks(self, queries: NDArray[np.float32], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of the candidate of a rank for each of the (m, n) queries.

        Parameters
        ----------
        ranks : int64 array (m,)
            0 for the nearest, 1 for the next. Like ranks beside each other are found sooner: a
            block looks as far down as its greatest.
        """

        @torch.inference_mode()
        def find(piece: tuple[NDArray[np.float32], NDArray[np.int64]]) -> NDArray[np.int64]:
            block, asked = torch.as_tensor(piece[0], device=self._known.device), piece[1]
            if not len(asked):
                return np.empty(0, np.int64)
            if self._sieve and (n := int(asked.max()) + 1) <= _MOST_RANKS:
                places = self._sieve(block, n)[np.arange(len(block)), asked]
                if (places < len(self._known)).all():
                    return places
            return self._of_ranks(block, asked)

        pieces = zip(self._pieces(queries), self._pieces(ranks), strict=True)
        return np.concatenate([np.empty(0, np.int64), *self._run(find, pieces)])

    def _pieces(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        step = Sieve.block if self._known.device.type == "cpu" else self.block
        return [rows[start : start + step] for start in range(0, max(len(rows), 1), step)]

    def _run(self, find: Callable[[_T], _U], pieces: Iterable[_T]) -> Iterable[_U]:
        """Give what is found of each piece; a device has one at a time, which it shares out."""
        run = side_by_side if self._known.device.type == "cpu" else map
        return run(find, pieces)

    def _of_ranks(self, block: torch.Tensor, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        scores = torch.addmm(-self._half_squares, block, self._known.T)
        nearest = scores.topk(int(ranks.max()) + 1, dim=1).indices.cpu()
        found: NDArray[np.int64] = nearest.gather(1, torch.from_numpy(ranks)[:, None])[:, 0].numpy()
        return found

    def _find(self, block: torch.Tensor) -> NDArray[np.int64]:
        scores = torch.addmm(-self._half_squares, block, self._known.T)
        found: NDArray[np.int64] = scores.argmax(1).cpu().numpy()
        return found
