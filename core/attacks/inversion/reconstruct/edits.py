"""Edits of a sentence, and the prediction of which are worth encoding."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.reconstruct.effects import Effects
from leakscope.core.attacks.inversion.reconstruct.language_model import LanguageModel
from leakscope.core.attacks.inversion.reconstruct.tokens import BEGIN, END, N_SPECIAL

_GIVEN_BACK = 3.0
"""The length bonus of a token in nats, up to the expected length."""


@dataclass(frozen=True)
class Prior:
    """The prior value of a sentence: log P plus a length bonus, scaled to cosines.

    Each token costs about five nats, so log P alone favours short sentences. Up to the expected
    length, the bonus gives most of that back.
    """

    weight: float
    """The value of a nat relative to the cosine."""
    n_expected: float
    """Tokens."""

    def of(self, log_probability: float, n: int) -> float:
        """Return the prior value of a sentence of n tokens, given its log-probability."""
        return self.weight * (log_probability + self._length_bonus(n))

    def length_gain(self, n: int, k: int) -> float:
        """Return the change of the length bonus when a sentence of n tokens gets k more."""
        return self.weight * (self._length_bonus(n + k) - self._length_bonus(n))

    def _length_bonus(self, n: int) -> float:
        """Return the length bonus of n tokens in nats; it stops growing at the expected length."""
        return _GIVEN_BACK * min(n, self.n_expected)


_PULLED, _STOP_TOKENS, _BESIDE, _LIKELY_TOKENS = 64, 100, 5, 20
_MOST_EDITS, _MOST_MOVES = 160, 60
_LONGEST_PHRASE = 5
_LONGEST_CUT, _MOST_CUTS = 8, 20
_FOLLOWED, _PAIRS_WEIGHED, _MOST_PAIRS = 8, 120, 40
_TRUST = 0.5
"""The share of the predicted change of the cosine that is used."""


@dataclass(eq=False, slots=True)
class Step:
    """An encoded sentence of the search, with its vector and value."""

    tokens: NDArray[np.int32]
    vector: NDArray[np.float32]
    cosine: float
    log_probability: float
    value: float
    """Cosine + log-prior value."""
    is_expanded: bool = False
    """Whether its edits are queued."""
    gained: list[tuple[Edit, Step]] = field(default_factory=list)
    """Its edits that were tried and improved it, except moves."""


class Edit(NamedTuple):
    """An edit of a sentence: tokens first … end − 1 are replaced by others, or moved.

    For a move, `to` is the position among the other tokens where the phrase is put.
    """

    first: int
    end: int
    tokens: tuple[int, ...] = ()
    to: int = -1

    def of(self, sentence: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the tokens of a sentence after the edit."""
        if self.to >= 0:
            rest = np.concatenate([sentence[: self.first], sentence[self.end :]])
            phrase = sentence[self.first : self.end]
            return np.concatenate([rest[: self.to], phrase, rest[self.to :]])
        new = np.array(self.tokens, dtype=np.int32)
        return np.concatenate([sentence[: self.first], new, sentence[self.end :]])


def apply_edits(sentence: NDArray[np.int32], *edits: Edit) -> NDArray[np.int32] | None:
    """Return a sentence after several edits at once; None if two overlap or one is a move."""
    if any(edit.to >= 0 for edit in edits):
        return None
    ordered = sorted(edits, key=lambda edit: (edit.first, edit.end))
    for left, right in pairwise(ordered):
        if left.end > right.first or (left.first, left.end) == (right.first, right.end):
            return None
    for edit in reversed(ordered):
        sentence = edit.of(sentence)
    return sentence


@dataclass(frozen=True)
class Expansion:
    """The edits and moves of a sentence that are worth encoding, with predicted gains."""

    edits: list[tuple[float, Edit]]
    moves: list[tuple[float, Edit]]


class GainPredictor:
    """Predicts the gain in cosine of a sentence's edits from token effects, without encoding.

    An edit moves the sentence's vector h by d = ± Σ b_w / √n, so that the cosine with the target e
    becomes (e·h + e·d) / ‖h + d‖; the share `_TRUST` of the change is counted on.
    """

    def __init__(self, effects: Effects, target: NDArray[np.float32], step: Step) -> None:
        self._effects, self._cosine = effects.vectors, step.cosine
        self._sides = np.stack([target, step.vector], axis=1)
        self._scale = np.float32(1 / np.sqrt(max(len(step.tokens), 1)))
        self._own = self._effects[step.tokens] * self._scale

    def _gain(
        self, toward: NDArray[np.float32], along: NDArray[np.float32], size: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the trusted gain in cosine of edits from their e·d, h·d and ‖d‖²."""
        length = np.sqrt(np.maximum(1 + 2 * along + size, 1e-6))
        gain: NDArray[np.float32] = _TRUST * ((self._cosine + toward) / length - self._cosine)
        return gain

    def singles(
        self, candidates: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Predict gains in cosine of m tokens' insertions and replacements, and of n deletions."""
        new, own = self._effects[candidates] * self._scale, self._own
        e, h = (new @ self._sides).T
        e_own, h_own = (own @ self._sides).T
        size, size_own = (new**2).sum(1), (own**2).sum(1)
        replaced = self._gain(
            e - e_own[:, None],
            h - h_own[:, None],
            size + size_own[:, None] - 2 * own @ new.T,
        )
        return self._gain(e, h, size), replaced, self._gain(-e_own, -h_own, size_own)

    def pairs(self, pairs: NDArray[np.int32]) -> NDArray[np.float32]:
        """Predict the gain in cosine of inserting each of m token pairs."""
        new = self._effects[pairs].sum(axis=1) * self._scale
        e, h = (new @ self._sides).T
        return self._gain(e, h, (new**2).sum(1))

    def cuts(self, cuts: NDArray[np.int32]) -> NDArray[np.float32]:
        """Predict the gain in cosine of deleting each of m phrases first … end − 1."""
        sums = np.concatenate([np.zeros((1, self._own.shape[1]), np.float32), self._own.cumsum(0)])
        gone = sums[cuts[:, 1]] - sums[cuts[:, 0]]
        e, h = (gone @ self._sides).T
        return self._gain(-e, -h, (gone**2).sum(1))


@dataclass(frozen=True)
class Proposer:
    """Proposes a sentence's best edits by token effects and the language model."""

    model: LanguageModel
    effects: Effects

    def __call__(
        self, states: Sequence[tuple[NDArray[np.float32], NDArray[np.int32], Prior, Step]]
    ) -> list[Expansion]:
        """Propose the edits worth encoding of several sentences, in parallel; one expansion each.

        Parameters
        ----------
        states : sequence of (unit vector under attack, likely tokens, prior, sentence)
        """
        if not states:
            return []
        missing = np.stack([target - step.cosine * step.vector for target, _, _, step in states])
        pulls = self.effects.pull(missing.astype(np.float32))
        # The slow parts release the interpreter lock.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(self._propose, *zip(*states, strict=True), pulls))

    def _propose(
        self,
        target: NDArray[np.float32],
        likely_tokens: NDArray[np.int32],
        prior: Prior,
        step: Step,
        pull: NDArray[np.float32],
    ) -> Expansion:
        """Propose the edits of one sentence; `pull` is how much each token is missing."""
        gains = GainPredictor(self.effects, target, step)
        tokens, candidates = step.tokens, self._candidates(step.tokens, likely_tokens, pull)
        likely = self.model.edit_scores(tokens, candidates)
        insert, replace, delete = gains.singles(candidates)
        n, m = len(tokens), len(candidates)
        values = np.concatenate(
            [
                (insert + prior.weight * likely.insert + prior.length_gain(n, 1)).ravel(),
                (replace + prior.weight * likely.replace).ravel(),
                delete + prior.weight * likely.delete + prior.length_gain(n, -1),
            ]
        )
        top = _highest(values, _MOST_EDITS)
        edits = list(zip(values[top].tolist(), _decode_edits(top, n, m, candidates), strict=True))
        edits += self._cuts(tokens, prior, gains) + self._pairs(tokens, prior, gains)
        edits.sort(key=lambda pair: -pair[0])
        return Expansion(edits[:_MOST_EDITS], self._moves(tokens, prior))

    def _pairs(
        self, tokens: NDArray[np.int32], prior: Prior, gains: GainPredictor
    ) -> list[tuple[float, Edit]]:
        """Propose insertions of two tokens that follow or precede their neighbours, with values."""
        after, before = self.model.followers, self.model.leaders
        whole = np.concatenate([[BEGIN], tokens, [END]])
        first = after[whole[:-1], :_FOLLOWED]
        ends = np.broadcast_to(before[whole[1:], None, :_BESIDE], (*first.shape, _BESIDE))
        second = np.concatenate([after[first, :_BESIDE], ends], axis=2)
        pair = np.stack(np.broadcast_arrays(first[:, :, None], second), axis=3).reshape(-1, 2)
        place = np.repeat(np.arange(len(first), dtype=np.int32), second[0].size)
        real = (pair >= N_SPECIAL).all(axis=1)
        pair, place = np.ascontiguousarray(pair[real]), place[real]
        if not len(pair):
            return []
        values = prior.weight * self.model.pair_scores(tokens, place, pair)
        values += prior.length_gain(len(tokens), 2)
        likely = _highest(values, _PAIRS_WEIGHED)
        pair, place = pair[likely], place[likely]
        values = values[likely] + gains.pairs(pair)
        return [
            (
                float(values[k]),
                Edit(int(place[k]), int(place[k]), (int(pair[k, 0]), int(pair[k, 1]))),
            )
            for k in _highest(values, _MOST_PAIRS)
        ]

    def _cuts(
        self, tokens: NDArray[np.int32], prior: Prior, gains: GainPredictor
    ) -> list[tuple[float, Edit]]:
        """Propose deletions of phrases of several tokens; return the best with predicted values."""
        n = len(tokens)
        cuts = [
            (i, i + k) for k in range(2, min(_LONGEST_CUT, n - 1) + 1) for i in range(n - k + 1)
        ]
        if not cuts:
            return []
        table = np.array(cuts, dtype=np.int32)
        values = prior.weight * self.model.cut_scores(tokens, table)
        values += [prior.length_gain(n, first - end) for first, end in cuts]
        values += gains.cuts(table)
        return [(float(values[at]), Edit(*cuts[at])) for at in _highest(values, _MOST_CUTS)]

    def _candidates(
        self, tokens: NDArray[np.int32], likely_tokens: NDArray[np.int32], pull: NDArray[np.float32]
    ) -> NDArray[np.int32]:
        """Choose the tokens to try as insertions and replacements in a sentence."""
        pulled = np.argpartition(-pull, min(_PULLED, len(pull) - 1))[:_PULLED]
        near = np.concatenate(
            [self.model.followers[tokens, :_BESIDE], self.model.leaders[tokens, :_BESIDE]]
        )
        found = np.unique(
            np.concatenate(
                [
                    pulled,
                    self.model.stop_tokens(_STOP_TOKENS),
                    near.ravel(),
                    likely_tokens[:_LIKELY_TOKENS],
                ]
            )
        )
        return found[found >= N_SPECIAL].astype(np.int32)

    def _moves(self, tokens: NDArray[np.int32], prior: Prior) -> list[tuple[float, Edit]]:
        """Propose moves of phrases; return the best by the language model, with values."""
        moves = _all_moves(len(tokens))
        if not len(moves):
            return []
        likely = prior.weight * self.model.move_scores(tokens, moves)
        return [
            (float(likely[at]), Edit(int(a), int(b), to=int(to)))
            for at in _highest(likely, _MOST_MOVES)
            for a, b, to in [moves[at]]
        ]


def _highest(values: NDArray[np.floating], n: int) -> NDArray[np.int64]:
    """Return the positions of at most n highest finite values, highest first, ties in order."""
    n_edges = min(n, len(values))
    top = np.sort(np.argpartition(-values, n_edges - 1)[:n_edges])
    ranked = top[np.argsort(-values[top], kind="stable")]
    finite: NDArray[np.int64] = ranked[np.isfinite(values[ranked])]
    return finite


def _decode_edits(
    places: NDArray[np.int64], n: int, m: int, candidates: NDArray[np.int32]
) -> list[Edit]:
    """Convert positions among all insertions, replacements and deletions to the edits they mean.

    Examples
    --------
    >>> for edit in _decode_edits(np.array([1, 4, 6]), n=1, m=2, candidates=np.array([7, 9])):
    ...     print(edit.first, edit.end, edit.tokens)
    0 0 (9,)
    0 1 (7,)
    0 1 ()
    """
    n_inserted, n_all = (n + 1) * m, (2 * n + 1) * m
    is_new, is_deleted = places < n_inserted, places >= n_all
    first, k = np.divmod(places - np.where(is_new, 0, n_inserted), max(m, 1))
    first = np.where(is_deleted, places - n_all, first)
    end = first + ~is_new
    words = candidates[np.where(is_deleted, 0, k)] if m else k
    return [
        Edit(at, to, () if empty else (word,))
        for at, to, word, empty in zip(
            first.tolist(), end.tolist(), words.tolist(), is_deleted.tolist(), strict=True
        )
    ]


_MOVES: dict[int, NDArray[np.int32]] = {}


def _all_moves(n: int) -> NDArray[np.int32]:
    """Return all distinct moves of phrases in a sentence of n tokens, one row each; cached."""
    if n not in _MOVES:
        # A move exchanges two phrases side by side, p … q − 1 and q … r − 1; one of them is short.
        moves = [
            (p, q, p + r - q)
            for p, q, r in combinations(range(n + 1), 3)
            if min(q - p, r - q) <= _LONGEST_PHRASE
        ]
        _MOVES[n] = np.array(moves, dtype=np.int32).reshape(-1, 3)
    return _MOVES[n]
