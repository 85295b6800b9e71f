"""Which few candidates can be nearest: by products of low precision, and what these can err by.

The score of a candidate u for a query q is q·u − ½‖u‖²: the greatest is the nearest. Each kind of
product bounds how far it is from that, so that whoever is left out is not the nearest, and the few
that are left are compared exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from core.training.devices import fast_dtype

__all__ = ["Format", "Sieve", "fast_format"]

Format = Literal["int8", "bfloat16", "float32"]

_UNIT = 2.0**-8
"""Largest relative error of rounding to bfloat16."""
_LARGE = 2.0**100
"""An error up to which no product leaves the numbers that bfloat16 has."""
_GROUP = 16
_MOST = 2.0**31 - 1024
"""No sum of int8 products reaches it."""
_NONE = {torch.int32: -(2**31), torch.bfloat16: -torch.inf}
"""Below every floor: of columns that only fill a group up."""


def fast_format(device: torch.device) -> Format:
    """Return in what numbers a processor finds the nearest candidate soonest."""
    if device.type == "cpu" and _multiplies_int8():
        return "int8"
    is_bf16 = device.type == "cpu" and fast_dtype(device) == torch.bfloat16
    return "bfloat16" if is_bf16 else "float32"


@lru_cache
def _multiplies_int8() -> bool:
    """Return whether products of int8 are fast here, and right: older processors clip sums."""
    if not (torch.cpu._is_vnni_supported() and torch.backends.mkldnn.is_available()):
        return False
    a = torch.where(torch.arange(32 * 400).view(32, 400) % 3 > 0, 127, -127)
    b = torch.where(torch.arange(400 * 64).view(400, 64) % 5 > 0, 127, -127)
    return bool((torch._int_mm(a.to(torch.int8), b.to(torch.int8)) == a @ b).all())


@dataclass(frozen=True)
class _Scores:
    """Products of a block of m queries with all candidates, in groups.

    Attributes
    ----------
    products : int32 or bfloat16 tensor (m, a whole number of groups)
    unit, offset, error : float64 tensors (m,)
        A product times its unit is the score plus the offset, but for the error at most.
    """

    products: torch.Tensor
    unit: torch.Tensor
    offset: torch.Tensor
    error: torch.Tensor

    def floor(self, scores: torch.Tensor) -> torch.Tensor:
        """Return what the products of candidates of these scores (m,) cannot lie below.

        Where numbers are too large for any bound it is one that no product reaches.
        """
        least = (scores + self.offset - self.error) / self.unit
        is_bounded = least.isfinite() & (self.error < _LARGE)
        if self.products.dtype is torch.int32:
            least = torch.where(is_bounded, least.floor(), _MOST).clamp(-_MOST, _MOST)
        else:  # rounding keeps the order
            least = torch.where(is_bounded, least, torch.nan)
        return least.to(self.products.dtype)


class _Products(Protocol):
    def __call__(self, block: torch.Tensor) -> _Scores: ...


class _BFloat16:
    """Products in bfloat16: an input is rounded by a share of 2⁻⁸ at most.

    So a product errs by (2·2⁻⁸ + 2⁻¹⁶)·‖q‖·‖u‖ (Cauchy–Schwarz), and a little for the sum.
    """

    def __init__(self, known: torch.Tensor, half_squares: torch.Tensor) -> None:
        self._most = float(half_squares.max())
        self._slack = _slack(len(known.T))
        # ½‖u‖² in three parts, each of them exact in bfloat16, against a query of ones.
        rest, parts = half_squares, []
        for _ in range(3):
            parts.append(rest.bfloat16())
            rest = rest - parts[-1].double()
        self._table = _in_groups(torch.cat([known.T.bfloat16(), -torch.stack(parts)]))

    def __call__(self, block: torch.Tensor) -> _Scores:
        ones = torch.ones(len(block), 3, dtype=torch.bfloat16)
        products = torch.cat([block.bfloat16(), ones], 1) @ self._table
        share = 2 * _UNIT + _UNIT**2 + 2 * self._slack
        error = share * (2 * self._most) ** 0.5 * block.double().norm(dim=1)
        one = torch.ones_like(error)
        return _Scores(products, one, torch.zeros_like(one), error + self._slack * self._most)


class _Int8:
    """Products in int8 of centred and turned vectors, each number a multiple of one scale.

    With μ the candidates' mean and R a rotation, the score plus ½‖μ‖² − q·μ is
    (q − μ)R·(u − μ)R − ½‖u − μ‖². The rotation leaves no coordinate much greater than the others,
    which would spoil the scale. ½‖u − μ‖² ≤ H is a/127 of H, and is taken off C times where
    C = H/(127·the scales), by further coordinates. What is rounded off each vector is known, so
    that the products err by the lengths of that times the lengths of the others (Cauchy–Schwarz).
    """

    _extra = 8
    """Further coordinates, between which C is shared: at most 127 each."""

    def __init__(self, known: torch.Tensor, half_squares: torch.Tensor) -> None:
        self._mean = known.mean(0)
        n = known.shape[1]
        self._slack = _slack(n)
        drawn = torch.randn(n, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        self._rotation = torch.linalg.qr(drawn)[0].float()
        turned = (known - self._mean) @ self._rotation
        lengths = turned.double().norm(dim=1)
        self._longest = float(lengths.max())
        self._most = self._longest**2 / 2
        self._scale = float(turned.abs().max()) / 127
        rounded = (turned / self._scale).round()
        self._off = float((turned - self._scale * rounded).double().norm(dim=1).max())
        halves = lengths.square() / 2
        shares = (halves / self._most * 127).round()
        self._off_halves = float((halves - self._most / 127 * shares).abs().max())
        further = -shares.to(torch.int8).expand(self._extra, -1)
        self._table = _in_groups(torch.cat([rounded.T.to(torch.int8), further]))

    def __call__(self, block: torch.Tensor) -> _Scores:
        turned = (block - self._mean) @ self._rotation
        least = self._most / (127 * self._scale * 127 * self._extra)
        scale = (turned.abs().amax(1) / 127).clamp(min=least)
        rounded = (turned / scale[:, None]).round()
        wanted = self._most / (127 * self._scale * scale.double())
        times = wanted.round().clamp(max=127 * self._extra).float()
        share = (times[:, None] + torch.arange(self._extra)).div(self._extra).floor()
        products = torch._int_mm(torch.cat([rounded, share], 1).to(torch.int8), self._table)
        sent = scale[:, None] * rounded
        lengths, off = sent.double().norm(dim=1), (turned - sent).double().norm(dim=1)
        error = off * self._longest + lengths * self._off
        error = error + self._off_halves + self._most * (1 - times.double() / wanted).abs()
        error = error + self._slack * (lengths + off + self._longest) * self._longest
        mean = self._mean.double()
        offset = mean.square().sum() / 2 - block.double() @ mean
        unit = scale.double() * self._scale
        return _Scores(products, unit, offset, error)


def _slack(n: int) -> float:
    """Return what share of lengths float32 may lose in a product with a rotation, at worst."""
    return max(2.0**-15, n**1.5 * 2.0**-24)


def _in_groups(table: torch.Tensor) -> torch.Tensor:
    """Return a table of (n, U) with columns of zeros to a whole number of groups."""
    return torch.nn.functional.pad(table, (0, -table.shape[1] % _GROUP)).contiguous()


class Sieve:
    """Finds the nearest candidates by quick products, and compares the few that are left exactly.

    Parameters
    ----------
    known : float32 tensor (U, n)
    half_squares : float64 tensor (U,)
        ½‖u‖² of each.
    format : "int8" or "bfloat16"
    """

    block = 256  # as many products as a processor's cache holds

    def __init__(
        self,
        known: torch.Tensor,
        half_squares: torch.Tensor,
        format: Literal["int8", "bfloat16"],
    ) -> None:
        self._known, self._half_squares = known, half_squares
        # Candidates that are all but one have no scale of their own.
        is_apart = float((known - known.mean(0)).abs().max()) > 2.0**-60
        made: type[_Int8 | _BFloat16] = _Int8 if format == "int8" and is_apart else _BFloat16
        self._products: _Products = made(known, half_squares)

    def __call__(self, block: torch.Tensor) -> torch.Tensor:
        """Return the nearest candidate's place for each of the (m, n) queries; U where unknown."""
        rows, places = self._left(block, 1)
        return self._best(block, rows, places)

    def of_ranks(self, block: torch.Tensor, ranks: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the place of each query's candidate of a rank; None where it is not known."""
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
        """Return queries and places of the candidates that may be among the n nearest.

        The leaders of n groups are n candidates. Whoever is among the n nearest scores no less
        than the least of them, and their products no less than the floor of that.
        """
        scores = self._products(block)
        scores.products[:, len(self._known) :] = _NONE[scores.products.dtype]
        products = scores.products.view(len(block), _GROUP, -1)
        best = products.amax(1)
        groups = best.topk(n, dim=1).indices if n > 1 else best.argmax(1, keepdim=True)
        rows = torch.arange(len(block))[:, None].expand(-1, n)
        leaders = products[rows, :, groups].argmax(2) * best.shape[1] + groups
        reached = self._exact(block, rows.flatten(), leaders.flatten()).view(-1, n).amin(1)
        floor = scores.floor(reached)
        rows, groups = (best >= floor[:, None]).nonzero().T
        few, members = (products[rows, :, groups] >= floor[rows, None]).nonzero().T
        return rows[few], members * best.shape[1] + groups[few]

    def _exact(self, block: torch.Tensor, rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        products = (block[rows].double() * self._known[places].double()).sum(1)
        return products - self._half_squares[places]

    def _best(self, block: torch.Tensor, rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Return the nearest of those that are left for each query; of equals, the first."""
        exact = self._exact(block, rows, places)
        best = torch.full((len(block),), -torch.inf, dtype=torch.float64)
        best = best.scatter_reduce(0, rows, exact, "amax")
        last = len(self._known)
        equal = torch.where(exact >= best[rows], places, last)
        return torch.full((len(block),), last).scatter_reduce(0, rows, equal, "amin")
