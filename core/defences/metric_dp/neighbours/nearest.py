"""Exact Euclidean search for the nearest, or the r-th nearest, candidate of noisy vectors.

The score of a candidate u for a query q is q·u − ½‖u‖²: the greatest is the nearest. Each kind of
product has a bounded error, so that no excluded candidate can be the nearest, and the few remaining
candidates are compared exactly.

The compiled loop that does so reads a few numbers of large arrays, which would cost more to gather
than to read. Pieces of queries are mapped over threads, one processor each: a piece has many small
steps, at each of which processors would otherwise wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from leakscope.core.compiled import njit
from leakscope.core.training.devices import fast_dtype

_T = TypeVar("_T")
_U = TypeVar("_U")
_V = TypeVar("_V")
_FEW = 4
"""Pieces up to which threads are not worth their start."""
_AHEAD = 32
"""Pieces that wait, or are at work, at a time."""


def parallel_map(work: Callable[[_T], _U], pieces: Iterable[_T]) -> Generator[_U]:
    """Map `work` over pieces in as many threads as PyTorch uses; yield results in order.

    Pieces are drawn in the calling thread while the other threads work on earlier ones.

    Raises
    ------
    Exception
        What the work of a piece raised; the pieces after it may not have been done.
    """
    pieces = iter(pieces)
    first = list(islice(pieces, _FEW + 1))
    n = torch.get_num_threads()
    if n < 2 or len(first) <= _FEW:
        yield from map(work, chain(first, pieces))
        return
    coming: deque[Future[_U]] = deque()
    with ThreadPoolExecutor(n, initializer=_limit_to_one_processor) as pool:
        try:
            for piece in chain(first, pieces):
                coming.append(pool.submit(work, piece))
                if len(coming) == _AHEAD:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def map_parts(
    run: Callable[[Iterable[_T]], Iterable[_U]],
    wholes: Iterable[_V],
    cut: Callable[[_V], Sequence[_T]],
) -> Generator[list[_U]]:
    """Cut each whole into parts, `run` the stream of parts; yield a list of results per whole.

    Parts of the next whole may be drawn before one is complete.

    Parameters
    ----------
    run : callable
        Gives what is made of each part, in their order.
    cut : callable
        Gives the parts of a whole: at least one.

    Raises
    ------
    ValueError
        A whole has no parts.
    """
    counts: deque[int] = deque()

    def parts() -> Generator[_T]:
        for whole in wholes:
            cuts = cut(whole)
            if not cuts:  # what follows would be taken for another's
                raise ValueError("A whole without parts.")
            counts.append(len(cuts))
            yield from cuts

    found: list[_U] = []
    for made in run(parts()):
        found.append(made)
        if len(found) == counts[0]:
            counts.popleft()
            yield found
            found = []


def _limit_to_one_processor() -> None:
    """Limit this thread's own computations, and no other thread's, to one processor."""
    torch.get_num_threads()  # which would set it later
    threadpool_limits(1, user_api="openmp")


GROUP = 16
"""Candidates of a group, of which usually only the greatest value is read."""

_ROUNDING = 2.0**-22
"""More than the share by which a float32 is rounded."""

Here = tuple[NDArray[Any], NDArray[np.float32], int]
Vectors = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]
Bounds = tuple[NDArray[np.float64], ...]
Kept = tuple[NDArray[np.float64], NDArray[np.int64]]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _exact(query: NDArray[np.float32], candidate: NDArray[np.float32], half_square: float) -> float:
    """Return the exact score of a candidate for a query: the product less the half square."""
    total = 0.0
    for j in range(len(query)):
        total += np.float64(query[j]) * np.float64(candidate[j])
    return total - half_square


@njit(cache=True, nogil=True)
def _insert(
    scores: NDArray[np.float64], places: NDArray[np.int64], score: float, place: int
) -> None:
    """Insert a candidate into a query's list, by score, then index; the last drops out."""
    i = len(scores) - 1
    if score < scores[i] or (score == scores[i] and place > places[i]):
        return
    while i > 0 and (scores[i - 1] < score or (scores[i - 1] == score and places[i - 1] > place)):
        scores[i], places[i] = scores[i - 1], places[i - 1]
        i -= 1
    scores[i], places[i] = score, place


def initial_floor(bounds: Bounds) -> NDArray[np.float32]:
    """Return each query's lowest score floor to start with; NaN where the error is unbounded."""
    most = np.finfo(np.float32).max
    return np.where(np.isfinite(bounds[2]), -most, np.nan).astype(np.float32)


@njit(cache=True, nogil=True)
def _score_group(
    here: Here,
    group: int,
    row: int,
    weight: float,
    vectors: Vectors,
    bounds: Bounds,
    floor: NDArray[np.float32],
    kept: Kept,
) -> None:
    """Score a group's candidates that may be nearest exactly; update the query's list and floor."""
    (products, halves, n_before), (queries, known, half_squares) = here, vectors
    (unit, offset, error), (scores, places) = bounds, kept
    for i in range(group * GROUP, (group + 1) * GROUP):
        if np.float32(products[i, row]) - weight * halves[i] >= floor[row]:
            place = n_before + i
            score = _exact(queries[row], known[place], half_squares[place])
            _insert(scores[row], places[row], score, place)
            least = scores[row, -1]  # of the n nearest so far
            if least > -np.inf:
                least = (least + offset[row] - error[row]) / unit[row]
                floor[row] = least - _ROUNDING * abs(least)


@njit(cache=True, nogil=True)
def update_nearest(
    here: Here, vectors: Vectors, bounds: Bounds, floor: NDArray[np.float32], kept: Kept
) -> None:
    """Update each query's n nearest candidates with the products of one piece of candidates.

    The value of a candidate is its product less its half in the same unit.

    Parameters
    ----------
    here : tuple
        Products, int32 or float32 (whole groups of candidates, m); float32 halves, (candidates,);
        and the place of the first of these candidates among all.
    vectors : tuple
        Queries (m, n) and candidates (U, n) in float32, and ½‖u‖² in float64 (U,).
    bounds : tuple
        Unit, offset and error of the products, float64 (m,).
    floor : float32 array (m,)
        What the values of the n nearest cannot lie below; raised here.
    kept : tuple
        Exact scores, descending, and places of the nearest, float64 and int64 (m, n); of equals,
        the first.
    """
    products, halves, _ = here
    n_groups, m = len(products) // GROUP, products.shape[1]
    weights = (1.0 / bounds[0]).astype(np.float32)
    leaders = np.full((n_groups, m), -np.inf, np.float32)
    # The group with the greatest value comes first: it raises the floor for the others.
    first, greatest = np.zeros(m, np.int32), np.full(m, -np.inf, np.float32)
    for group in range(n_groups):
        for i in range(group * GROUP, (group + 1) * GROUP):
            for row in range(m):
                value = np.float32(products[i, row]) - weights[row] * halves[i]
                leaders[group, row] = max(leaders[group, row], value)
        for row in range(m):
            if leaders[group, row] > greatest[row]:
                first[row], greatest[row] = group, leaders[group, row]
    # One call for both: compiled twice, it could add in another order, and equals would differ.
    for turn in range(-1, n_groups):
        for row in range(m):
            group = first[row] if turn < 0 else turn
            is_new = turn < 0 or group != first[row]
            if leaders[group, row] >= floor[row] and is_new:
                _score_group(here, group, row, weights[row], vectors, bounds, floor, kept)


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
        """Unit, offset and error of each query as arrays; an infinite error for extreme numbers."""
        is_bounded = self.error / self.unit < _LARGE
        is_bounded &= (self.unit > 1 / _LARGE) & (self.unit < _LARGE)
        error = torch.where(is_bounded, self.error, torch.inf)
        return self.unit.numpy(), self.offset.numpy(), error.numpy()


class _Products(Protocol):
    """Multiplies a block of queries with all candidates."""

    def __call__(self, block: torch.Tensor) -> _Scores:
        """Return the products of all candidates with a block of (m, n) queries, in pieces."""
        ...


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
        """Round a block of queries to bfloat16; return its products with all candidates."""
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
        """Quantise a block of queries to int8; return its products with all candidates."""
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
        """Find the n nearest candidates of each query; return their (m, n) indices, U if unknown.

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


_FEW_CANDIDATES = 2048
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
        if format != "float32" and len(known) > _FEW_CANDIDATES and is_usual:
            self._quantized = QuantizedNearest(self._known, half_squares, format)

    def __call__(self, queries: NDArray[np.float32]) -> NDArray[np.int64]:
        """Find the nearest candidate of each of the (m, n) queries; return the (m,) indices."""
        (found,) = self.of_blocks([queries])
        return found

    def of_blocks(self, blocks: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.int64]]:
        """Yield the indices of the nearest candidates for each block of queries, reading ahead."""

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
        """Find the candidate at a given distance rank for each query; return the (m,) indices.

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
