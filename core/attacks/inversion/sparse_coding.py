"""Sparse coding: explain the predicted mean of token vectors by few tokens (SR20 Eq. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.fitted import bind, bound_meta, check_fitted, rebind
from core.attacks.inversion.linear_map import LinearMap
from core.attacks.inversion.sparse_solvers import SOLVERS, Floats
from core.attacks.inversion.token_words import regular_token_ids, require_white_box, whole_words
from core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from core.results import RecoveredWord, Recovery
from core.specs import setting
from core.text import STOP_WORDS

__all__ = ["TUNED", "SparseCodingAttack", "words_of_codes"]

TUNED: dict[str, Any] = {"penalty": 0.02, "threshold": 0.01}
"""Settings for MiniLM, chosen by `sparse_tuning.tune` on 300 auxiliary sentences."""

CHUNK = 128
"""Vectors coded at a time: each needs a few rows of |V| numbers."""
N_RUNNERS_UP = 25


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
        0.1, "λ: how much a token costs; higher answers fewer", low=1e-5, high=10.0, paper="SR20"
    )
    threshold: float = setting(
        0.01, "τ: smallest coefficient answered", low=0.0, high=1.0, paper="SR20"
    )
    solver: str = setting("working_set", "How Eq. 7 is solved", choices=tuple(SOLVERS))
    ridge: float = setting(0.3, "Shrinkage of the map to the token mean", low=1e-6, high=1e6)
    keep_stop_words: bool = setting(False, "Answer stop words too (SR20)")
    seed: int = setting(0, "Seed of the held-out texts of the map", low=0)

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Learn M from auxiliary texts.

        Raises
        ------
        InvalidInputError
            The encoder is a black box, or texts and vectors do not match.
        """
        self.map_ = LinearMap.fit(
            require_white_box(encoder, "SparseCodingAttack"),
            texts,
            vectors,
            layer=0,
            ridge=self.ridge,
            seed=self.seed,
            on_progress=on_progress,
            checkpoint_dir=checkpoint_dir,
        )
        bind(self, encoder)
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return the words of each vector, largest coefficient first."""
        vectors = check_fitted(self, encoder, vectors)
        open_encoder = require_white_box(encoder, "SparseCodingAttack")
        names = self.answerable_words(open_encoder)
        answers: list[Recovery] = []
        for start in range(0, len(vectors), CHUNK):
            codes = self.codes(open_encoder, vectors[start : start + CHUNK])
            answers += words_of_codes(codes, names, self.threshold)
            on_progress(len(answers) / len(vectors), f"Coded {len(answers)} of {len(vectors)}")
        return answers

    def codes(self, encoder: WhiteBoxEncoder, vectors: Vectors) -> Floats:
        """Return z of Eq. 7, shape (n, number of regular tokens), float32."""
        ids = regular_token_ids(encoder)
        tokens = encoder.token_vectors.detach().float().cpu().numpy()[ids]
        return SOLVERS[self.solver](tokens, self.map_.apply(vectors), self.penalty)

    def answerable_words(self, encoder: WhiteBoxEncoder) -> list[str | None]:
        """Return, for each column of `codes`, the word that it may answer, or None."""
        names = whole_words(encoder.tokens)
        left_out = frozenset() if self.keep_stop_words else STOP_WORDS
        return [None if names[i] in left_out else names[i] for i in regular_token_ids(encoder)]

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return M and what it is bound to."""
        return self.map_.arrays(), {**bound_meta(self), "map": self.map_.meta()}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        rebind(self, meta)
        self.map_ = LinearMap.from_arrays(arrays, meta["map"])
        return self


def words_of_codes(codes: Floats, names: Sequence[str | None], threshold: float) -> list[Recovery]:
    """Turn coefficients (n, m) of tokens into words, `names` giving the word of each column.

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
