"""Exact sampling of tokens whose probability falls with their distance.

SanText, CusText and TEM choose the replacement y of a token x with P[y | x] ∝ exp(w(d(x, y))), the
distances d being Euclidean and measured to every candidate. They are measured once for all
occurrences of a token, in blocks; each occurrence is drawn independently.

Numbers are float64 throughout. A draw inverts the cumulative distribution at a uniform number of 53
bits, so an outcome rarer than about 2⁻⁵³ may never come out: the guarantees hold as far as that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.candidates import candidate_ids
from leakscope.core.defences.metric_dp.sample_buffer import SampleBuffer
from leakscope.core.encoders.white_box import token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.lookup import lookup_sorted
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.ranges import Strength
from leakscope.core.specs import setting

LogWeights = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Distances (m, U) to the logarithms of weights (m, U), up to a constant a row."""

_BLOCK = 256
"""Tokens whose distances to all candidates are in memory at a time."""
_MOST_NUMBERS = 2**22
"""Numbers of differences of vectors that are in memory at a time."""

MOST_EPSILON = 1e6
_LEAST_EPSILON = 1e-6


def check_epsilon(epsilon: object) -> float:
    """Return ε as a float; raise InvalidInputError if it is outside the supported range."""
    if not (isinstance(epsilon, int | float) and _LEAST_EPSILON <= epsilon <= MOST_EPSILON):
        raise InvalidInputError(
            f"epsilon must be a number from {_LEAST_EPSILON:g} to {MOST_EPSILON:g}, "
            f"got {epsilon!r}."
        )
    return float(epsilon)


def epsilon_setting(start: float, steps: tuple[float, ...], what: str) -> float:
    """Declare the ε setting of a mechanism; `what` names its unit."""
    declared: float = setting(
        start,
        f"Privacy parameter, {what}: a smaller value changes more",
        low=_LEAST_EPSILON,
        high=MOST_EPSILON,
        strength=Strength("ε: fewer changes to the right", start, steps, "ε {:g}"),
    )
    return declared


_KNOWN: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}


def _as_float64(
    encoder: WhiteBoxEncoder, vectors: NDArray[np.float32], ids: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return candidates' vectors and squared norms in float64, cached for the process.

    Those of 30,000 tokens take some 90 MB.
    """
    key = f"{encoder.fingerprint} {hashlib.sha256(ids.tobytes()).hexdigest()}"
    found = _KNOWN.get(key)
    if found is None:
        known = vectors[ids].astype(np.float64)
        found = known, np.square(known).sum(1)
        while len(_KNOWN) > 2:
            _KNOWN.pop(next(iter(_KNOWN)), None)
        _KNOWN[key] = found
    return found


class Distances:
    """Exact Euclidean distances from tokens to candidates, in float64.

    Parameters
    ----------
    encoder : WhiteBoxEncoder
        Whose token vectors are used.
    ids : int64 array (U,)
        The candidates, ascending.
    """

    def __init__(self, encoder: WhiteBoxEncoder, ids: NDArray[np.int64]) -> None:
        self.ids = ids
        self.vectors = token_table(encoder)
        self._known, self._squares = _as_float64(encoder, self.vectors, ids)

    def of(
        self, token_ids: NDArray[np.int64], places: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the (m, U) distances from tokens to all candidates; exactly 0 to a token itself.

        Parameters
        ----------
        places : int64 array (Y,), optional
            Those of the candidates that are asked for, of all U; then (m, Y) are returned.
        """
        some: slice | NDArray[np.int64] = slice(None) if places is None else places
        own = self.vectors[token_ids].astype(np.float64)
        found: NDArray[np.float64] = own @ self._known[some].T
        found *= -2
        found += self._squares[some]
        found += np.square(own).sum(1)[:, None]
        np.maximum(found, 0, out=found)
        np.sqrt(found, out=found)
        if places is not None:
            found[token_ids[:, None] == self.ids[some]] = 0
            return found
        own_places, is_candidate = lookup_sorted(self.ids, token_ids)
        found[is_candidate, own_places[is_candidate]] = 0
        return found

    def to_own_candidates(
        self, token_ids: NDArray[np.int64], places: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the (m, K) distances from each token to its own K candidates."""
        found = np.empty(places.shape)
        step = max(1, _MOST_NUMBERS // max(1, places.shape[1] * self._known.shape[1]))
        for start in range(0, len(places), step):
            own = self.vectors[token_ids[start : start + step]].astype(np.float64)
            apart = self._known[places[start : start + step]] - own[:, None]
            found[start : start + step] = np.sqrt(np.square(apart).sum(2))
        return found


def sample_columns(
    log_weights: NDArray[np.float64], rows: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Sample a column for each of (k,) rows with probabilities ∝ exp(log_weights[row]).

    The first column whose cumulative weight reaches u·total, u uniform in (0, 1], is found by
    bisection in all rows at once.
    """
    weights = log_weights - log_weights.max(1, keepdims=True)
    np.exp(weights, out=weights)
    cumulative = np.cumsum(weights, axis=1, out=weights)
    reached = (1 - rng.random(len(rows))) * cumulative[rows, -1]
    low = np.zeros(len(rows), np.int64)
    high = np.full(len(rows), cumulative.shape[1] - 1, np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        is_enough = cumulative[rows, middle] >= reached
        high = np.where(is_enough, middle, high)
        low = np.where(is_enough, low, np.minimum(middle + 1, high))
    return low


class ExponentialPrivatizer:
    """Replaces every token by a candidate sampled with weights that depend on distance.

    Parameters
    ----------
    encoder : WhiteBoxEncoder
        Whose tokens and token vectors are used.
    ids : int64 array (U,) or str
        The candidates, ascending, or what `candidate_ids` calls them.
    log_weights : callable
        See `LogWeights`.
    rng : Generator
        Source of the draws: `secure_generator()` for what is released.
    """

    def __init__(
        self,
        encoder: WhiteBoxEncoder,
        ids: NDArray[np.int64] | str,
        log_weights: LogWeights,
        *,
        rng: np.random.Generator,
    ) -> None:
        self.encoder, self._log_weights, self._rng = encoder, log_weights, rng
        self.ids = candidate_ids(encoder, ids) if isinstance(ids, str) else ids
        self._distances = Distances(encoder, self.ids)
        self._drawn = SampleBuffer(len(encoder.tokens), self._draw)
        self._sums = np.full((len(encoder.tokens), 2), np.nan)

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the replacement of each of (m,) tokens, by independent draws."""
        return self._drawn.take(token_ids)

    def precompute(self, token_ids: NDArray[np.int64]) -> None:
        """Precompute the sums over all candidates that `chances` needs for these tokens."""
        distinct = np.unique(np.asarray(token_ids, np.int64))
        self._sums[distinct] = self._normalisers(distinct)

    def chances(
        self, token_ids: NDArray[np.int64], released: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return P[y | x] of (m,) tokens x and (Y,) tokens y: an (m, Y) array.

        Parameters
        ----------
        released : int64 array (Y,), optional
            What is asked for; all (U,) candidates where it is left out. What is none has chance 0.
        """
        token_ids = np.asarray(token_ids, np.int64)
        asked = self.ids if released is None else np.asarray(released, np.int64)
        places, is_candidate = lookup_sorted(self.ids, asked)
        greatest, total = self._normalisers(token_ids).T[:, :, None]
        found = np.zeros((len(token_ids), len(asked)))
        weights = self._log_weights(self._distances.of(token_ids, places[is_candidate]))
        found[:, is_candidate] = np.exp(weights - greatest) / total
        return found

    def _normalisers(self, token_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each token's greatest log-weight and Σ exp(weight − greatest) over all U."""
        sums = self._sums[token_ids]
        missing = np.flatnonzero(np.isnan(sums[:, 0]))
        for start in range(0, len(missing), _BLOCK):
            rows = missing[start : start + _BLOCK]
            weights = self._log_weights(self._distances.of(token_ids[rows]))
            greatest = weights.max(1)
            weights -= greatest[:, None]
            np.exp(weights, out=weights)
            sums[rows] = np.stack([greatest, weights.sum(1)], 1)
        return np.asarray(sums)

    def _draw(self, block: NDArray[np.int64], which: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sample a replacement for each occurrence of the distinct tokens of a block."""
        weights = self._log_weights(self._distances.of(block))
        return self.ids[sample_columns(weights, which, self._rng)]
