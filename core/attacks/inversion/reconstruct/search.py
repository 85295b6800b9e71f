"""Hill climbing for sentences: encode the most promising edits, best first, many at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from leakscope.core.attacks.inversion.reconstruct.edits import (
    Edit,
    Expansion,
    Prior,
    Proposer,
    Step,
    apply_edits,
)
from leakscope.core.attacks.inversion.reconstruct.language_model import LanguageModel
from leakscope.core.attacks.inversion.reconstruct.start import WordPosterior
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.vectors import unit


class Candidate(NamedTuple):
    """A sentence to encode, with its parent, the edit, and the predicted value."""

    tokens: NDArray[np.int32]
    parent: Step | None = None
    edit: Edit | None = None
    foreseen: float = math.nan


_Waiting = tuple[float, int, Step, Edit | NDArray[np.int32], float]
"""A queue entry: minus the predicted value, a unique number, the parent sentence, its edit or the
edited sentence, and the value predicted without the correction for the edit's word."""

_SAME = 0.9998
"""Cosine from which two texts are the same to an encoder that computes in half precision."""

_EXPANDED = 2
"""The most states whose edits are proposed in a round."""

_LEARNED = 1.0
"""The weight of a token's mean prediction error."""

_BARREN, _SHAKEN = 3, 6
"""Restarts in a row without gain after which a search ends, and sentences of each restart."""


@dataclass(frozen=True)
class Plan:
    """The budget of a search: queries, width, states and patience.

    Attributes
    ----------
    n_queries : int
        Texts that may be encoded for each vector.
    width : int
        Queries of a round for each vector.
    n_states : int
        Sentences improved in parallel.
    patience : int
        Rounds without gain after which it ends.
    """

    n_queries: int
    width: int
    n_states: int
    patience: int


@dataclass(eq=False)
class SearchState:
    """The state of the search for the sentence of one vector."""

    target: NDArray[np.float32]
    """The unit vector under attack."""
    starts: list[NDArray[np.int32]]
    posterior: WordPosterior
    prior: Prior
    states: list[Step] = field(default_factory=list)
    best: Step | None = None
    trail: list[tuple[int, Step]] = field(default_factory=list)
    """Each new best sentence, with the number of queries so far."""
    first: NDArray[np.int32] = field(init=False)
    """The answer without a query."""
    n_queries: int = 0
    n_idle: int = 0
    n_barren: int = 0
    """Restarts in a row without a better sentence."""
    is_over: bool = False
    _last_peak: Step | None = None
    _tried: set[bytes] = field(default_factory=set)
    _waiting: list[_Waiting] = field(default_factory=list)
    _moves: list[_Waiting] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)
    _prediction_errors: dict[int, tuple[float, int]] = field(default_factory=dict)
    """By token, the total prediction error of edits that insert it, and their number."""

    def __post_init__(self) -> None:
        """Remember the first sentence, since restarts replace `starts`."""
        self.first = self.starts[0]

    def unexpanded(self) -> list[Step]:
        """Return the best few encoded sentences whose edits were not proposed yet."""
        return [step for step in self.states if not step.is_expanded][:_EXPANDED]

    def queue_edits(self, step: Step, expansion: Expansion) -> None:
        """Queue the edits and moves proposed for an encoded sentence."""
        step.is_expanded = True
        for queue, found in ((self._waiting, expansion.edits), (self._moves, expansion.moves)):
            for gain, edit in found:
                self._push(queue, step, edit, step.value + gain)

    def _push(
        self, queue: list[_Waiting], step: Step, edit: Edit | NDArray[np.int32], value: float
    ) -> None:
        """Push an edit of a sentence, or the edited tokens, onto a queue by its corrected value."""
        foreseen = value + self._correction(edit)
        heappush(queue, (-foreseen, next(self._numbers), step, edit, value))

    def _correction(self, edit: Edit | NDArray[np.int32]) -> float:
        """Return how to correct an edit's predicted value, from past errors with its token."""
        if isinstance(edit, Edit) and len(edit.tokens) == 1:
            total, n = self._prediction_errors.get(edit.tokens[0], (0.0, 0))
            return _LEARNED * total / (n + 1)
        return 0.0

    def next_round(self, plan: Plan) -> list[Candidate]:
        """Choose the untried sentences to encode in the next round, with parent and edit."""
        room = min(plan.width, plan.n_queries - self.n_queries)
        if not self.states:
            return [Candidate(tokens) for tokens in self.starts if self._mark_untried(tokens)][
                :room
            ]
        n_moves = room // 4
        chosen = self._pop_untried(self._moves, n_moves)
        chosen += self._pop_untried(self._waiting, room - len(chosen))
        chosen += self._pop_untried(self._moves, room - len(chosen))
        return chosen

    def _mark_untried(self, tokens: NDArray[np.int32]) -> bool:
        """Mark a sentence as tried; return whether it is nonempty and was not tried before."""
        key = tokens.tobytes()
        is_new = len(tokens) > 0 and key not in self._tried
        self._tried.add(key)
        return is_new

    def _pop_untried(self, queue: list[_Waiting], n: int) -> list[Candidate]:
        """Take up to n untried sentences from a queue, the most promising first."""
        chosen: list[Candidate] = []
        while queue and len(chosen) < n:
            foreseen, _, step, edit, value = heappop(queue)
            if (
                value + self._correction(edit) < -foreseen - 1e-6
            ):  # the correction has changed since it was queued
                self._push(queue, step, edit, value)
                continue
            own = edit if isinstance(edit, Edit) else None
            tokens = edit.of(step.tokens) if isinstance(edit, Edit) else edit
            if self._mark_untried(tokens):
                chosen.append(Candidate(tokens, step, own, value))
        return chosen

    def update(self, tried: list[tuple[Candidate, Step]], plan: Plan) -> None:
        """Update the best sentence, states and queues with the sentences just encoded."""
        self.n_queries += len(tried)
        before = -np.inf if self.best is None else self.best.value
        found = sorted((step for _, step in tried), key=lambda step: -step.value)
        if found and found[0].value > before:
            self.best = found[0]
            self.trail.append((self.n_queries, found[0]))
        top = max((state.value for state in self.states), default=-np.inf)
        gained = bool(found) and found[0].value > top + 1e-5
        self.n_idle = 0 if gained else self.n_idle + 1
        self.states = sorted([*self.states, *found], key=lambda s: -s.value)[: plan.n_states]
        self._learn_from_edits(tried)
        is_found = self.best is not None and self.best.cosine > _SAME
        is_spent = self.n_queries >= plan.n_queries or is_found
        if not is_spent and (not tried or self.n_idle >= plan.patience):
            self._restart(before_all=self.best)
        self.is_over = self.is_over or is_spent

    def _restart(self, before_all: Step | None) -> None:
        """Restart from perturbed copies of the best sentence; end if that no longer helps."""
        self.n_barren = 0 if before_all is not self._last_peak else self.n_barren + 1
        self._last_peak = before_all
        if before_all is None or self.n_barren >= _BARREN:
            self.is_over = True
            return
        rng = np.random.default_rng([self.n_queries, len(before_all.tokens)])
        self.starts = [perturbed(before_all.tokens, rng) for _ in range(_SHAKEN)]
        self.states, self._waiting, self._moves, self.n_idle = [], [], [], 0

    def _learn_from_edits(self, tried: list[tuple[Candidate, Step]]) -> None:
        """Record the edits' prediction errors, and queue combinations of edits that helped."""
        parents: dict[int, Step] = {}
        for (_, parent, edit, foreseen), step in tried:
            if parent is None or edit is None or edit.to >= 0:
                continue
            if len(edit.tokens) == 1:
                total, n = self._prediction_errors.get(edit.tokens[0], (0.0, 0))
                self._prediction_errors[edit.tokens[0]] = (total + step.value - foreseen, n + 1)
            if step.value > parent.value:
                parent.gained.append((edit, step))
                parents[id(parent)] = parent
        for parent in parents.values():
            for value, tokens in combined_edits(self.target, parent, parent.gained):
                self._push(self._waiting, parent, tokens, value)


def perturbed(tokens: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """Return a perturbed sentence: a quarter of its tokens dropped, its two parts maybe swapped."""
    kept = tokens[rng.random(len(tokens)) > 0.25]
    if len(kept) > 3 and rng.random() < 0.5:
        cut = int(rng.integers(1, len(kept)))
        kept = np.concatenate([kept[cut:], kept[:cut]])
    return kept if len(kept) else tokens[:1]


def hill_climb(
    encoder: Encoder,
    model: LanguageModel,
    proposer: Proposer,
    searches: Sequence[SearchState],
    plan: Plan,
    on_round: Callable[[], None],
) -> None:
    """Run the searches of several vectors in place until all are over, sharing encoder batches."""
    products = ThreadpoolController()
    while going := [search for search in searches if not search.is_over]:
        on_round()
        fresh = [(search, step) for search in going for step in search.unexpanded()]
        with products.limit(
            limits=1, user_api="blas"
        ):  # for small arrays, threads spin longer than they work
            expansions = proposer(
                [(q.target, q.posterior.tokens, q.prior, step) for q, step in fresh]
            )
        for (search, step), expansion in zip(fresh, expansions, strict=True):
            search.queue_edits(step, expansion)
        rounds = [search.next_round(plan) for search in going]
        steps = iter(_encode_round(encoder, model, going, rounds))
        for search, tried in zip(going, rounds, strict=True):
            search.update([(one, next(steps)) for one in tried], plan)


def _encode_round(
    encoder: Encoder,
    model: LanguageModel,
    searches: Sequence[SearchState],
    rounds: Sequence[list[Candidate]],
) -> list[Step]:
    """Encode the sentences of a round, each distinct text once, and compute their values."""
    sentences = [one.tokens for tried in rounds for one in tried]
    if not sentences:
        return []
    asking = [q for q, tried in zip(searches, rounds, strict=True) for _ in tried]
    texts = [model.lexicon.text(tokens) for tokens in sentences]
    places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    vectors = unit(encoder.encode(list(places)))[[places[text] for text in texts]]
    cosines = np.einsum("ij,ij->i", vectors, np.stack([q.target for q in asking]))
    chances = model.log_probabilities(sentences)
    return [
        Step(tokens, vector, cosine, chance, cosine + q.prior.of(chance, len(tokens)))
        for q, tokens, vector, cosine, chance in zip(
            asking, sentences, vectors, cosines.tolist(), chances.tolist(), strict=True
        )
    ]


def unit_vectors(vectors: Vectors) -> Vectors:
    """Return vectors (n, d) scaled to unit length, float32; raise for one of length zero.

    Raises
    ------
    InvalidInputError
        One has the length zero; the message names its row.
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (norms > 0).all():
        raise InvalidInputError(
            f"vectors contain one of length zero, first in row {int(np.argmin(norms[:, 0] > 0))}, "
            "which is not the vector of a text. Remove that row."
        )
    found: Vectors = (vectors / norms).astype(np.float32)
    return found


_WEIGHED, _BEGUN, _JOINED = 12, 3, 8
"""Edits considered, edits that a combination starts from, and most edits of a combination."""


def combined_edits(
    target: NDArray[np.float32], parent: Step, children: Sequence[tuple[Edit, Step]]
) -> Iterator[tuple[float, NDArray[np.int32]]]:
    """Yield a sentence's tokens after combinations of its successful edits, with predicted values.

    The vector of a combination is predicted from the single edits: w + Σ (v − w), where w is the
    vector of the unedited sentence and v that after one edit. A combination starts with one of the
    best edits and greedily adds the edit of the highest predicted value while that improves it.
    """
    best = sorted(children, key=lambda child: -child[1].value)[:_WEIGHED]
    edits = [edit for edit, _ in best]
    changes = np.stack([step.vector - parent.vector for _, step in best])
    priors = np.array([_prior(step) - _prior(parent) for _, step in best])
    apart = [[apply_edits(parent.tokens, a, b) is not None for b in edits] for a in edits]
    for begun in range(min(_BEGUN, len(edits))):
        chosen, open_ = [begun], np.array(apart[begun])
        vector, prior = parent.vector + changes[begun], _prior(parent) + priors[begun]
        value = best[begun][1].value
        while len(chosen) < _JOINED and open_.any():
            foreseen = vector + changes
            cosines = foreseen @ target / np.linalg.norm(foreseen, axis=1)
            values = np.where(open_, cosines + prior + priors, -np.inf)
            k = int(values.argmax())
            if values[k] <= value:
                break
            value, vector, prior = float(values[k]), foreseen[k], prior + priors[k]
            chosen.append(k)
            open_ &= apart[k]
            together = apply_edits(parent.tokens, *(edits[i] for i in chosen))
            assert together is not None
            yield value, together


def _prior(step: Step) -> float:
    """Return the prior value of an encoded sentence: its value less its cosine."""
    return step.value - step.cosine
