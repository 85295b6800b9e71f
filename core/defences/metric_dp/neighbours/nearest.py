"""Exact Euclidean search for the nearest, or the r-th nearest, candidate of noisy vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.neighbours.quantized_nearest import (
    Format,
    QuantizedNearest,
    fast_format,
)
from leakscope.core.defences.metric_dp.parallel import map_parts, parallel_map

_T = TypeVar("_T")
_U = TypeVar("_U")
_FEW = 2048
"""Candidates up to which the quantised search saves no time."""
_MOST_RANKS = 32
"""Greatest rank that the quantised search finds: beyond it rounding leaves too many candidates."""


class NearestCandidate:
    """Finds argmin_u ‖q − u‖₂ exactly over all candidate vectors u.

    Parameters
    ----------
    known : float32 array (U, n)
        The candidates' vectors.
    device : str
        Where the products are computed.
    format : str, optional
        Number format of the products; `fast_format` by default.

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
        self._quantized = None
        if format != "float32" and len(known) > _FEW and is_usual:
            self._quantized = QuantizedNearest(self._known, half_squares, format)

    def __call__(self, queries: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the index of the nearest candidate for each of the (m, n) queries."""
        (found,) = self.of_blocks([queries])
        return found

    def of_blocks(self, blocks: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.int64]]:
        """Yield the nearest candidates of each block, drawing the next block meanwhile."""

        @torch.inference_mode()
        def find(queries: NDArray[np.float32]) -> NDArray[np.int64]:
            if not len(queries):
                return np.empty(0, np.int64)
            block = torch.as_tensor(queries, device=self._known.device)
            places = self._quantized(block)[:, 0] if self._quantized else self._find_exact(block)
            if (places == len(self._known)).any():  # numbers beyond what can be bounded
                exact = block.double() @ self._known.double().T
                exact -= self._known.double().square().sum(1) / 2
                places = exact.argmax(1).cpu().numpy()
            return places

        yield from map(
            np.concatenate, map_parts(partial(self._map_pieces, find), blocks, self._cut)
        )

    def of_ranks(self, queries: NDArray[np.float32], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the candidate at a given rank for each of the (m, n) queries.

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
            if self._quantized and (n := int(asked.max()) + 1) <= _MOST_RANKS:
                places = self._quantized(block, n)[np.arange(len(block)), asked]
                if (places < len(self._known)).all():
                    return places
            return self._find_ranks_exact(block, asked)

        pieces = zip(self._cut(queries), self._cut(ranks), strict=True)
        return np.concatenate([np.empty(0, np.int64), *self._map_pieces(find, pieces)])

    def _cut(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Cut rows into pieces of the size that the device processes at a time."""
        step = QuantizedNearest.block if self._known.device.type == "cpu" else self.block
        return [rows[start : start + step] for start in range(0, max(len(rows), 1), step)]

    def _map_pieces(self, find: Callable[[_T], _U], pieces: Iterable[_T]) -> Iterable[_U]:
        """Map `find` over pieces: in parallel threads on a CPU, one after the other on a device."""
        run = parallel_map if self._known.device.type == "cpu" else map
        return run(find, pieces)

    def _find_ranks_exact(self, block: torch.Tensor, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the candidate at each query's rank by exact float32 scores of all candidates."""
        scores = torch.addmm(-self._half_squares, block, self._known.T)
        nearest = scores.topk(int(ranks.max()) + 1, dim=1).indices.cpu()
        found: NDArray[np.int64] = nearest.gather(1, torch.from_numpy(ranks)[:, None])[:, 0].numpy()
        return found

    def _find_exact(self, block: torch.Tensor) -> NDArray[np.int64]:
        """Find the nearest candidate of each query by exact float32 scores of all candidates."""
        scores = torch.addmm(-self._half_squares, block, self._known.T)
        found: NDArray[np.int64] = scores.argmax(1).cpu().numpy()
        return found
