"""CusText: a token is replaced by one of the K of its own set, the nearer the likelier.

Implements Chen et al. (2023), "A customized text sanitization mechanism with differential
privacy": P[M(x) = y] ∝ exp(½·ε·u(x, y)) over the output set of x, where u(x, y) =
−(d(x, y) − d_min)/(d_max − d_min) within the set, which lies in [−1, 0] whatever x is. So for two
tokens *of the same output set* it holds that P[M(x) = y] ≤ exp(ε)·P[M(x') = y]. Between tokens of
different sets nothing is promised: the output tells the set.

`conservative` parts the vocabulary into sets of K: a token, the K−1 nearest that are left, and so
on; all tokens of a set share it, and hide among each other. `aggressive` takes the K nearest of
each token: replacements are nearer, and as hardly two tokens share a set, no pair has the promise.
Differs from the paper: the sets begin with the tokens in the order of the vocabulary, which is
public, where its code takes them by their frequency in the texts to be protected. What is left at
the end joins the last set. A token that may not be returned, such as [UNK], has the set of the
nearest that may.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.defences.metric_dp.ahead import DrawnAhead
from core.defences.metric_dp.candidates import CANDIDATES, candidate_ids
from core.defences.metric_dp.choosing import (
    Distances,
    check_epsilon,
    choose,
    epsilon_setting,
)
from core.defences.metric_dp.texts import protect_texts
from core.defences.protected import ProtectedEncoder
from core.encoders.white_box import token_table
from core.errors import InvalidInputError
from core.places import places_among
from core.protocols import Encoder, WhiteBoxEncoder
from core.specs import setting

__all__ = ["CusText", "custext_log_weights", "token_sets"]

_STEPS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 14.0, 20.0)
_BLOCK = 256
"""Tokens whose distances to all candidates are in memory at a time."""
_SMALL = 64
"""Tokens of an output set up to which distances to these alone are measured."""
_NONE = -1
"""Fills the places of a set that is smaller than the greatest."""

MAPPINGS = ("conservative", "aggressive")


def custext_log_weights(distances: NDArray[np.float64], *, epsilon: float) -> NDArray[np.float64]:
    """Return ½·ε·u of each member of the sets (m, K), whose distances are given; inf is no member.

    Examples
    --------
    >>> custext_log_weights(np.array([[0.0, 2.0, 1.0, np.inf]]), epsilon=4.0).tolist()
    [[-0.0, -2.0, -1.0, -inf]]
    """
    least = distances.min(1, keepdims=True)
    is_member = np.isfinite(distances)
    spread = np.where(is_member, distances - least, 0).max(1, keepdims=True)
    scaled = np.where(is_member, distances - least, 0) / np.where(spread > 0, spread, 1)
    return np.where(is_member, -0.5 * epsilon * scaled, -np.inf)


@dataclass(frozen=True, kw_only=True)
class CusText:
    """Replaces every token by one of a set of near ones, by its distance (Chen et al. 2023)."""

    epsilon: float = epsilon_setting(4.0, _STEPS, "as in differential privacy, within a set")
    k: int = setting(
        20, "Tokens of an output set, at least", low=2, high=5000, paper="Chen et al. (2023)"
    )
    mapping: str = setting(
        "conservative", "Sets that tokens share, or the nearest of each: no promise then",
        choices=MAPPINGS,
    )  # fmt: skip
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    @property
    def promises_nothing(self) -> bool:
        """Whether an output tells so much of its input that no odds are bounded."""
        return self.mapping == "aggressive"

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> _SetPrivatizer:
        """Return what changes the tokens of an encoder."""
        check_epsilon(self.epsilon)
        return _SetPrivatizer(self, encoder, rng)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of privatised texts."""
        return protect_texts(self, encoder)


class _SetPrivatizer:
    """Draws among the members of a token's output set."""

    def __init__(
        self, mechanism: CusText, encoder: WhiteBoxEncoder, rng: np.random.Generator
    ) -> None:
        self.encoder, self._rng, self._mechanism = encoder, rng, mechanism
        self.ids = candidate_ids(encoder, mechanism.candidates)
        _check_size(mechanism.k, len(self.ids))
        self._distances = Distances(encoder, self.ids)
        self._drawn = DrawnAhead(len(encoder.tokens), self._draw)
        self._near: dict[int, NDArray[np.int64]] = {}  # see `remember`
        self._sets = None
        if mechanism.mapping == "conservative":
            self._sets = sets_of(encoder, mechanism.k, mechanism.candidates)

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what each of (m,) tokens becomes, each by a draw of its own."""
        return self._drawn.take(token_ids)

    def chances(
        self, token_ids: NDArray[np.int64], released: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return P[y | x] of (m,) tokens x and (Y,) tokens y, (m, Y); see `ChoosingPrivatizer`.

        The tokens asked for are distinct.
        """
        token_ids = np.asarray(token_ids, np.int64)
        asked = self.ids if released is None else np.asarray(released, np.int64)
        places, is_candidate = places_among(self.ids, asked)
        column = np.full(len(self.ids) + 1, _NONE)  # the last for what fills up a set
        column[places[is_candidate]] = np.flatnonzero(is_candidate)
        columns = column[members := self._members(token_ids)]
        rows = np.flatnonzero((columns != _NONE).any(1))  # the others cannot become what is asked
        weights = self._weights(token_ids[rows], members[rows])
        weights = np.exp(weights - weights.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        own, which = np.nonzero(columns[rows] != _NONE)
        found = np.zeros((len(token_ids), len(asked)))
        found[rows[own], columns[rows][own, which]] = weights[own, which]
        return found

    def _draw(self, block: NDArray[np.int64], which: NDArray[np.int64]) -> NDArray[np.int64]:
        members = self._members(block)
        return self.ids[members[which, choose(self._weights(block, members), which, self._rng)]]

    def remember(self, token_ids: NDArray[np.int64]) -> None:
        """Keep the output sets of these tokens where each has its own; of others nothing is."""
        if self._sets is None and self._mechanism.k <= _SMALL:
            distinct = np.unique(np.asarray(token_ids, np.int64))
            self._near |= zip(distinct.tolist(), self._members(distinct), strict=True)

    def _members(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of the output set of each of (m,) tokens, -1 where it is shorter."""
        if self._sets is not None:
            nearest, is_candidate = places_among(self.ids, token_ids)
            others = np.flatnonzero(~is_candidate)
            for start in range(0, len(others), _BLOCK):
                rows = others[start : start + _BLOCK]
                nearest[rows] = self._distances.of(token_ids[rows]).argmin(1)
            return self._sets.members[self._sets.set_of[nearest]]
        k = self._mechanism.k
        found = np.empty((len(token_ids), k), np.int64)
        missing = []
        for row, token in enumerate(token_ids.tolist()):
            if token in self._near:
                found[row] = self._near[token]
            else:
                missing.append(row)
        for start in range(0, len(missing), _BLOCK):
            lacking = missing[start : start + _BLOCK]
            distances = self._distances.of(token_ids[lacking])
            found[lacking] = np.sort(np.argpartition(distances, k - 1, axis=1)[:, :k], 1)
        return found

    def _weights(
        self, token_ids: NDArray[np.int64], members: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the log-weights of the (m, K) members of the tokens' output sets."""
        places = members.clip(min=0)
        if members.shape[1] <= _SMALL:
            near = self._distances.to_each(token_ids, places)
        else:  # a product with all candidates is sooner done
            near = np.empty(members.shape)
            for start in range(0, len(token_ids), _BLOCK):
                rows = slice(start, start + _BLOCK)
                every = self._distances.of(token_ids[rows])
                near[rows] = np.take_along_axis(every, places[rows], 1)
        near = np.where(members == _NONE, np.inf, near)
        return custext_log_weights(near, epsilon=self._mechanism.epsilon)


@dataclass(frozen=True, eq=False)
class TokenSets:
    """Output sets that tokens share.

    Attributes
    ----------
    set_of : int64 array (U,)
        The set of each candidate.
    members : int64 array (sets, most)
        The places of a set's members among the candidates, ascending, filled up with -1.
    """

    set_of: NDArray[np.int64]
    members: NDArray[np.int64]


def token_sets(vectors: NDArray[np.float32], k: int) -> TokenSets:
    """Part candidates into sets of k near ones: the first that is left, and its nearest.

    Fewer than k at the end join the last set.

    Raises
    ------
    InvalidInputError
        There are fewer than k candidates, or k is below 2.
    """
    _check_size(k, len(vectors))
    left = np.arange(len(vectors))
    known, halves = vectors, np.square(vectors).sum(1) / 2
    is_left = np.ones(len(left), bool)
    sets: list[NDArray[np.int64]] = []
    n_sets = len(vectors) // k
    for first in range(len(vectors)):
        place = int(np.searchsorted(left, first))
        if place == len(left) or left[place] != first or not is_left[place]:
            continue
        if len(sets) == n_sets - 1:  # the last takes all that is left
            sets.append(left[is_left])
            break
        far = np.where(is_left, halves - known @ known[place], np.inf)
        far[place] = -np.inf
        near = np.argpartition(far, k - 1)[:k]
        sets.append(np.sort(left[near]))
        is_left[near] = False
        if is_left.sum() < 0.8 * len(is_left):  # the products get shorter with the list
            left, known, halves = left[is_left], known[is_left], halves[is_left]
            is_left = np.ones(len(left), bool)
    return _as_table(sets, len(vectors))


def _as_table(sets: list[NDArray[np.int64]], n: int) -> TokenSets:
    members = np.full((len(sets), max(map(len, sets))), _NONE, np.int64)
    set_of = np.empty(n, np.int64)
    for number, each in enumerate(sets):
        members[number, : len(each)] = each
        set_of[each] = number
    return TokenSets(set_of, members)


_SETS: dict[tuple[str, int, str], TokenSets] = {}


def sets_of(encoder: WhiteBoxEncoder, k: int, candidates: str = "regular") -> TokenSets:
    """Return the sets of an encoder's candidates, parted once a process."""
    key = (encoder.fingerprint, k, candidates)
    if key not in _SETS:
        if len(_SETS) > 8:
            _SETS.clear()
        ids = candidate_ids(encoder, candidates)
        _SETS[key] = token_sets(token_table(encoder)[ids], k)
    return _SETS[key]


def _check_size(k: int, n: int) -> None:
    if not 2 <= k <= n:
        raise InvalidInputError(f"k must lie in [2, {n}], the number of candidates, got {k}.")
