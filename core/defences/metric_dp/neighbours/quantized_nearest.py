"""Exact nearest candidates from low-precision products whose error is bounded.

The score of a candidate u for a query q is q·u − ½‖u‖²: the greatest is the nearest. Each kind of
product has a bounded error, so that no excluded candidate can be the nearest, and the few remaining
candidates are compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.neighbours.quantized_nearest_loops import (
    GROUP,
    initial_floor,
    update_nearest,
)
from leakscope.core.training.devices import fast_dtype

Format = Literal["int8", "bfloat16", "float32"]

_UNIT = 2.0**-8
"""Largest relative error of rounding to bfloat16."""
_LARGE = 2.0**100
"""An error, in units of products, up to which none leaves the numbers that float32 has."""
_PIECE = 2048
"""Candidates whose products with a block of queries a processor's cache holds."""
_MOST_DIMENSIONS = 2**16
"""In which no sum of int8 products leaves int32."""


def fast_format(device: torch.device) -> Format:
    """Return the number format in which the device finds the nearest candidate fastest."""
    if device.type == "cpu" and _multiplies_int8():
        return "int8"
    is_bf16 = device.type == "cpu" and fast_dtype(device) == torch.bfloat16
    return "bfloat16" if is_bf16 else "float32"


@lru_cache
def _multiplies_int8() -> bool:
    """Return whether int8 products are fast and correct here: older processors clip sums."""
    if not (torch.cpu._is_vnni_supported() and torch.backends.mkldnn.is_available()):
        return False
    a = torch.where(torch.arange(32 * 400).view(32, 400) % 3 > 0, 127, -127)
    b = torch.where(torch.arange(400 * 64).view(400, 64) % 5 > 0, 127, -127)
    return bool((torch._int_mm(a.to(torch.int8), b.to(torch.int8)) == a @ b).all())


@dataclass(frozen=True)
class _Scores:
    """Products of all candidates with a block of m queries, computed a piece at a time.

    Attributes
    ----------
    pieces : iterator of pairs of tensors
        Products, int32 or float32 (whole groups of candidates, m), made as they are asked for, in
        the order of the candidates; and float32 halves, (the candidates,): of the square of each
        one's length, seen from where products have their origin.
    unit, offset, error : float64 tensors (m,)
        A product times its unit, less the half, is the score plus the offset, but for the error
        at most.
    """

    pieces: Iterator[tuple[torch.Tensor, torch.Tensor]]
    unit: torch.Tensor
    offset: torch.Tensor
    error: torch.Tensor

    @property
    def bounds(self) -> tuple[NDArray[np.float64], ...]:
        """Unit, offset and error as arrays; the error is infinite for extreme numbers."""
        is_bounded = self.error / self.unit < _LARGE
        is_bounded &= (self.unit > 1 / _LARGE) & (self.unit < _LARGE)
        error = torch.where(is_bounded, self.error, torch.inf)
        return self.unit.numpy(), self.offset.numpy(), error.numpy()


class _Products(Protocol):
    """Multiplies a block of queries with all candidates."""

    def __call__(self, block: torch.Tensor) -> _Scores: ...


class _BFloat16:
    """Products in bfloat16: an input is rounded by a share of 2⁻⁸ at most, and so is the product.

    So a product errs by (3·2⁻⁸ + 3·2⁻¹⁶ + 2⁻²⁴)·‖q‖·‖u‖ (Cauchy–Schwarz), and a little for the sum.
    """

    def __init__(self, known: torch.Tensor, half_squares: torch.Tensor) -> None:
        self._halves = _pad_to_groups(half_squares.float(), torch.inf)
        self._most = float(half_squares.max())
        self._relative_error = _relative_error(len(known.T))
        self._table = _pad_to_groups(known.bfloat16())

    def __call__(self, block: torch.Tensor) -> _Scores:
        sent = block.bfloat16().T
        share = (1 + _UNIT) ** 3 - 1 + 2 * self._relative_error
        error = share * (2 * self._most) ** 0.5 * block.double().norm(dim=1)
        error, one = error + self._relative_error * self._most, torch.ones_like(error)
        pieces = _multiply_in_pieces(self._table, self._halves, lambda rows: (rows @ sent).float())
        return _Scores(pieces, one, torch.zeros_like(one), error)


class _Int8:
    """Products in int8 of centred and rotated vectors, scaled to whole numbers.

    With μ the candidates' mean and R a rotation, the score plus ½‖μ‖² − q·μ is
    (q − μ)R·(u − μ)R − ½‖u − μ‖². The rotation leaves no coordinate much greater than the others,
    which would spoil the scale. What is rounded off each vector is known, so that the products err
    by the lengths of that times the lengths of the others (Cauchy–Schwarz).
    """

    def __init__(self, known: torch.Tensor, half_squares: torch.Tensor) -> None:
        self._mean = known.mean(0)
        n = known.shape[1]
        self._relative_error = _relative_error(n)
        drawn = torch.randn(n, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        self._rotation = torch.linalg.qr(drawn)[0].float()
        turned = (known - self._mean) @ self._rotation
        lengths = turned.double().norm(dim=1)
        self._halves = _pad_to_groups((lengths.square() / 2).float(), torch.inf)
        self._longest = float(lengths.max())
        self._scale = float(turned.abs().max()) / 127
        rounded = (turned / self._scale).round()
        self._off = float((turned - self._scale * rounded).double().norm(dim=1).max())
        self._table = _pad_to_groups(rounded.to(torch.int8))

    def __call__(self, block: torch.Tensor) -> _Scores:
        turned = (block - self._mean) @ self._rotation
        scale = (turned.abs().amax(1) / 127).clamp(min=self._scale * 2.0**-20)
        rounded = (turned / scale[:, None]).round()
        whole, sent = rounded.to(torch.int8).T, scale[:, None] * rounded
        lengths, off = sent.double().norm(dim=1), (turned - sent).double().norm(dim=1)
        error = off * self._longest + lengths * self._off
        error = error + 2 * self._relative_error * (lengths + off + self._longest) * self._longest
        mean = self._mean.double()
        offset = mean.square().sum() / 2 - block.double() @ mean
        unit = scale.double() * self._scale
        pieces = _multiply_in_pieces(
            self._table, self._halves, lambda rows: torch._int_mm(rows, whole)
        )
        return _Scores(pieces, unit, offset, error)


def _relative_error(n: int) -> float:
    """Return the worst relative error of lengths in a float32 product with a rotation."""
    return max(2.0**-15, n**1.5 * 2.0**-24)


def _pad_to_groups(of_candidates: torch.Tensor, value: float = 0.0) -> torch.Tensor:
    """Pad (U, …) candidate values with a constant to a whole number of groups."""
    shape = -len(of_candidates) % GROUP, *of_candidates.shape[1:]
    return torch.cat([of_candidates, of_candidates.new_full(shape, value)])


def _multiply_in_pieces(
    table: torch.Tensor, halves: torch.Tensor, multiply: Callable[[torch.Tensor], torch.Tensor]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield the products of some table rows at a time, with the half squares of those rows."""
    for rows, here in zip(table.split(_PIECE), halves.split(_PIECE), strict=True):
        yield multiply(rows), here


class QuantizedNearest:
    """Finds the nearest candidates by low-precision products, then compares the few left exactly.

    Parameters
    ----------
    known : float32 tensor (U, n)
    half_squares : float64 tensor (U,)
        ½‖u‖² of each.
    format : "int8" or "bfloat16"
    """

    block = 512

    def __init__(
        self,
        known: torch.Tensor,
        half_squares: torch.Tensor,
        format: Literal["int8", "bfloat16"],
    ) -> None:
        self._known, self._half_squares = known, half_squares
        # Candidates that are all but one have no scale of their own.
        is_apart = float((known - known.mean(0)).abs().max()) > 2.0**-60
        is_whole = format == "int8" and is_apart and known.shape[1] <= _MOST_DIMENSIONS
        made: type[_Int8 | _BFloat16] = _Int8 if is_whole else _BFloat16
        self._products: _Products = made(known, half_squares)

    def __call__(self, block: torch.Tensor, n: int = 1) -> NDArray[np.int64]:
        """Return (m, n) indices of the n nearest candidates of (m, …) queries; U if unknown.

        A candidate among the nearest scores no less than the last of the nearest so far, and its
        product no less than the floor of that score. Of equal scores, the first candidate comes
        first.
        """
        computed, n_before = self._products(block), 0
        vectors = block.numpy(), self._known.numpy(), self._half_squares.numpy()
        floor = initial_floor(computed.bounds)
        scores = np.full((len(block), n), -np.inf)
        places = np.full((len(block), n), len(self._known))
        for products, halves in computed.pieces:
            here = products.numpy(), halves.numpy(), n_before
            update_nearest(here, vectors, computed.bounds, floor, (scores, places))
            n_before += len(products)
        return places
