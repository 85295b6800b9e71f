"""Decode released tokens by Bayes' rule from the known mechanism and a token prior.

A mechanism's law P[y | x] is public. An attacker who also knows token and bigram frequencies
decodes the most probable tokens x given the released y, not y itself. Extends Qu et al. (2021),
§4.2, whose attacker takes each released token for the input token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.attacks.fitted import bind, check_fitted
from leakscope.core.attacks.inversion.released_tokens.released import (
    rows_of_tokens,
    words_of_tokens,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.lookup import lookup_sorted
from leakscope.core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from leakscope.core.results import Recovery
from leakscope.core.text import Vocabulary

FLOOR = 0.1
"""The count of a token that does not occur in the attacker's texts."""


@dataclass(frozen=True)
class TokenPrior:
    """An attacker's prior over tokens: unigram and bigram counts.

    Attributes
    ----------
    counts : float64 array (T,)
        Of each of the encoder's tokens.
    follows : csr array (T, T)
        How often the second token follows the first.
    weight : float
        The weight of the bigram probability against the unigram probability.
    """

    counts: NDArray[np.float64]
    follows: sparse.csr_array
    weight: float = 0.7

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], n_tokens: int) -> TokenPrior:
        """Count the tokens and bigrams of texts, given as rows of token ids, and return the prior.

        Raises
        ------
        InvalidInputError
            There is no token to count.
        """
        flat = np.array([i for row in rows for i in row], np.int64)
        if not len(flat):
            raise InvalidInputError("The attacker's texts contain no token. Give other texts.")
        counts = np.bincount(flat, minlength=n_tokens).astype(np.float64)
        pairs = [(a, b) for row in rows for a, b in pairwise(row)]
        first, second = np.array(pairs, np.int64).reshape(-1, 2).T
        ones = np.ones(len(first))
        follows = sparse.csr_array((ones, (first, second)), shape=(n_tokens, n_tokens))
        follows.sum_duplicates()
        return cls(counts, follows)

    def without(self, rows: Sequence[Sequence[int]]) -> TokenPrior:
        """Return a prior without the counts of some texts, given as rows of token ids."""
        if not any(rows):
            return self
        own = TokenPrior.of(rows, len(self.counts))
        follows = sparse.csr_array(self.follows - own.follows)
        return TokenPrior(self.counts - own.counts, follows, self.weight)

    @property
    def log(self) -> NDArray[np.float64]:
        """The log-probability of each token, floored for unseen tokens."""
        shares = np.maximum(self.counts, FLOOR)
        return np.asarray(np.log(shares / shares.sum()))

    def log_after(self, before: NDArray[np.int64], tokens: NDArray[np.int64]) -> Any:
        """Return log P[token | previous token], an (a, b) array for a previous and b tokens."""
        share = np.exp(self.log[tokens])[None, :]
        seen = self.follows[before][:, tokens].toarray()
        total = np.maximum(self.counts[before], 1.0)[:, None]
        return np.log(self.weight * seen / total + (1 - self.weight) * share)


READINGS = ("literal", "token", "sequence")
"""Ways to decode: released tokens unchanged; the most probable token each; the best sequence."""

N_CANDIDATES = 40
"""The most probable input tokens that are considered for each released token."""
N_SIMULATED = 300_000
"""Draws from which the law of a mechanism is estimated that cannot compute it."""
_LEAST_DRAWS = 8
_SHARED_DRAWS = 20_000.0
"""The weight, in draws, of the law shared by all tokens against a token's own draws."""
_BLOCK, _RELEASED = 256, 512
"""Input tokens and released tokens whose law is in memory at a time."""


class TokenMechanism(Protocol):
    """A mechanism that replaces tokens; it may compute P[y | x] by `chances(ids, released)`."""

    ids: NDArray[np.int64]

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw a released token for each of m input tokens."""
        ...


@dataclass(frozen=True)
class Candidates:
    """The candidate input tokens of each released token, with log-probabilities.

    Attributes
    ----------
    released : int64 array (Y,)
        Released tokens, ascending.
    tokens : int64 array (Y, K)
        The most probable input tokens, in any order.
    log_law : float64 array (Y, K)
        log P[released | token]; −∞ where it cannot be.
    """

    released: NDArray[np.int64]
    tokens: NDArray[np.int64]
    log_law: NDArray[np.float64]


@dataclass(frozen=True)
class Draws:
    """An attacker's own samples of a mechanism: input tokens and what each became.

    Frequent tokens are drawn more often.

    Attributes
    ----------
    tokens : int64 array (n,)
        The input tokens.
    drawn : int64 array (n,)
        The released token of each.
    """

    tokens: NDArray[np.int64]
    drawn: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        change: TokenMechanism,
        inputs: NDArray[np.int64],
        prior: TokenPrior,
        n_simulated: int = N_SIMULATED,
    ) -> Draws:
        """Run the mechanism often on each of m input tokens, about `n_simulated` times in all."""
        share = np.sqrt(np.maximum(prior.counts, FLOOR))
        of_known = share[prior.counts > 0].sum()
        n_draws = np.maximum(_LEAST_DRAWS, (n_simulated * share[inputs] / of_known).astype(int))
        tokens = np.repeat(inputs, n_draws)
        return cls(tokens, change.tokens(tokens))

    def completed(
        self, change: TokenMechanism, inputs: NDArray[np.int64], prior: TokenPrior, n_simulated: int
    ) -> Draws:
        """Return these samples, with newly drawn ones for input tokens that they lack."""
        missing = np.setdiff1d(inputs, self.tokens)
        if not len(missing):
            return self
        more = Draws.of(change, missing, prior, n_simulated)
        both = ((self.tokens, more.tokens), (self.drawn, more.drawn))
        return Draws(*map(np.concatenate, both))


def candidates(
    change: TokenMechanism,
    released: NDArray[np.int64],
    prior: TokenPrior,
    *,
    n_candidates: int = N_CANDIDATES,
    n_simulated: int = N_SIMULATED,
    draws: Draws | None = None,
) -> Candidates:
    """Find the most probable input tokens of each released token by Bayes' rule, P[y | x]·P[x].

    The law is the mechanism's own where it can compute it; otherwise it is estimated from samples.

    Parameters
    ----------
    draws : Draws, optional
        Existing samples; only tokens that they lack are sampled.
    """
    released = np.unique(released)
    inputs = np.union1d(np.flatnonzero(prior.counts), released)
    prior_log, k = prior.log[inputs][:, None], min(n_candidates, len(inputs))
    if not hasattr(change, "chances"):
        seen = draws or Draws.of(change, inputs, prior, n_simulated)
        seen = seen.completed(change, inputs, prior, n_simulated)
        best, log_law = _most_probable(_estimated_law(inputs, released, seen), prior_log, k)
        return Candidates(released, inputs[best], log_law)
    parts = [
        _most_probable(_exact_law(change, inputs, some), prior_log, k)
        for some in np.split(released, range(_RELEASED, len(released), _RELEASED))
    ]
    best, log_law = map(np.concatenate, zip(*parts, strict=True))
    return Candidates(released, inputs[best], log_law)


def _most_probable(
    law: NDArray[np.float32], prior_log: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Find each released token's k most probable inputs: (Y, k) positions and log P[y | x]."""
    with np.errstate(divide="ignore"):
        log_law = np.log(law)
    best = np.argpartition(-(log_law + prior_log), k - 1, axis=0)[:k].T
    return best, np.take_along_axis(log_law.T, best, 1).astype(np.float64)


def _exact_law(
    change: Any, inputs: NDArray[np.int64], released: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Compute P[y | x] by the mechanism's own `chances`, a matrix of inputs by released tokens."""
    law = np.zeros((len(inputs), len(released)), np.float32)
    for start in range(0, len(inputs), _BLOCK):
        law[start : start + _BLOCK] = change.chances(inputs[start : start + _BLOCK], released)
    return law


def _estimated_law(
    inputs: NDArray[np.int64], released: NDArray[np.int64], draws: Draws
) -> NDArray[np.float32]:
    """Estimate P[y | x] from samples as a matrix, smoothed by a law that all tokens share.

    Few draws say little about a token, so `_SHARED_DRAWS` pseudo-draws are added. They follow what
    most tokens have in common under noise in many dimensions (Asghar et al. 2024): a token stays
    itself, or becomes one of the tokens that any token becomes.
    """
    rows, drawn = np.searchsorted(inputs, draws.tokens), draws.drawn
    n_draws = np.bincount(rows, minlength=len(inputs))
    is_back = drawn == draws.tokens
    place, is_asked = lookup_sorted(released, drawn)
    law = np.zeros((len(inputs), len(released)), np.float32)
    np.add.at(law, (rows[is_asked], place[is_asked]), 1.0)
    back = np.bincount(rows, is_back, len(inputs)) + is_back.mean()
    back /= n_draws + 1
    strange = np.bincount(place[is_asked & ~is_back], minlength=len(released)) + 1.0
    strange /= (~is_back).sum() + len(released)
    law += (_SHARED_DRAWS * (1 - back))[:, None] * strange
    own = np.searchsorted(inputs, released)
    law[own, np.arange(len(released))] += _SHARED_DRAWS * back[own]
    return np.asarray(law / (n_draws[:, None] + _SHARED_DRAWS), np.float32)


def decode(
    tokens: NDArray[np.int64],
    law: NDArray[np.float64],
    prior: TokenPrior,
    *,
    in_sequence: bool,
) -> NDArray[np.int64]:
    """Return the most probable tokens (m,) of a text, chosen among K candidates at each position.

    Parameters
    ----------
    tokens : int64 array (m, K)
        Candidates at each place.
    law : float64 array (m, K)
        log P[what was released | candidate].
    in_sequence : bool
        Which token follows which counts too, by the algorithm of Viterbi (1967); else each token
        is read by itself.
    """
    places = np.arange(len(tokens))
    if not in_sequence or not len(tokens):
        return np.asarray(tokens[places, (law + prior.log[tokens]).argmax(1)])
    score, back = law[0] + prior.log[tokens[0]], []
    for before, now, own in zip(tokens[:-1], tokens[1:], law[1:], strict=True):
        paths = score[:, None] + prior.log_after(before, now)
        back.append(paths.argmax(0))
        score = paths.max(0) + own
    best = [int(score.argmax())]
    for pointers in reversed(back):
        best.append(int(pointers[best[-1]]))
    return np.asarray(tokens[places, best[::-1]])


def choose_reading(
    truth: Sequence[NDArray[np.int64]],
    readings: Sequence[str],
    read: Callable[[str], list[NDArray[np.int64]]],
) -> tuple[str, dict[str, float]]:
    """Choose the reading that recovers most tokens of held texts; also return each one's share.

    Parameters
    ----------
    truth : sequence of int64 arrays (m,)
        The tokens of each text.
    readings : sequence of str
        Of `READINGS`; the first is taken where no text is held.
    read : callable
        Returns the tokens that a reading finds in each text.
    """
    shares = dict.fromkeys(readings[:1], 0.0)
    if sum(map(len, truth)):
        whole = np.concatenate(truth)
        shares = {each: float((np.concatenate(read(each)) == whole).mean()) for each in readings}
    return max(shares, key=lambda name: shares[name]), shares


@dataclass
class TokenDecoder:
    """The base of attacks that decode the tokens of released texts by the best of several readings.

    The reading that recovers most tokens of held-out texts is chosen in `fit`.

    Parameters
    ----------
    vocabulary_ : Vocabulary
        The words that are answered.
    """

    readings: ClassVar[Sequence[str]] = READINGS

    vocabulary_: Vocabulary
    n_candidates: int = field(default=N_CANDIDATES, kw_only=True)
    reading_: str = field(default="", init=False)
    shares_: dict[str, float] = field(default_factory=dict, init=False)
    """The share of the held texts' tokens that each reading recovered."""

    def fit(
        self,
        encoder: Any,
        known: Sequence[str],
        held: Sequence[str],
        prior: TokenPrior | None = None,
    ) -> Self:
        """Count the tokens of the known texts; release the held ones and choose the best reading.

        Parameters
        ----------
        encoder : ReleasedTokens or ReleasedTokenVectors
            What is released.
        prior : TokenPrior, optional
            Of the known texts, where they were counted before.

        Raises
        ------
        InvalidInputError
            The known texts hold no token.
        """
        opened = encoder.encoder
        self.prior_ = prior or TokenPrior.of(opened.token_ids(known), len(opened.tokens))
        bind(self, encoder, self.vocabulary_)
        release = self._prepare(encoder)
        truth = [np.array(row, np.int64) for row in (opened.token_ids(held) if held else ())]
        read = self._reader_of([release(row) for row in truth])
        self.reading_, self.shares_ = choose_reading(truth, self.readings, read)
        return self

    def _prepare(self, encoder: Any) -> Callable[[NDArray[np.int64]], NDArray[Any]]:
        """Set what decoding needs; return the function that releases the attacker's tokens (m,)."""
        raise NotImplementedError

    def _rows(self, encoder: Any, vectors: Vectors) -> Sequence[NDArray[Any]]:
        """Unpack vectors of released texts into one row of released tokens per text."""
        raise NotImplementedError

    def _reader_of(self, rows: Sequence[NDArray[Any]]) -> Callable[[str], list[NDArray[np.int64]]]:
        """Return a function from a reading's name to the tokens decoded from each row."""
        raise NotImplementedError

    def read(self, rows: Sequence[NDArray[Any]]) -> list[NDArray[np.int64]]:
        """Decode the tokens (m,) of each released row by the chosen reading."""
        return self._reader_of(rows)(self.reading_)

    def tokens(self, encoder: Encoder, vectors: Vectors) -> list[NDArray[np.int64]]:
        """Unpack the vectors of released texts and decode the tokens (m,) of each."""
        return self.read(self._rows(encoder, check_fitted(self, encoder, vectors)))

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Decode the vectors of released texts; return an answer each, the words of its tokens."""
        opened: WhiteBoxEncoder = encoder.encoder  # type: ignore[attr-defined]
        read = self.tokens(encoder, vectors)
        on_progress(1.0, f"Decoded {len(read):,} texts")
        return [words_of_tokens(opened, row, self.vocabulary_) for row in read]


@dataclass
class PosteriorReader(TokenDecoder):
    """An attack that decodes released tokens by the mechanism's law and a token prior.

    It chooses the reading (`READINGS`) that recovers most tokens of its own held-out texts.

    Parameters
    ----------
    change : object
        The mechanism, with draws of the attacker's own.
    """

    change: TokenMechanism
    n_simulated: int = N_SIMULATED
    draws_: Draws | None = field(default=None, init=False)
    """Samples for the known texts' tokens, drawn once if the mechanism cannot compute its law."""

    def _prepare(self, encoder: Any) -> Callable[[NDArray[np.int64]], NDArray[Any]]:
        """Precompute the mechanism's law if it can; return the function that draws from it."""
        self.draws_ = None
        if hasattr(self.change, "precompute"):
            self.change.precompute(np.flatnonzero(self.prior_.counts))
        return self.change.tokens

    def _rows(self, encoder: Any, vectors: Vectors) -> list[NDArray[np.int64]]:
        """Unpack vectors of `ReleasedTokens` into each text's released token ids."""
        return rows_of_tokens(vectors)

    def _reader_of(self, rows: Sequence[NDArray[Any]]) -> Callable[[str], list[NDArray[np.int64]]]:
        """Return a function from a reading's name to the tokens decoded from each row."""
        return partial(self._read, rows)

    def _read(self, rows: Sequence[NDArray[Any]], reading: str) -> list[NDArray[np.int64]]:
        """Decode the input tokens of each row of released tokens by the named reading."""
        if reading == "literal" or not sum(map(len, rows)):
            return list(rows)
        if self.draws_ is None and not hasattr(self.change, "chances"):
            known = np.flatnonzero(self.prior_.counts)
            self.draws_ = Draws.of(self.change, known, self.prior_, self.n_simulated)
        found = candidates(
            self.change,
            np.concatenate(rows),
            self.prior_,
            draws=self.draws_,
            n_candidates=self.n_candidates,
            n_simulated=self.n_simulated,
        )
        in_sequence = reading == "sequence"
        places = (np.searchsorted(found.released, row) for row in rows)
        return [
            decode(found.tokens[own], found.log_law[own], self.prior_, in_sequence=in_sequence)
            for own in places
        ]
