"""Sparse coding: explain the predicted mean of token vectors by few tokens (SR20 Eq. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks import fitted
from leakscope.core.attacks.inversion.linear_map import LinearMap
from leakscope.core.attacks.inversion.released_tokens.token_words import (
    regular_token_ids,
    whole_words,
)
from leakscope.core.attacks.inversion.sparse.solvers import SOLVERS, Floats
from leakscope.core.encoders.white_box import require_white_box, token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.metrics import score_words
from leakscope.core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from leakscope.core.ranges import Uniform
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import setting
from leakscope.core.text import STOP_WORDS, word_set

TUNED: dict[str, Any] = {"penalty": 0.02, "threshold": 0.01}
"""Settings for MiniLM, chosen by `tune_penalty` on 300 auxiliary sentences."""

CHUNK = 128
"""Vectors coded at a time: each needs a few rows of |V| numbers."""

N_RUNNERS_UP = 25

PENALTIES = (0.01, 0.02, 0.04, 0.08, 0.16)
"""λ over the mean ‖v‖² of the token vectors: where these are twice as long, Eq. 7 has the same
answer at four times the λ."""

THRESHOLDS = (0.002, 0.004, 0.005, 0.006, 0.007, 0.0075, 0.008, 0.009, 0.01, 0.012, 0.015, 0.02)


@dataclass
class SparseCodingAttack:
    """An attack that maps the vector to its mean token vector and explains that by few tokens.

    Implements Song & Raghunathan (2020), Eq. 7 and Alg. 1 lines 2–9: min over z ≥ 0 of
    ‖Vᵀz − M(Φ(x*))‖² + λ‖z‖₁; the answer is the words with z ≥ τ.
    Differs from the paper: M has an intercept and a small ridge; z covers regular tokens only;
    coefficients of tokens that spell the same word are added; pieces of words, punctuation and
    (unless kept) stop words take part in z but not in the answer. A faster solver reaches the
    same optimum; `solver="projected_adam"` is the paper's.
    """

    penalty: float = setting(
        0.1,
        "λ, the cost of a token; higher values answer fewer words",
        low=1e-5,
        high=10.0,
        paper="SR20",
        at="answer",
        search=Uniform(3e-3, 0.3, is_log=True),
    )
    threshold: float = setting(
        0.01,
        "τ, the smallest coefficient that is answered",
        low=0.0,
        high=1.0,
        paper="SR20",
        at="answer",
        search=Uniform(1e-3, 0.1, is_log=True),
    )
    solver: str = setting("working_set", "Solver of Eq. 7", choices=tuple(SOLVERS), at="answer")
    ridge: float = setting(
        0.3,
        "Ridge penalty of the map to the token mean",
        low=1e-6,
        high=1e6,
        search=Uniform(1e-2, 1e2, is_log=True),
    )
    keep_stop_words: bool = setting(False, "Answer stop words too (SR20)")
    n_tuning: int = setting(
        0,
        "Held-out auxiliary texts to choose λ and τ on; 0 to use the given values",
        low=0,
        high=5000,
    )
    seed: int = setting(0, "Random seed of the held-out texts", low=0)

    chosen_: dict[str, float] | None = field(default=None, init=False, repr=False, compare=False)

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Fit M on auxiliary texts and, with `n_tuning`, choose λ and τ on others (SR20 §6.2).

        Raises
        ------
        InvalidInputError
            The encoder is a black box, texts and vectors do not match, or `n_tuning` leaves
            fewer than half of the texts.
        """
        open_encoder = require_white_box(encoder, "SparseCodingAttack")
        if vectors is not None:
            vectors = fitted.check_vectors(vectors, encoder.dimension, len(texts))
        held_texts, held_vectors = texts[:0], vectors
        if self.n_tuning:  # else nothing is copied: the vectors may be gigabytes
            known, held = self._split(len(texts))
            held_texts, texts = ([texts[i] for i in rows] for rows in (held, known))
            if vectors is not None:
                held_vectors, vectors = vectors[held], vectors[known]
        self.map_ = LinearMap.fit(
            open_encoder,
            texts,
            vectors,
            layer=0,
            ridge=self.ridge,
            seed=self.seed,
            on_progress=on_progress,
            checkpoint_dir=checkpoint_dir,
        )
        self.chosen_ = None
        fitted.bind(self, encoder)
        if held_texts:
            self.chosen_ = tune_penalty(
                self, encoder, held_texts, held_vectors, on_progress=on_progress
            )
        return self

    def _split(self, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Split n row numbers at random: rows to fit M on, and rows to choose λ and τ on."""
        if self.n_tuning > n // 2:
            raise InvalidInputError(
                f"n_tuning must be at most half of the {n} texts, got {self.n_tuning}."
            )
        order = np.random.default_rng([self.seed, 1]).permutation(n)
        return np.sort(order[self.n_tuning :]), np.sort(order[: self.n_tuning])

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return an answer for each vector: its words, the largest coefficient first."""
        vectors = fitted.check_fitted(self, encoder, vectors)
        open_encoder = require_white_box(encoder, "SparseCodingAttack")
        names = self.answerable_words(open_encoder)
        threshold = self.chosen_["threshold"] if self.chosen_ else self.threshold
        answers: list[Recovery] = []
        for start in range(0, len(vectors), CHUNK):
            codes = self.codes(open_encoder, vectors[start : start + CHUNK])
            answers += words_of_codes(codes, names, threshold)
            on_progress(len(answers) / len(vectors), f"Coded {len(answers)} of {len(vectors)}")
        return answers

    def codes(
        self, encoder: WhiteBoxEncoder, vectors: Vectors, penalty: float | None = None
    ) -> Floats:
        """Solve Eq. 7 for each vector: token coefficients z, float32 (n, number of regular tokens).

        `penalty` replaces the attack's own λ where it is given.
        """
        if penalty is None:
            penalty = self.chosen_["penalty"] if self.chosen_ else self.penalty
        ids = regular_token_ids(encoder)
        tokens = token_table(encoder)[ids]
        return SOLVERS[self.solver](tokens, self.map_.apply(vectors), penalty)

    def answerable_words(self, encoder: WhiteBoxEncoder) -> list[str | None]:
        """Return the word that each column of `codes` can answer, or None."""
        names = whole_words(encoder.tokens)
        left_out = frozenset() if self.keep_stop_words else STOP_WORDS
        return [None if names[i] in left_out else names[i] for i in regular_token_ids(encoder)]

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what to store: the map M; metadata with the encoder, and λ and τ if chosen."""
        chosen = {"chosen": self.chosen_} if self.chosen_ else {}
        return self.map_.arrays(), {**fitted.bound_meta(self), "map": self.map_.meta(), **chosen}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the fitted attack from the arrays and metadata that `state` returned."""
        fitted.rebind(self, meta)
        fitted.check_shapes(self, arrays, {"map_weight": "d h", "map_intercept": "h"})
        self.map_ = LinearMap.from_arrays(arrays, meta["map"])
        self.chosen_ = meta.get("chosen")
        return self


def words_of_codes(codes: Floats, names: Sequence[str | None], threshold: float) -> list[Recovery]:
    """Convert token coefficients (n, m) to answers: words whose coefficients sum to at least τ.

    Examples
    --------
    >>> codes = np.array([[0.25, 0.5, 0.25, 0.125]])
    >>> [
    ...     (w.word, w.score)
    ...     for w in words_of_codes(codes, ["cat", None, "cat", "dog"], 0.2)[0].words
    ... ]
    [('cat', 0.5)]
    """
    answers = []
    for code in codes:
        scores: dict[str, float] = {}
        for i in np.flatnonzero(code > 0).tolist():
            name = names[i]
            if name is not None:
                scores[name] = scores.get(name, 0.0) + float(code[i])
        ranked = [
            RecoveredWord(word, score)
            for word, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
        ]
        n_answered = sum(word.score >= threshold for word in ranked)
        rest = ranked[n_answered : n_answered + N_RUNNERS_UP]
        answers.append(Recovery(tuple(ranked[:n_answered]), runners_up=tuple(rest)))
    return answers


def tune_penalty(
    attack: SparseCodingAttack,
    encoder: Encoder,
    texts: Sequence[str],
    vectors: Vectors | None = None,
    *,
    penalties: Sequence[float] | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    on_progress: OnProgress = no_progress,
) -> dict[str, float]:
    """Return the λ and τ of highest token-set F1 on auxiliary texts, with that F1 (SR20 §6.2).

    Parameters
    ----------
    attack : SparseCodingAttack
        Fitted, on other texts than these; it is not changed.
    texts : sequence of str
        Never the texts that will be scored. A few hundred are enough.
    penalties : sequence of float, optional
        λ to try; by default PENALTIES times the mean squared length of the token vectors.

    Returns
    -------
    dict
        penalty, threshold, and token_set_f1 in [0, 100] as reached on `texts`.
    """
    open_encoder = require_white_box(encoder, "tune_penalty")
    vectors = encoder.encode(texts) if vectors is None else vectors
    left_out = frozenset() if attack.keep_stop_words else STOP_WORDS
    targets = [word_set(text) - left_out for text in texts]
    names = attack.answerable_words(open_encoder)
    tried = _penalties(open_encoder) if penalties is None else penalties
    best = {"penalty": 0.0, "threshold": 0.0, "token_set_f1": -1.0}
    for done, penalty in enumerate(tried, 1):
        codes = attack.codes(open_encoder, vectors, penalty)
        for threshold in thresholds:
            answers = [a.word_set for a in words_of_codes(codes, names, threshold)]
            f1 = score_words(answers, targets).token_set_f1
            if f1 > best["token_set_f1"]:
                best = {"penalty": penalty, "threshold": threshold, "token_set_f1": f1}
        on_progress(done / len(tried), f"Tried λ = {penalty:g}; best F1 {best['token_set_f1']:.1f}")
    return best


def _penalties(encoder: WhiteBoxEncoder) -> list[float]:
    """Return the values of λ to try: PENALTIES times the tokens' mean squared length."""
    tokens = encoder.token_vectors[regular_token_ids(encoder)].detach().float()
    length = float(tokens.square().sum(1).mean())
    return [share * length for share in PENALTIES]
