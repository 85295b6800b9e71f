"""Sparse coding: explain the predicted mean of token vectors by few tokens (SR20 Eq. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.attacks.fitted import bind, bound_meta, check_fitted, check_shapes, check_vectors, rebind
from core.attacks.inversion.linear_map import LinearMap
from core.attacks.inversion.sparse.solvers import SOLVERS, Floats
from core.attacks.inversion.sparse.tuning import tune
from core.attacks.inversion.sparse.words import words_of_codes
from core.attacks.inversion.token_words import regular_token_ids, whole_words
from core.encoders.white_box import require_white_box, token_table
from core.errors import InvalidInputError
from core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from core.ranges import Between
from core.results import Recovery
from core.specs import setting
from core.text import STOP_WORDS

__all__ = ["TUNED", "SparseCodingAttack"]

TUNED: dict[str, Any] = {"penalty": 0.02, "threshold": 0.01}
"""Settings for MiniLM, chosen by `tune` on 300 auxiliary sentences."""

CHUNK = 128
"""Vectors coded at a time: each needs a few rows of |V| numbers."""


@dataclass
class SparseCodingAttack:
    """Maps the vector to the mean of its token vectors and finds the tokens in that mean.

    Implements Song & Raghunathan (2020), Eq. 7 and Alg. 1 lines 2–9: min over z ≥ 0 of
    ‖Vᵀz − M(Φ(x*))‖² + λ‖z‖₁; the answer is the words with z ≥ τ.
    Differs from the paper: M has an intercept and a small ridge; z covers regular tokens only;
    coefficients of tokens that spell the same word are added; pieces of words, punctuation and
    (unless kept) stop words take part in z but not in the answer. A faster solver reaches the
    same optimum; `solver="projected_adam"` is the paper's.
    """

    penalty: float = setting(
        0.1,
        "λ: how much a token costs; higher answers fewer",
        low=1e-5,
        high=10.0,
        paper="SR20",
        at="answer",
        search=Between(3e-3, 0.3, is_log=True),
    )
    threshold: float = setting(
        0.01,
        "τ: smallest coefficient answered",
        low=0.0,
        high=1.0,
        paper="SR20",
        at="answer",
        search=Between(1e-3, 0.1, is_log=True),
    )
    solver: str = setting("working_set", "How Eq. 7 is solved", choices=tuple(SOLVERS), at="answer")
    ridge: float = setting(
        0.3,
        "Shrinkage of the map to the token mean",
        low=1e-6,
        high=1e6,
        search=Between(1e-2, 1e2, is_log=True),
    )
    keep_stop_words: bool = setting(False, "Answer stop words too (SR20)")
    n_tuning: int = setting(
        0, "Auxiliary texts kept apart to choose λ and τ on; 0: as given", low=0, high=5000
    )
    seed: int = setting(0, "Seed of the texts held out of the map", low=0)

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
        """Learn M from auxiliary texts and, with `n_tuning`, choose λ and τ (SR20 §6.2).

        Raises
        ------
        InvalidInputError
            The encoder is a black box, texts and vectors do not match, or `n_tuning` leaves
            fewer than half of the texts.
        """
        open_encoder = require_white_box(encoder, "SparseCodingAttack")
        if vectors is not None:
            vectors = check_vectors(vectors, encoder.dimension, len(texts))
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
        bind(self, encoder)
        if held_texts:
            self.chosen_ = tune(self, encoder, held_texts, held_vectors, on_progress=on_progress)
        return self

    def _split(self, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows that M learns from, and those that λ and τ are chosen on."""
        if self.n_tuning > n // 2:
            raise InvalidInputError(
                f"n_tuning must be at most half of the {n} texts, got {self.n_tuning}."
            )
        order = np.random.default_rng([self.seed, 1]).permutation(n)
        return np.sort(order[self.n_tuning :]), np.sort(order[: self.n_tuning])

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return the words of each vector, largest coefficient first."""
        vectors = check_fitted(self, encoder, vectors)
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
        """Return z of Eq. 7, shape (n, number of regular tokens), float32.

        `penalty` stands for the attack's own λ where it is given.
        """
        if penalty is None:
            penalty = self.chosen_["penalty"] if self.chosen_ else self.penalty
        ids = regular_token_ids(encoder)
        tokens = token_table(encoder)[ids]
        return SOLVERS[self.solver](tokens, self.map_.apply(vectors), penalty)

    def answerable_words(self, encoder: WhiteBoxEncoder) -> list[str | None]:
        """Return, for each column of `codes`, the word that it may answer, or None."""
        names = whole_words(encoder.tokens)
        left_out = frozenset() if self.keep_stop_words else STOP_WORDS
        return [None if names[i] in left_out else names[i] for i in regular_token_ids(encoder)]

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return M, λ and τ where they were chosen, and what it is bound to."""
        chosen = {"chosen": self.chosen_} if self.chosen_ else {}
        return self.map_.arrays(), {**bound_meta(self), "map": self.map_.meta(), **chosen}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        rebind(self, meta)
        check_shapes(self, arrays, {"map_weight": "d h", "map_intercept": "h"})
        self.map_ = LinearMap.from_arrays(arrays, meta["map"])
        self.chosen_ = meta.get("chosen")
        return self
