"""The search for a sentence: proposals that are worth a query, best first, many at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from core.attacks.inversion.reconstruct.edits import Edit, Expansion, Proposer, Step
from core.attacks.inversion.reconstruct.language_model import LanguageModel
from core.attacks.inversion.reconstruct.prior import Prior
from core.attacks.inversion.reconstruct.start import Heard
from core.attacks.inversion.reconstruct.unions import unions
from core.errors import InvalidInputError
from core.protocols import Encoder, Vectors
from core.vectors import unit

__all__ = ["Plan", "Quest", "climb", "directions"]


class Try(NamedTuple):
    """A sentence to encode, with the one that it came from, how, and the value foreseen."""

    tokens: NDArray[np.int32]
    parent: Step | None = None
    edit: Edit | None = None
    foreseen: float = math.nan


_Waiting = tuple[float, int, Step, Edit | NDArray[np.int32], float]
"""Minus the value foreseen, a number of its own, a sentence, its edit or what becomes of it, and
the value foreseen before anything was learned of the edit's word."""

_SAME = 0.9998
"""Cosine from which two texts are the same to an encoder that computes in half precision."""

_EXPANDED = 2
"""States of a round whose edits are foreseen."""

_LEARNED = 1.0
"""How much of a token's surprises counts."""

_BARREN, _SHAKEN = 3, 6
"""Beginnings in a row without gain after which a search ends, and sentences of each."""


@dataclass(frozen=True)
class Plan:
    """How a search goes.

    Attributes
    ----------
    n_queries : int
        Texts that may be encoded for each vector.
    width : int
        Queries of a round for each vector.
    n_states : int
        Sentences that are improved side by side.
    patience : int
        Rounds without gain after which it ends.
    """

    n_queries: int
    width: int
    n_states: int
    patience: int


@dataclass(eq=False)
class Quest:
    """The search for the sentence of one vector."""

    target: NDArray[np.float32]
    """The unit vector under attack."""
    starts: list[NDArray[np.int32]]
    heard: Heard
    prior: Prior
    states: list[Step] = field(default_factory=list)
    best: Step | None = None
    trail: list[tuple[int, Step]] = field(default_factory=list)
    """The best so far, each time that it changed, and after how many queries."""
    first: NDArray[np.int32] = field(init=False)
    """The answer without a query."""
    n_queries: int = 0
    n_idle: int = 0
    n_barren: int = 0
    """Beginnings in a row that led nowhere better."""
    is_over: bool = False
    _last_peak: Step | None = None
    _tried: set[bytes] = field(default_factory=set)
    _waiting: list[_Waiting] = field(default_factory=list)
    _moves: list[_Waiting] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)
    _surprise: dict[int, tuple[float, int]] = field(default_factory=dict)
    """By how much edits that bring a token in gained more than was foreseen, and how many did."""

    def __post_init__(self) -> None:
        """Keep the first sentence: later starts take its place."""
        self.first = self.starts[0]

    def expandable(self) -> list[Step]:
        """Return the states whose edits were not proposed yet."""
        return [step for step in self.states if not step.is_expanded][:_EXPANDED]

    def take_up(self, step: Step, expansion: Expansion) -> None:
        """Put a state's edits in line."""
        step.is_expanded = True
        for line, found in ((self._waiting, expansion.edits), (self._moves, expansion.moves)):
            for gain, edit in found:
                self._line_up(line, step, edit, step.value + gain)

    def _line_up(
        self, line: list[_Waiting], step: Step, edit: Edit | NDArray[np.int32], value: float
    ) -> None:
        foreseen = value + self._surprise_of(edit)
        heappush(line, (-foreseen, next(self._numbers), step, edit, value))

    def _surprise_of(self, edit: Edit | NDArray[np.int32]) -> float:
        if isinstance(edit, Edit) and len(edit.tokens) == 1:
            total, n = self._surprise.get(edit.tokens[0], (0.0, 0))
            return _LEARNED * total / (n + 1)
        return 0.0

    def next_round(self, plan: Plan) -> list[Try]:
        """Return the sentences to encode next, with what each came from."""
        room = min(plan.width, plan.n_queries - self.n_queries)
        if not self.states:
            return [Try(tokens) for tokens in self.starts if self._is_new(tokens)][:room]
        n_moves = room // 4
        chosen = self._draw(self._moves, n_moves)
        chosen += self._draw(self._waiting, room - len(chosen))
        chosen += self._draw(self._moves, room - len(chosen))
        return chosen

    def _is_new(self, tokens: NDArray[np.int32]) -> bool:
        key = tokens.tobytes()
        is_new = len(tokens) > 0 and key not in self._tried
        self._tried.add(key)
        return is_new

    def _draw(self, line: list[_Waiting], n: int) -> list[Try]:
        chosen: list[Try] = []
        while line and len(chosen) < n:
            foreseen, _, step, edit, value = heappop(line)
            if value + self._surprise_of(edit) < -foreseen - 1e-6:  # learned while it waited
                self._line_up(line, step, edit, value)
                continue
            own = edit if isinstance(edit, Edit) else None
            tokens = edit.of(step.tokens) if isinstance(edit, Edit) else edit
            if self._is_new(tokens):
                chosen.append(Try(tokens, step, own, value))
        return chosen

    def learn(self, tried: list[tuple[Try, Step]], plan: Plan) -> None:
        """Take up what a round found."""
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
        self._merge(tried)
        is_found = self.best is not None and self.best.cosine > _SAME
        is_spent = self.n_queries >= plan.n_queries or is_found
        if not is_spent and (not tried or self.n_idle >= plan.patience):
            self._begin_anew(before_all=self.best)
        self.is_over = self.is_over or is_spent

    def _begin_anew(self, before_all: Step | None) -> None:
        """Leave this hill: begin from the best sentence, shaken, unless that helped no more."""
        self.n_barren = 0 if before_all is not self._last_peak else self.n_barren + 1
        self._last_peak = before_all
        if before_all is None or self.n_barren >= _BARREN:
            self.is_over = True
            return
        rng = np.random.default_rng([self.n_queries, len(before_all.tokens)])
        self.starts = [shaken(before_all.tokens, rng) for _ in range(_SHAKEN)]
        self.states, self._waiting, self._moves, self.n_idle = [], [], [], 0

    def _merge(self, tried: list[tuple[Try, Step]]) -> None:
        """Learn what the edits gained, and put in line, together, those that gained alone."""
        parents: dict[int, Step] = {}
        for (_, parent, edit, foreseen), step in tried:
            if parent is None or edit is None or edit.to >= 0:
                continue
            if len(edit.tokens) == 1:
                total, n = self._surprise.get(edit.tokens[0], (0.0, 0))
                self._surprise[edit.tokens[0]] = (total + step.value - foreseen, n + 1)
            if step.value > parent.value:
                parent.gained.append((edit, step))
                parents[id(parent)] = parent
        for parent in parents.values():
            for value, tokens in unions(self.target, parent, parent.gained):
                self._line_up(self._waiting, parent, tokens, value)


def shaken(tokens: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """Return a sentence with a quarter of its tokens left out, its halves at times exchanged."""
    kept = tokens[rng.random(len(tokens)) > 0.25]
    if len(kept) > 3 and rng.random() < 0.5:
        cut = int(rng.integers(1, len(kept)))
        kept = np.concatenate([kept[cut:], kept[:cut]])
    return kept if len(kept) else tokens[:1]


def climb(
    encoder: Encoder,
    model: LanguageModel,
    proposer: Proposer,
    quests: Sequence[Quest],
    plan: Plan,
    on_round: Callable[[], None],
) -> None:
    """Search for all sentences side by side, so that their queries share the encoder's batches."""
    products = ThreadpoolController()
    while going := [quest for quest in quests if not quest.is_over]:
        on_round()
        fresh = [(quest, step) for quest in going for step in quest.expandable()]
        with products.limit(limits=1, user_api="blas"):  # so small, threads spin longer than work
            expansions = proposer([(q.target, q.heard.tokens, q.prior, step) for q, step in fresh])
        for (quest, step), expansion in zip(fresh, expansions, strict=True):
            quest.take_up(step, expansion)
        rounds = [quest.next_round(plan) for quest in going]
        steps = iter(_encoded(encoder, model, going, rounds))
        for quest, tried in zip(going, rounds, strict=True):
            quest.learn([(one, next(steps)) for one in tried], plan)


def _encoded(
    encoder: Encoder,
    model: LanguageModel,
    quests: Sequence[Quest],
    rounds: Sequence[list[Try]],
) -> list[Step]:
    """Encode all sentences of a round, each text once."""
    sentences = [one.tokens for tried in rounds for one in tried]
    if not sentences:
        return []
    asking = [q for q, tried in zip(quests, rounds, strict=True) for _ in tried]
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


def directions(vectors: Vectors) -> Vectors:
    """Return vectors of length 1, float32, of the same (n, d) shape.

    Raises
    ------
    InvalidInputError
        One has the length zero; the message names its row.
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (norms > 0).all():
        raise InvalidInputError(
            f"vectors hold one of length zero, first in row {int(np.argmin(norms[:, 0] > 0))}: "
            "it is no text's. Remove that row."
        )
    found: Vectors = (vectors / norms).astype(np.float32)
    return found
