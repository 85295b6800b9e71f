"""Deniability of tokens at every η at once: N_w, S_w and the replacements.

Implements the statistics of Qu et al. (2021), §5.3. N_w(η) is the number of S perturbations of
token w that return w, S_w(η) the number of distinct tokens returned.
Differs from the paper: the S draws are made once and shared by all tokens and all η (the noise
does not depend on the token and scales with 1/η). Each token's N_w keeps its binomial
distribution; means over the vocabulary vary more than independent draws would let them, which
several draw sets show. Shared draws are for statistics: `metric_dp` draws new noise for every
token.

On a GPU nothing is pruned: it reads all lines of a token and 1,000 draws (118 MB for MiniLM) faster
than it would decide which to skip. On a CPU that is slower than the compiled walk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from leakscope.core.defences.deniability.envelope_kernel import (
    CHUNK,
    WIDTH,
    count_outcomes,
    walk_tokens,
)
from leakscope.core.defences.metric_dp.neighbours.nearest import NearestCandidate
from leakscope.core.defences.metric_dp.noise import check_eta, draw_noise
from leakscope.core.errors import InvalidInputError


@dataclass(frozen=True)
class Envelopes:
    """Which candidate each draw returns for each token, as a function of η ≥ `eta_min`, exactly.

    Attributes
    ----------
    tokens, starts : int64 array (T,)
        Each token's own place among the candidates (−1 where it is none), and the place of the
        candidate nearest to it.
    rates, ids, counts : float32 (T, S, C), int32 (T, S, C), int32 (T, S)
        For each token and draw, η/2 at the crossings, descending, and the place of the candidate
        that is returned below each.
    candidates : int64 array (U,)
        The encoder's token at each place.
    eta_min : float
        Smallest η that the envelopes reach.
    """

    tokens: NDArray[np.int64]
    starts: NDArray[np.int64]
    rates: NDArray[np.float32]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    candidates: NDArray[np.int64]
    eta_min: float

    @property
    def n_draws(self) -> int:
        """S, the number of draws."""
        return self.counts.shape[1]

    @property
    def eta_star(self) -> NDArray[np.float32]:
        """The smallest η from which each draw returns the token itself, (T, S); at least `eta_min`.

        For a token that is no candidate, the η from which on its nearest candidate is returned.
        """
        first = np.where(self.counts > 0, self.rates[:, :, 0], np.float32(self.eta_min / 2))
        doubled: NDArray[np.float32] = 2 * first
        return doubled

    def places(self, eta: float) -> NDArray[np.int64]:
        """Return the candidate index that each draw returns at η, (T, S)."""
        if check_eta(eta) < self.eta_min:
            raise InvalidInputError(f"eta must be at least {self.eta_min:g}, got {eta:g}.")
        exists = np.arange(self.rates.shape[2]) < self.counts[:, :, None]
        passed = ((self.rates > np.float32(eta / 2)) & exists).sum(2)
        last = np.take_along_axis(self.ids, np.maximum(passed - 1, 0)[:, :, None], 2)[:, :, 0]
        return np.where(passed > 0, last, self.starts[:, None])

    def returned(self, eta: float) -> NDArray[np.int64]:
        """Return the encoder's token id that each draw returns at η, (T, S)."""
        return self.candidates[self.places(eta)]

    def n_w(self, eta: float) -> NDArray[np.int64]:
        """Return N_w(η) of each token, (T,): how many draws return the token itself."""
        return (self.places(eta) == self.tokens[:, None]).sum(1)

    def s_w(self, eta: float) -> NDArray[np.int64]:
        """Return S_w(η) of each token, (T,): how many distinct tokens the draws return."""
        ordered = np.sort(self.places(eta), axis=1)
        return 1 + (np.diff(ordered, axis=1) != 0).sum(1)

    def replacements(self, eta: float, n_most: int = 10) -> list[list[tuple[int, int]]]:
        """Return each token's most frequent outcomes at η as (token id, count) pairs.

        The token itself is among them if it is returned. Ties go to the smaller token id.
        """
        answer = []
        for row in self.returned(eta):
            tokens, counts = np.unique(row, return_counts=True)
            most = np.lexsort((tokens, -counts))[:n_most]
            answer.append([(int(tokens[i]), int(counts[i])) for i in most])
        return answer


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
    """Compute tokens' envelopes with torch; write them into `rates`, `ids` and `counts`.

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


_T = TypeVar("_T")


@dataclass(frozen=True)
class WalkArrays:
    """Reusable arrays for the envelopes of a block of tokens and for counting their outcomes."""

    rates: NDArray[np.float32]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    turned: NDArray[np.float32]
    seen: NDArray[np.uint64]
    returned: NDArray[np.int64]

    @classmethod
    def of(cls, n_tokens: int, n_draws: int, capacity: int, n_candidates: int) -> WalkArrays:
        """Allocate empty arrays for given numbers of tokens, draws, crossings and candidates."""
        shape = (n_tokens, n_draws)
        return cls(
            np.empty((*shape, capacity), np.float32),
            np.empty((*shape, capacity), np.int32),
            np.empty(shape, np.int32),
            np.empty((n_candidates, WIDTH), np.float32),
            np.zeros(n_candidates, np.uint64),
            np.empty(n_candidates, np.int64),
        )

    @property
    def capacity(self) -> int:
        """The greatest number of crossings that an envelope can hold."""
        return self.rates.shape[2]


class DeniabilityEngine:
    """Computes the envelopes of any tokens of an encoder under one set of draws.

    Parameters
    ----------
    token_vectors : float32 array (V, n)
        The token-embedding matrix.
    candidates : int64 array (U,)
        Rows that may be returned (`candidate_ids`).
    n_draws : int
        S, draws per token.
    seed : int
        Of the draws.
    eta_min : float
        Smallest η of interest: less noise is quicker.
    n_threads : int or None
        Threads that walk side by side; None for the number of processors.
    device : str
        `cpu` walks compiled and pruned; a GPU compares every candidate by tensor arithmetic.

    Notes
    -----
    Holds 2·S·U float32 products: 236 MB for MiniLM at 1,000 draws. A token's envelope is found
    exactly: float32 arithmetic, in which lines that cross within about 1e-6 of their distance may
    be taken for each other.
    """

    n_buckets, n_near, n_few, n_heads, capacity = 16, 8, 2, 512, 16
    panel = 256

    def __init__(
        self,
        token_vectors: NDArray[np.float32],
        candidates: NDArray[np.int64],
        *,
        n_draws: int = 1000,
        seed: int = 0,
        eta_min: float = 15.0,
        n_threads: int | None = None,
        device: str = "cpu",
    ) -> None:
        self.device = torch.device(device)
        self.eta_min, self.seed, self.n_draws = check_eta(eta_min), seed, n_draws
        self.n_threads = n_threads or os.cpu_count() or 1
        self._vectors = check_vectors(token_vectors)
        if len(candidates) < 2:
            raise InvalidInputError("At least two candidates are needed to deny anything.")
        rng = np.random.default_rng(seed)
        self.draws = draw_noise(n_draws, self._vectors.shape[1], rng=rng)
        norms = np.linalg.norm(self._vectors[candidates], axis=1)
        order = np.argsort(norms, kind="stable")
        self.candidates: NDArray[np.int64] = np.asarray(candidates, np.int64)[order]
        self._place = np.full(len(self._vectors), -1, np.int64)
        self._place[self.candidates] = np.arange(len(order))
        self._known = np.ascontiguousarray(self._vectors[self.candidates])
        known_squared = _squared_norms(self._known)
        ones = np.ones_like(known_squared)
        self._augmented = np.ascontiguousarray(
            np.column_stack([-2 * self._known, ones, known_squared]).T
        )
        self._nearest = NearestCandidate(self._known)
        self._products = self.draws @ self._known.T
        self._by_candidate = np.ascontiguousarray(self._products.T)
        is_cpu = self.device.type == "cpu"
        self._on_device = None if is_cpu else torch.as_tensor(self._products, device=self.device)
        n_buckets = max(1, min(self.n_buckets, len(order) // 64))
        self._bounds = np.linspace(0, len(order), n_buckets + 1).round().astype(np.int64)
        self._lists = descending_lists(self._products, self._bounds, self.n_heads, self.n_threads)
        n = len(order)
        self._n_near = min(self.n_near, n), min(self.n_few, n)

    def envelopes(self, token_ids: Sequence[int] | NDArray[Any]) -> Envelopes:
        """Compute the envelopes of tokens, given by their rows in the token matrix.

        Repeated tokens have equal envelopes: ask for each once.

        Raises
        ------
        InvalidInputError
            A row that does not exist.
        """
        ids = np.asarray(token_ids, dtype=np.int64)
        if ids.ndim != 1 or (len(ids) and not (ids.min() >= 0 and ids.max() < len(self._vectors))):
            raise InvalidInputError(
                f"token_ids must be rows 0 to {len(self._vectors) - 1} in one dimension."
            )
        capacity = self.capacity
        while True:  # until no envelope is cut off
            found = self._compute_envelopes(ids, capacity)
            if len(found.counts) == 0 or found.counts.max() < capacity:
                return found
            capacity *= 2

    def eta_star(self, token_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Compute the smallest η from which each draw returns the token itself, float32 (T, S).

        As `Envelopes.eta_star`, but without the crossings below: faster if N_w alone is needed.
        """
        found = np.empty((len(token_ids), self.n_draws), np.float32)

        def keep(here: NDArray[np.int64], block: Envelopes, _: WalkArrays) -> None:
            found[here] = block.eta_star

        self._walk_panels(np.asarray(token_ids, dtype=np.int64), 1, keep)
        return found

    def outcomes(
        self, token_ids: NDArray[np.int64], etas: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.float32]]:
        """Compute N_w and S_w at each η, uint16 (T, G), and the sorted η*, float32 (T, S).

        As `envelopes` and its methods, without storing the envelopes: for whole vocabularies.

        Parameters
        ----------
        etas : float array (G,)
            Ascending, from `eta_min` on.
        """
        n_w = np.empty((len(token_ids), len(etas)), np.uint16)
        s_w = np.empty_like(n_w)
        eta_star = np.empty((len(token_ids), self.n_draws), np.float32)
        half_etas = np.asarray(etas[::-1] / 2, np.float32)

        def count(here: NDArray[np.int64], block: Envelopes, arrays: WalkArrays) -> None:
            if block.counts.max() == arrays.capacity:  # some were cut off
                block = self.envelopes(token_ids[here])
            same = np.empty((len(here), len(etas)), np.uint16)
            distinct = np.empty_like(same)
            count_outcomes(
                block.tokens,
                block.starts,
                block.rates,
                block.ids,
                block.counts,
                half_etas,
                arrays.seen,
                arrays.returned,
                same,
                distinct,
            )
            n_w[here], s_w[here] = same[:, ::-1], distinct[:, ::-1]
            eta_star[here] = np.sort(block.eta_star, axis=1)

        self._walk_panels(token_ids, self.capacity, count)
        return n_w, s_w, eta_star

    def perturbed(
        self, token_ids: NDArray[np.int64], eta: float, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Add fresh noise at η to each token's vector; return the ids of the nearest candidates."""
        vectors = self._vectors[token_ids]
        noise = draw_noise(len(vectors), vectors.shape[1], rng=rng)
        noise /= np.float32(check_eta(eta))
        return self.candidates[self._nearest(vectors + noise)]

    def _compute_envelopes(self, ids: NDArray[np.int64], capacity: int) -> Envelopes:
        """Compute for each draw of tokens which candidate wins at each η; `capacity` changes."""
        squared, places, starts = self._measure_distances(ids)

        def walk(rows: slice) -> Envelopes:
            arrays = WalkArrays.of(len(starts[rows]), self.n_draws, capacity, len(self.candidates))
            return self._walk_block(squared[rows], places[rows], starts[rows], arrays)

        share = max(1, min(WIDTH, -(-len(ids) // self.n_threads)))
        blocks = self._map_in_threads(walk, len(ids), share)
        joined = {
            name: np.concatenate([getattr(block, name) for block in blocks])
            for name in ("tokens", "starts", "rates", "ids", "counts")
        }
        return Envelopes(**joined, candidates=self.candidates, eta_min=self.eta_min)

    def _walk_panels(
        self,
        ids: NDArray[np.int64],
        capacity: int,
        use: Callable[[NDArray[np.int64], Envelopes, WalkArrays], None],
    ) -> None:
        """Compute tokens' envelopes block by block in reused arrays, and pass each block to `use`.

        `use` gets the places in `ids` of a block and its envelopes, cut off after `capacity`
        crossings, before the next block overwrites them.
        """
        pool_of_arrays: SimpleQueue[WalkArrays] = SimpleQueue()
        for _ in range(self.n_threads):
            pool_of_arrays.put(WalkArrays.of(WIDTH, self.n_draws, capacity, len(self.candidates)))
        # Tokens of like norm look at like candidates: candidates stand in the order of norms.
        order = np.argsort(self._place[ids], kind="stable")

        def walk(rows: slice) -> None:
            arrays = pool_of_arrays.get()
            try:
                here = order[rows]
                squared, places, starts = self._measure_distances(ids[here])
                for low in range(0, len(starts), WIDTH):
                    part = slice(low, low + WIDTH)
                    found = self._walk_block(squared[part], places[part], starts[part], arrays)
                    use(here[part], found, arrays)
            finally:
                pool_of_arrays.put(arrays)

        # A product on all processors would leave them spinning while the others walk.
        with threadpool_limits(1, user_api="blas"):
            self._map_in_threads(walk, len(ids), self.panel)

    def _walk_block(
        self,
        squared: NDArray[np.float32],
        places: NDArray[np.int64],
        starts: NDArray[np.int64],
        arrays: WalkArrays,
    ) -> Envelopes:
        """Compute a block's envelopes, stored in the given arrays, on the CPU or a device."""
        n = len(starts)
        rates, ids, counts = arrays.rates[:n], arrays.ids[:n], arrays.counts[:n]
        least_rate = np.float32(self.eta_min / 2)
        if self._on_device is not None:
            walk_tokens_torch(
                squared, starts, self._on_device, float(least_rate), rates, ids, counts
            )
        else:
            walk_tokens(
                squared,
                starts,
                self._products,
                self._by_candidate,
                self._lists,
                self._lists.view(np.uint32),
                self._bounds,
                *self._n_near,
                least_rate,
                arrays.turned,
                rates,
                ids,
                counts,
            )
        return Envelopes(places, starts, rates, ids, counts, self.candidates, self.eta_min)

    def _map_in_threads(self, work: Callable[[slice], _T], n_tokens: int, size: int) -> list[_T]:
        """Call `work` on slices of `size` tokens in threads; return the results in order."""
        blocks = [slice(i, min(i + size, n_tokens)) for i in range(0, max(n_tokens, 1), size)]
        with ThreadPoolExecutor(self.n_threads) as pool:
            return list(pool.map(work, blocks))

    def _measure_distances(
        self, ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
        """Return tokens' squared distances, own candidate index (−1: none), nearest candidate."""
        squared, places = self.squared_distances(ids), self._place[ids]
        starts, outside = places.copy(), np.flatnonzero(places < 0)
        starts[outside] = squared[outside].argmin(1) if len(outside) else 0
        return squared, places, starts

    def squared_distances(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Compute the squared distances (T, U) from tokens to all candidates, in their order.

        Rounding may leave the distance of two equal vectors slightly below 0.
        """
        vectors = self._vectors[ids]  # |x − y|² as one product: (x, |x|², 1) times (−2y, 1, |y|²)
        ones = np.ones(len(vectors), np.float32)
        squared = np.column_stack([vectors, _squared_norms(vectors), ones]) @ self._augmented
        own = self._place[ids]
        is_candidate = own >= 0
        squared[np.flatnonzero(is_candidate), own[is_candidate]] = 0
        return squared


def check_vectors(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return token vectors as a finite float32 matrix; raise InvalidInputError if impossible."""
    checked = np.asarray(vectors, dtype=np.float32)
    if checked.ndim != 2 or 0 in checked.shape or not np.isfinite(checked).all():
        raise InvalidInputError(
            f"token_vectors must be a finite (tokens, dimension) matrix, got {checked.shape}."
        )
    return checked


def _squared_norms(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the squared norm of each row of a matrix, summed in float64."""
    return np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64).astype(np.float32)


def descending_lists(
    products: NDArray[np.float32], bounds: NDArray[np.int64], n_heads: int, n_threads: int
) -> NDArray[np.float32]:
    """Build lists of each draw's greatest products per bucket, descending, with the candidates.

    The layout is the one that `walk_tokens` reads: by chunk, draw and bucket, products beside the
    bits of the candidates. Lists are as long as the shortest bucket allows, padded with products
    that never win.
    """
    length = int(min(n_heads, np.diff(bounds).min()))
    shape = (-(-length // CHUNK), len(products), len(bounds) - 1, 2, CHUNK)
    lists = np.empty(shape, np.float32)

    def fill(b: int) -> None:
        low, high = int(bounds[b]), int(bounds[b + 1])
        block = products[:, low:high]
        top = np.argpartition(block, high - low - length, axis=1)[:, -length:]
        found = np.take_along_axis(block, top, 1)
        order = np.argsort(-found, axis=1, kind="stable")
        both = np.zeros((len(products), 2, shape[0] * CHUNK), np.float32)
        both[:, 0], both[:, 0, :length] = -np.inf, np.take_along_axis(found, order, 1)
        names = np.take_along_axis(top, order, 1) + low
        both.view(np.uint32)[:, 1, :length] = names
        chunked = both.reshape(len(products), 2, shape[0], CHUNK)
        lists[:, :, b] = chunked.transpose(2, 0, 1, 3)

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(fill, range(shape[2])))
    return lists
