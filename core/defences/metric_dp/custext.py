"""CusText: a token is replaced by one of the K tokens of its set, near ones more often.

Implements Chen et al. (2023), "A customized text sanitization mechanism with differential
privacy": P[M(x) = y] ∝ exp(½·ε·u(x, y)) over the output set of x, where u(x, y) =
−(d(x, y) − d_min)/(d_max − d_min) within the set, which lies in [−1, 0] whatever x is. So for two
tokens *of the same output set* it holds that P[M(x) = y] ≤ exp(ε)·P[M(x') = y]. Between tokens of
different sets there is no guarantee: the output reveals the set.

`conservative` parts the vocabulary into sets of K: a token, the K−1 nearest that are left, and so
on; all tokens of a set share it, and hide among each other. `aggressive` takes the K nearest of
each token: replacements are nearer, but hardly two tokens share a set, so no pair is guaranteed.
Differs from the paper: the sets begin with the tokens in the order of the vocabulary, which is
public, where its code takes them by their frequency in the texts to be protected. What is left at
the end joins the last set. A token that may not be returned, such as [UNK], has the set of the
nearest that may.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.candidates import CANDIDATES, candidate_ids
from leakscope.core.defences.metric_dp.exponential_mechanism import (
    Distances,
    SampleBuffer,
    check_epsilon,
    epsilon_setting,
    sample_columns,
)
from leakscope.core.defences.metric_dp.texts import TextMechanism
from leakscope.core.encoders.white_box import token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.lookup import lookup_sorted
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.specs import setting

_STEPS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 14.0, 20.0)
_BLOCK = 256
"""Tokens whose distances to all candidates are in memory at a time."""
_SMALL = 64
"""Tokens of an output set up to which distances to these alone are measured."""
_NONE = -1
"""Fills the places of a set that is smaller than the greatest."""

MAPPINGS = ("conservative", "aggressive")


def custext_log_weights(distances: NDArray[np.float64], *, epsilon: float) -> NDArray[np.float64]:
    """Compute CusText's log-weights of set members from distances (m, K); inf: no member.

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
class CusText(TextMechanism):
    """Replaces every token by a random member of its set of near tokens (Chen et al. 2023)."""

    epsilon: float = epsilon_setting(4.0, _STEPS, "as in differential privacy within a set")
    k: int = setting(
        20, "Fewest tokens in an output set", low=2, high=5000, paper="Chen et al. (2023)"
    )
    mapping: str = setting(
        "conservative",
        "conservative: shared sets; aggressive: a set for each token, without a guarantee",
        choices=MAPPINGS,
    )
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    @property
    def has_no_guarantee(self) -> bool:
        """Whether the settings give up the guarantee, because tokens share no output set."""
        return self.mapping == "aggressive"

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> _SetPrivatizer:
        """Build the object that replaces an encoder's tokens, with draws from `rng`."""
        check_epsilon(self.epsilon)
        return _SetPrivatizer(self, encoder, rng)


class _SetPrivatizer:
    """Replaces tokens by random members of their output sets."""

    def __init__(
        self, mechanism: CusText, encoder: WhiteBoxEncoder, rng: np.random.Generator
    ) -> None:
        self.encoder, self._rng, self._mechanism = encoder, rng, mechanism
        self.ids = candidate_ids(encoder, mechanism.candidates)
        _check_size(mechanism.k, len(self.ids))
        self._distances = Distances(encoder, self.ids)
        self._drawn = SampleBuffer(len(encoder.tokens), self._draw)
        self._near: dict[int, NDArray[np.int64]] = {}  # see `precompute`
        self._sets = None
        if mechanism.mapping == "conservative":
            self._sets = cached_token_sets(encoder, mechanism.k, mechanism.candidates)

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw a replacement for each of (m,) token ids, independently; return the new ids."""
        return self._drawn.take(token_ids)

    def chances(
        self, token_ids: NDArray[np.int64], released: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Compute P[y | x] of (m,) tokens x and (Y,) tokens y, (m, Y); by default all y.

        The tokens asked for are distinct.
        """
        token_ids = np.asarray(token_ids, np.int64)
        asked = self.ids if released is None else np.asarray(released, np.int64)
        places, is_candidate = lookup_sorted(self.ids, asked)
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
        """Sample a replacement for each occurrence (`which`) of a block's distinct tokens."""
        members = self._members(block)
        return self.ids[
            members[which, sample_columns(self._weights(block, members), which, self._rng)]
        ]

    def precompute(self, token_ids: NDArray[np.int64]) -> None:
        """Store the output sets of the given tokens, if each token has its own set."""
        if self._sets is None and self._mechanism.k <= _SMALL:
            distinct = np.unique(np.asarray(token_ids, np.int64))
            self._near |= zip(distinct.tolist(), self._members(distinct), strict=True)

    def _members(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the candidate indices of each token's output set, (m, K), padded with -1."""
        if self._sets is not None:
            nearest, is_candidate = lookup_sorted(self.ids, token_ids)
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
        """Compute the log-weights of the (m, K) members of the tokens' output sets."""
        places = members.clip(min=0)
        if members.shape[1] <= _SMALL:
            near = self._distances.to_own_candidates(token_ids, places)
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
    """Disjoint output sets that tokens share.

    Attributes
    ----------
    set_of : int64 array (U,)
        The set of each candidate.
    members : int64 array (sets, most)
        The places of a set's members among the candidates, ascending, filled up with -1.
    """

    set_of: NDArray[np.int64]
    members: NDArray[np.int64]


def partition_tokens(vectors: NDArray[np.float32], k: int) -> TokenSets:
    """Partition candidate vectors into sets of k: the first left with its nearest, and so on.

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
    return _make_token_sets(sets, len(vectors))


def _make_token_sets(sets: list[NDArray[np.int64]], n: int) -> TokenSets:
    """Build TokenSets of n candidates from the candidate indices of each set."""
    members = np.full((len(sets), max(map(len, sets))), _NONE, np.int64)
    set_of = np.empty(n, np.int64)
    for number, each in enumerate(sets):
        members[number, : len(each)] = each
        set_of[each] = number
    return TokenSets(set_of, members)


_SETS: dict[tuple[str, int, str], TokenSets] = {}


def cached_token_sets(encoder: WhiteBoxEncoder, k: int, candidates: str = "regular") -> TokenSets:
    """Compute the shared output sets of an encoder's candidates, once per process."""
    key = (encoder.fingerprint, k, candidates)
    if key not in _SETS:
        if len(_SETS) > 8:
            _SETS.clear()
        ids = candidate_ids(encoder, candidates)
        _SETS[key] = partition_tokens(token_table(encoder)[ids], k)
    return _SETS[key]


def _check_size(k: int, n: int) -> None:
    """Raise InvalidInputError unless k lies between 2 and the number of candidates."""
    if not 2 <= k <= n:
        raise InvalidInputError(f"k must lie in [2, {n}], the number of candidates, got {k}.")
