"""Exact sampling of tokens whose probability falls with their distance.

SanText, CusText and TEM choose the replacement y of a token x with P[y | x] ∝ exp(w(d(x, y))), the
distances d being Euclidean and measured to every candidate. They are measured once for all
occurrences of a token, in blocks; each occurrence is drawn independently.

Numbers are float64 throughout. A draw inverts the cumulative distribution at a uniform number of 53
bits, so an outcome rarer than about 2⁻⁵³ may never come out: the guarantees hold as far as that.

`SampleBuffer`: the chances of a token's replacements cost a product with all candidates; a further
draw from them costs next to nothing. Draws are independent of each other whenever they are made, so
those that a call leaves over serve the calls that follow. None is used twice.

`SanText` and `SanTextPlus` implement Yue et al. (2021), "Differential privacy for text analytics
via natural text sanitization": P[M(x) = y] ∝ exp(−½·ε·d(x, y)) over the vocabulary. For all x, x',
y it holds that P[M(x) = y] ≤ exp(ε·d(x, x'))·P[M(x') = y]: half of that by the numerator, half by
the sum over y. SanText+ takes some tokens to be sensitive. These are replaced as in SanText, by
sensitive ones; the others so with probability p, and are left as they are otherwise.
Differs from the papers: word pieces in the place of words, so that none is out of vocabulary. What
is sensitive is judged by the sentences that ship, never by the texts that are to be protected.

`TEM` implements Carvalho et al. (2023), "TEM: high utility metric differential privacy on text".
The candidates within γ of x compete with the score −d(x, y), all others together as one candidate ⊥
with the score −γ + (2/ε)·ln n_others; Gumbel noise of scale 2/ε is added to each, the greatest
wins, and where that is ⊥, one of the others is drawn evenly. γ = (2/ε)·ln((1−β)(|V|−1)/β), so that
with probability 1−β at least, the replacement lies within γ.
Differs from the paper: it is drawn in one step. The greatest of n_others Gumbel variables of
location −γ is one of location −γ + (2/ε)·ln n_others, and each is the greatest equally often, so
that the above is P[M(x) = y] ∝ exp(−½·ε·min(d(x, y), γ)) exactly.

The guarantee of TEM: min(d, γ) differs between x and x' by min(d(x, x'), γ) at most, hence
P[M(x) = y] ≤ exp(ε·min(d(x, x'), γ))·P[M(x') = y]: the paper's bound, and for far tokens a better.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import bundled_sentences
from leakscope.core.defences.metric_dp.candidates import CANDIDATES, candidate_ids
from leakscope.core.defences.metric_dp.texts import TextMechanism
from leakscope.core.encoders.white_box import token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.lookup import lookup_sorted
from leakscope.core.protocols import WhiteBoxEncoder
from leakscope.core.ranges import Strength
from leakscope.core.specs import setting

Draw = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""Given the distinct tokens of a block and, for each occurrence, which of them it is: what each
occurrence becomes."""

_BLOCK = 256
"""Distinct tokens whose distances to all candidates are in memory at a time."""

_AHEAD, _MOST = 16, 2_000_000
"""Draws made for each that is needed, and at a time unless more are needed."""


def draw_in_blocks(token_ids: NDArray[np.int64], draw: Draw) -> NDArray[np.int64]:
    """Call `draw` on blocks of distinct tokens; return the replacement of each of (m,) tokens."""
    token_ids = np.asarray(token_ids, np.int64)
    distinct, which = np.unique(token_ids, return_inverse=True)
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(0, len(distinct) + _BLOCK, _BLOCK))
    changed = np.empty_like(token_ids)
    for start, first, last in zip(
        range(0, len(distinct), _BLOCK), bounds[:-1], bounds[1:], strict=False
    ):
        places = order[first:last]
        block = distinct[start : start + _BLOCK]
        changed[places] = draw(block, which[places] - start)
    return changed


class SampleBuffer:
    """Returns sampled replacements of tokens and buffers the unused draws for later calls.

    Parameters
    ----------
    n_tokens : int
        Tokens of the encoder.
    draw : callable
        See `Draw`; every draw is independent.
    """

    def __init__(self, n_tokens: int, draw: Draw) -> None:
        self._draw = draw
        self._pool = np.empty(0, np.int64)
        self._start = np.zeros(n_tokens, np.int64)
        self._left = np.zeros(n_tokens, np.int64)

    def take(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Take a replacement of each of (m,) tokens; draw more if needed, use no draw twice."""
        token_ids = np.asarray(token_ids, np.int64)
        distinct, which, counts = np.unique(token_ids, return_inverse=True, return_counts=True)
        is_lacking = self._left[distinct] < counts
        if is_lacking.any():
            self._refill(distinct[is_lacking], counts[is_lacking])
        order = np.argsort(which, kind="stable")
        taken = np.empty_like(token_ids)
        taken[order] = self._pool[_segment_indices(self._start[distinct], counts)]
        self._start[distinct] += counts
        self._left[distinct] -= counts
        return taken

    def _refill(self, tokens: NDArray[np.int64], needed: NDArray[np.int64]) -> None:
        """Draw replacements for tokens whose buffer is too short; their old draws are dropped."""
        ahead = int(np.clip(_MOST // max(1, needed.sum()), 1, _AHEAD))
        drawn = draw_in_blocks(np.repeat(tokens, needed * ahead), self._draw)
        self._left[tokens] = 0
        kept = np.flatnonzero(self._left)
        rest = self._pool[_segment_indices(self._start[kept], self._left[kept])]
        self._pool = np.concatenate([rest, drawn])
        self._left[tokens] = needed * ahead
        lengths = np.concatenate([self._left[kept], self._left[tokens]])
        self._start[np.concatenate([kept, tokens])] = np.cumsum(lengths) - lengths


def _segment_indices(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenated ranges start, start + 1, … of segments with given lengths."""
    before = np.cumsum(lengths) - lengths
    found: NDArray[np.int64] = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    return found


LogWeights = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Distances (m, U) to the logarithms of weights (m, U), up to a constant a row."""

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
    """Declare a mechanism's dataclass field for ε; `what` names its unit."""
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
    """Return the vectors of given candidates and their squared norms as float64, from a cache.

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
        """Compute the (m, U) distances from tokens to all candidates; exactly 0 to a token itself.

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
        """Compute the (m, K) distances from each token to its own K candidates."""
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
        """Draw a replacement for each of (m,) token ids, independently; return the new ids."""
        return self._drawn.take(token_ids)

    def precompute(self, token_ids: NDArray[np.int64]) -> None:
        """Compute and store the sums over all candidates that `chances` needs for tokens."""
        distinct = np.unique(np.asarray(token_ids, np.int64))
        self._sums[distinct] = self._normalisers(distinct)

    def chances(
        self, token_ids: NDArray[np.int64], released: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Compute P[y | x] of (m,) tokens x and (Y,) tokens y, (m, Y); by default all y.

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
        """Return (m, 2): each token's greatest log-weight and Σ exp(weight − greatest)."""
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
        """Sample a replacement for each occurrence (`which`) of a block's distinct tokens."""
        weights = self._log_weights(self._distances.of(block))
        return self.ids[sample_columns(weights, which, self._rng)]


_STEPS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 25.0, 30.0, 40.0)
_N_COUNTED = 5000
"""Evenly spaced bundled sentences, in which frequent tokens are counted."""


def santext_log_weights(distances: NDArray[np.float64], *, epsilon: float) -> NDArray[np.float64]:
    """Compute SanText's log-weights −½·ε·d of candidates from an array of distances d.

    Examples
    --------
    >>> santext_log_weights(np.array([[0.0, 1.5]]), epsilon=2.0).tolist()
    [[-0.0, -1.5]]
    """
    return -0.5 * epsilon * distances


@dataclass(frozen=True, kw_only=True)
class SanText(TextMechanism):
    """Replaces every token by one drawn with P ∝ exp(−½·ε·distance) (Yue et al. 2021)."""

    epsilon: float = epsilon_setting(14.0, _STEPS, "in 1/distance")
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def privatizer(
        self, encoder: WhiteBoxEncoder, rng: np.random.Generator
    ) -> ExponentialPrivatizer:
        """Build the object that replaces an encoder's tokens, with draws from `rng`."""
        weights = partial(santext_log_weights, epsilon=check_epsilon(self.epsilon))
        return ExponentialPrivatizer(encoder, self.candidates, weights, rng=rng)


@dataclass(frozen=True, kw_only=True)
class SanTextPlus(TextMechanism):
    """SanText for rare tokens; frequent tokens mostly stay unchanged (Yue et al. 2021).

    The list of sensitive tokens is public. Other tokens may be released unchanged.
    """

    epsilon: float = epsilon_setting(14.0, _STEPS, "in 1/distance")
    p: float = setting(
        0.3,
        "Chance that a token that is not sensitive is replaced",
        low=1e-6,
        high=1,
        paper="as the authors run it",
    )
    sensitive: float = setting(
        0.9,
        "Share of tokens that are sensitive, the rarest first",
        low=1e-6,
        high=1,
        paper="as the authors run it",
    )
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> _PlusPrivatizer:
        """Build the object that replaces an encoder's tokens, with draws from `rng`."""
        if not 0 < self.p <= 1:
            raise InvalidInputError(f"p must lie in (0, 1], got {self.p!r}.")
        return _PlusPrivatizer(self, encoder, rng)


class _PlusPrivatizer:
    """Replaces sensitive tokens as SanText does, and the others only with probability p."""

    def __init__(
        self, mechanism: SanTextPlus, encoder: WhiteBoxEncoder, rng: np.random.Generator
    ) -> None:
        self.encoder, self._rng, self._p = encoder, rng, mechanism.p
        self._is_sensitive = sensitive_tokens(encoder, mechanism.sensitive, mechanism.candidates)
        self.ids = candidate_ids(encoder, mechanism.candidates)
        weights = partial(santext_log_weights, epsilon=check_epsilon(mechanism.epsilon))
        outputs = self.ids[self._is_sensitive[self.ids]]
        self._inner = ExponentialPrivatizer(encoder, outputs, weights, rng=rng)

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw replacements for all sensitive tokens and some others; return (m,) token ids."""
        token_ids = np.asarray(token_ids, np.int64)
        is_drawn = self._rng.random(len(token_ids)) < self._p
        is_drawn |= self._is_sensitive[token_ids]
        changed = token_ids.copy()
        changed[is_drawn] = self._inner.tokens(token_ids[is_drawn])
        return changed

    def precompute(self, token_ids: NDArray[np.int64]) -> None:
        """Compute and store what `chances` needs for the given tokens."""
        self._inner.precompute(token_ids)

    def chances(
        self, token_ids: NDArray[np.int64], released: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Compute P[y | x] of (m,) tokens x and (Y,) tokens y, (m, Y); by default all y."""
        token_ids = np.asarray(token_ids, np.int64)
        asked = self.ids if released is None else np.asarray(released, np.int64)
        found = self._inner.chances(token_ids, asked)
        is_open = ~self._is_sensitive[token_ids]
        found[is_open] *= self._p
        found[is_open[:, None] & (token_ids[:, None] == asked)] += 1 - self._p
        return found


def sensitive_tokens(
    encoder: WhiteBoxEncoder, share: float, candidates: str = "regular"
) -> NDArray[np.bool_]:
    """Return a mask over the encoder's tokens: True for those that are sensitive (rare).

    The rarest `share` of the candidates is sensitive, at least one, and so is every candidate that
    no bundled sentence holds and every token that is no candidate, such as [UNK]. Among equally
    rare tokens, the later ones are.
    """
    ids = candidate_ids(encoder, candidates)
    counts = _count_tokens(encoder)[ids]
    n_sensitive = max(1, int(np.ceil(share * len(ids) - 1e-9)))
    frequent = np.argsort(-counts, kind="stable")[: len(ids) - n_sensitive]
    found = np.ones(len(encoder.tokens), bool)
    found[ids[frequent[counts[frequent] > 0]]] = False
    return found


_COUNTS: dict[str, NDArray[np.int64]] = {}


def _count_tokens(encoder: WhiteBoxEncoder) -> NDArray[np.int64]:
    """Count each token of an encoder in some bundled sentences, once per process."""
    if encoder.fingerprint not in _COUNTS:
        sentences = bundled_sentences()
        some = sentences[:: max(1, len(sentences) // _N_COUNTED)]
        ids = [i for row in encoder.token_ids(some) for i in row]
        counted = np.bincount(np.array(ids, np.int64), minlength=len(encoder.tokens))
        _COUNTS[encoder.fingerprint] = counted.astype(np.int64)
    return _COUNTS[encoder.fingerprint]


def tem_gamma(epsilon: float, beta: float, n_tokens: int) -> float:
    """Return TEM's threshold γ = (2/ε)·ln((1−β)(|V|−1)/β), at least 0.

    Examples
    --------
    >>> round(tem_gamma(2.0, 0.5, 11), 6)  # ln(10)
    2.302585
    """
    if not 0 < beta < 1:
        raise InvalidInputError(f"beta must lie between 0 and 1, got {beta!r}.")
    inner = (1 - beta) * (n_tokens - 1) / beta
    return max(0.0, 2 / epsilon * math.log(inner)) if inner > 0 else 0.0


def tem_log_weights(
    distances: NDArray[np.float64], *, epsilon: float, gamma: float
) -> NDArray[np.float64]:
    """Compute TEM's log-weights −½·ε·min(d, γ) of candidates from an array of distances d.

    Examples
    --------
    >>> tem_log_weights(np.array([[0.0, 1.5, 9.0]]), epsilon=2.0, gamma=3.0).tolist()
    [[-0.0, -1.5, -3.0]]
    """
    return -0.5 * epsilon * np.minimum(distances, gamma)


@dataclass(frozen=True, kw_only=True)
class TEM(TextMechanism):
    """Replaces every token by one drawn with P ∝ exp(−½·ε·min(distance, γ)) (Carvalho 2023)."""

    epsilon: float = epsilon_setting(14.0, _STEPS, "in 1/distance")
    beta: float = setting(
        0.001,
        "Chance that a replacement lies beyond γ",
        low=1e-12,
        high=0.999,
        paper="Carvalho et al. (2023)",
    )
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def gamma(self, n_tokens: int) -> float:
        """Compute the distance threshold γ for a number of candidate tokens."""
        return tem_gamma(check_epsilon(self.epsilon), self.beta, n_tokens)

    def privatizer(
        self, encoder: WhiteBoxEncoder, rng: np.random.Generator
    ) -> ExponentialPrivatizer:
        """Build the object that replaces an encoder's tokens, with draws from `rng`."""
        ids = candidate_ids(encoder, self.candidates)
        gamma = self.gamma(len(ids))
        weights = partial(tem_log_weights, epsilon=self.epsilon, gamma=gamma)
        return ExponentialPrivatizer(encoder, ids, weights, rng=rng)
