"""Continuous relaxation: optimise a soft text through the encoder's gradients (SR20 Eq. 4–5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.fitted import bind, bound_meta, check_fitted, check_shapes, rebind
from leakscope.core.attacks.inversion.relaxation.relaxed_search import (
    RelaxedSearch,
    SearchPlan,
    TokenEncodings,
)
from leakscope.core.attacks.inversion.relaxation.soft_tokens import Schedule
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.ranges import Categorical, Uniform
from leakscope.core.results import Recovery
from leakscope.core.specs import setting

TUNED: dict[str, Any] = {
    "length": 12,
    "learning_rate": 0.05,
    "final_temperature": 0.01,
    "n_steps": 60,
    "candidates": "words",
    "shortlist": 1000,
}
"""Settings for MiniLM, found on 20 news sentences: a falling temperature makes the choices hard,
fewer positions than tokens raise precision, and a shortlist saves most of the time.
"""

USUAL_LENGTH = 24
"""Mean number of tokens of English sentences of 8 to 40 words, where no texts are given."""
N_FOR_MEAN = 1000
"""Texts whose mean vector is taken as the centre of the shortlist."""


@dataclass
class RelaxationAttack:
    """An attack that optimises a soft choice of tokens at each position to match the vector.

    Implements Song & Raghunathan (2020), Eq. 4–5 and the answer argmax z_i of Alg. 1 line 14.
    Differs from the paper: only regular tokens (or whole words) are candidates; the temperature
    may fall; of several starts the one whose hardened text comes nearest is answered; candidates
    may be shortlisted by the similarity of their own encodings. All of these are settings, off
    by default except the exclusion of special tokens.
    """

    length: int = setting(
        0,
        "Positions to fill; 0 for the mean number of tokens of the auxiliary texts",
        low=0,
        high=254,
        at="answer",
        search=Uniform(6, 32),
    )
    temperature: float = setting(
        0.05,
        "Temperature T of the softmax",
        low=1e-3,
        high=10.0,
        paper="SR20",
        at="answer",
        search=Uniform(0.01, 1.0, is_log=True),
    )
    final_temperature: float = setting(
        0.0,
        "Final temperature; 0 for a constant T",
        low=0.0,
        high=10.0,
        paper="SR20",
        at="answer",
        search=Uniform(0.002, 0.1, is_log=True),
    )
    learning_rate: float = setting(
        1e-3,
        "Adam's step",
        low=1e-6,
        high=10.0,
        paper="SR20",
        at="answer",
        search=Uniform(1e-3, 0.5, is_log=True),
    )
    n_steps: int = setting(
        1000,
        "Maximum number of gradient steps per start",
        low=1,
        high=100_000,
        at="answer",
        search=Categorical((60, 100, 200)),
    )
    n_restarts: int = setting(
        1, "Number of random starts; the nearest result is answered", low=1, high=100, at="answer"
    )
    candidates: str = setting(
        "tokens",
        "Candidates for a position: all tokens, or whole words only",
        choices=("tokens", "words"),
        at="answer",
    )
    shortlist: int = setting(
        0,
        "Candidates to keep per vector, by similarity of their encodings; 0 for all",
        low=0,
        at="answer",
    )
    keep_stop_words: bool = setting(False, "Answer stop words too (SR20)")
    seed: int = setting(0, "Random seed of the starts", low=0, at="answer")

    _name: ClassVar[str] = "RelaxationAttack"

    def __post_init__(self) -> None:
        self._encodings = TokenEncodings()

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Compute the mean number of tokens and the mean vector of the auxiliary texts.

        Raises
        ------
        InvalidInputError
            The encoder is a black box, or texts and vectors do not match.
        """
        open_encoder = require_white_box(encoder, self._name)
        if not texts or (vectors is not None and len(vectors) != len(texts)):
            raise InvalidInputError(
                f"texts and vectors must be equally many and at least one, got {len(texts)} texts"
                + ("." if vectors is None else f" and {len(vectors)} vectors.")
            )
        n_tokens = [len(ids) for ids in open_encoder.token_ids(texts)]
        self.mean_length_ = max(1, round(float(np.mean(n_tokens))))
        if vectors is None:
            vectors = encoder.encode(texts[:N_FOR_MEAN], on_progress)
        self.mean_vector_ = vectors[:N_FOR_MEAN].mean(0, dtype=np.float32)
        bind(self, encoder)
        return self

    def open(self, encoder: Encoder, on_progress: OnProgress = no_progress) -> Self:
        """Use defaults for English sentences in place of auxiliary texts."""
        require_white_box(encoder, self._name)
        self.mean_length_ = USUAL_LENGTH
        self.mean_vector_ = np.zeros(encoder.dimension, dtype=np.float32)
        bind(self, encoder)
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return the words of each vector, the largest softmax weight first."""
        vectors = check_fitted(self, encoder, vectors)
        open_encoder = require_white_box(encoder, self._name)
        targets, layer, centre = self._targets(vectors)
        search = RelaxedSearch(open_encoder, self._search_plan(), layer, centre, self._encodings)
        n_chunk = search.chunk_size
        answers: list[Recovery] = []
        for start in range(0, len(targets), n_chunk):
            rows = np.arange(start, min(start + n_chunk, len(targets)))

            def report(done: float, start: int = start, n: int = len(rows)) -> None:
                share = (start + n * done) / len(targets)
                on_progress(share, f"Following gradients, {share:.0%} of the steps")

            answers += search.run(targets[rows], rows, report)
        return answers

    def _search_plan(self) -> SearchPlan:
        """Collect the attack's settings into a SearchPlan."""
        schedule = Schedule(
            learning_rate=self.learning_rate,
            temperature=self.temperature,
            final_temperature=self.final_temperature,
            n_steps=self.n_steps,
        )
        return SearchPlan(
            schedule=schedule,
            length=self.length or self.mean_length_,
            candidates=self.candidates,
            shortlist=self.shortlist,
            n_restarts=self.n_restarts,
            keep_stop_words=self.keep_stop_words,
            seed=self.seed,
        )

    def _targets(self, vectors: Vectors) -> tuple[Vectors, int | None, Vectors]:
        """Return the target vectors for the soft text, their layer, and the mean target.

        Layer None is the encoder's own output.
        """
        return vectors, None, self.mean_vector_

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the mean vector and mean length from `fit`, and the encoder."""
        meta = {**bound_meta(self), "mean_length": self.mean_length_}
        return {"mean_vector": self.mean_vector_}, meta

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        rebind(self, meta)
        check_shapes(self, arrays, {"mean_vector": "d"})
        self.mean_length_ = int(meta["mean_length"])
        self.mean_vector_ = arrays["mean_vector"]
        return self
