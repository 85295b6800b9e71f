"""How deniable a token is, at every η at once: N_w, S_w and what it turns into.

Implements the statistics of Qu et al. (2021), §5.3. N_w(η) is the number of S perturbations of
token w that return w, S_w(η) the number of distinct tokens returned.
Differs from the paper: the S draws are made once and shared by all tokens and all η (the noise
does not depend on the token and scales with 1/η). Each token's N_w keeps its binomial
distribution; means over the vocabulary vary more than independent draws would let them, which
several draw sets show. Shared draws are for statistics: `metric_dp` draws anew for every token.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from core.defences.envelope_kernel import HEAD, walk_tokens
from core.defences.envelope_torch import walk_tokens_torch
from core.defences.nearest import NearestCandidate
from core.defences.noise import check_eta, draw_noise
from core.errors import InvalidInputError

__all__ = ["DeniabilityEngine", "Envelopes"]


@dataclass(frozen=True)
class Envelopes:
    """What each draw returns for each token, as a function of η: exact for η ≥ `eta_min`.

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
        """The η from which on each draw returns the token itself, (T, S); `eta_min` where lower.

        For a token that is no candidate, the η from which on its nearest candidate is returned.
        """
        first = np.where(self.counts > 0, self.rates[:, :, 0], np.float32(self.eta_min / 2))
        doubled: NDArray[np.float32] = 2 * first
        return doubled

    def places(self, eta: float) -> NDArray[np.int64]:
        """Return the place of the candidate that each draw returns at η, (T, S)."""
        if check_eta(eta) < self.eta_min:
            raise InvalidInputError(f"eta must be at least {self.eta_min:g}, got {eta:g}.")
        exists = np.arange(self.rates.shape[2]) < self.counts[:, :, None]
        passed = ((self.rates > np.float32(eta / 2)) & exists).sum(2)
        last = np.take_along_axis(self.ids, np.maximum(passed - 1, 0)[:, :, None], 2)[:, :, 0]
        return np.where(passed > 0, last, self.starts[:, None])

    def returned(self, eta: float) -> NDArray[np.int64]:
        """Return the encoder's token that each draw returns at η, (T, S)."""
        return self.candidates[self.places(eta)]

    def n_w(self, eta: float) -> NDArray[np.int64]:
        """Return N_w(η): how many draws return the token itself, (T,)."""
        return (self.places(eta) == self.tokens[:, None]).sum(1)

    def s_w(self, eta: float) -> NDArray[np.int64]:
        """Return S_w(η): how many distinct tokens the draws return, (T,)."""
        ordered = np.sort(self.places(eta), axis=1)
        return 1 + (np.diff(ordered, axis=1) != 0).sum(1)

    def replacements(self, eta: float, n_most: int = 10) -> list[list[tuple[int, int]]]:
        """Return the tokens that each token turns into most often at η, with their counts.

        The token itself is among them where it is returned. Ties go to the smaller token id.
        """
        answer = []
        for row in self.returned(eta):
            tokens, counts = np.unique(row, return_counts=True)
            most = np.lexsort((tokens, -counts))[:n_most]
            answer.append([(int(tokens[i]), int(counts[i])) for i in most])
        return answer


class DeniabilityEngine:
    """Envelopes of any tokens of an encoder under one set of draws.

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

    n_buckets, n_near, n_heads, capacity = 16, 4, 256, 16

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
        self._known_squared = _squared_norms(self._known)
        self._nearest = NearestCandidate(self._known)
        self._products = self.draws @ self._known.T
        self._by_candidate = np.ascontiguousarray(self._products.T)
        is_cpu = self.device.type == "cpu"
        self._on_device = None if is_cpu else torch.as_tensor(self._products, device=self.device)
        n_buckets = max(1, min(self.n_buckets, len(order) // 64))
        self._bounds = np.linspace(0, len(order), n_buckets + 1).round().astype(np.int64)
        self._heads = _heads(self._products, self._bounds, self.n_heads)

    def envelopes(self, token_ids: Sequence[int] | NDArray[Any]) -> Envelopes:
        """Return the envelopes of tokens, given by their rows in the token matrix.

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
        while True:
            found = self._walk(ids, capacity)
            if len(ids) == 0 or found.counts.max() < capacity:
                return found
            capacity *= 2

    def eta_star(self, token_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the η from which on each draw returns each token itself, float32 (T, S).

        As `Envelopes.eta_star`, without what lies below: quicker where N_w alone is asked for.
        """
        return self._walk(np.asarray(token_ids, dtype=np.int64), 1).eta_star

    def perturbed(
        self, token_ids: NDArray[np.int64], eta: float, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return what each token becomes under noise of its own, drawn from `rng` at η = 1."""
        vectors = self._vectors[token_ids]
        noise = draw_noise(len(vectors), vectors.shape[1], rng=rng) / np.float32(check_eta(eta))
        return self.candidates[self._nearest(vectors + noise)]

    def _walk(self, ids: NDArray[np.int64], capacity: int) -> Envelopes:
        squared = self.squared_distances(ids)
        places = self._place[ids]
        starts = np.where(places >= 0, places, squared.argmin(1) if len(ids) else 0)
        shape = (len(ids), self.n_draws)
        rates = np.empty((*shape, capacity), np.float32)
        found = np.empty((*shape, capacity), np.int32)
        counts = np.empty(shape, np.int32)

        if self._on_device is not None:
            walk_tokens_torch(
                squared, starts, self._on_device, self.eta_min / 2, rates, found, counts
            )
            return Envelopes(places, starts, rates, found, counts, self.candidates, self.eta_min)

        def walk(rows: slice) -> None:
            walk_tokens(
                squared[rows], starts[rows], self._products, self._by_candidate, self._heads,
                self._bounds, min(self.n_near, len(self.candidates)), np.float32(self.eta_min / 2),
                rates[rows], found[rows], counts[rows],
            )  # fmt: skip

        parts = [slice(i, i + 4) for i in range(0, len(ids), 4)]
        with ThreadPoolExecutor(self.n_threads) as pool:
            list(pool.map(walk, parts))
        return Envelopes(places, starts, rates, found, counts, self.candidates, self.eta_min)

    def squared_distances(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the squared distances of tokens to the candidates in their order, (T, U)."""
        vectors = self._vectors[ids]
        squared = vectors @ self._known.T
        squared *= -2
        squared += self._known_squared
        squared += _squared_norms(vectors)[:, None]
        np.maximum(squared, 0, out=squared)
        own = self._place[ids]
        is_candidate = own >= 0
        squared[np.flatnonzero(is_candidate), own[is_candidate]] = 0
        return squared


def check_vectors(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return token vectors as float32, or raise InvalidInputError saying what is wrong."""
    checked = np.asarray(vectors, dtype=np.float32)
    if checked.ndim != 2 or 0 in checked.shape or not np.isfinite(checked).all():
        raise InvalidInputError(
            f"token_vectors must be a finite (tokens, dimension) matrix, got {checked.shape}."
        )
    return checked


def _squared_norms(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64).astype(np.float32)


def _heads(
    products: NDArray[np.float32], bounds: NDArray[np.int64], n_heads: int
) -> NDArray[np.void]:
    """Return the greatest products of each draw and bucket, descending, with their candidates."""
    length = int(min(n_heads, np.diff(bounds).min()))
    heads = np.empty((len(products), len(bounds) - 1, length), HEAD)
    for b, (low, high) in enumerate(pairwise(bounds)):
        block = products[:, low:high]
        if length < high - low:
            top = np.argpartition(block, high - low - length, axis=1)[:, -length:]
        else:
            top = np.broadcast_to(np.arange(length), block.shape).copy()
        values = np.take_along_axis(block, top, 1)
        order = np.argsort(-values, axis=1, kind="stable")
        heads["p"][:, b] = np.take_along_axis(values, order, 1)
        heads["u"][:, b] = np.take_along_axis(top, order, 1) + low
    return heads
