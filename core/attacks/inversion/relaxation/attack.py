"""Continuous relaxation: optimise a soft text through the encoder's gradients (SR20 Eq. 4–5)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from leakscope.core.attacks.fitted import bind, bound_meta, check_fitted, check_shapes, rebind
from leakscope.core.attacks.inversion.relaxation.soft_tokens import Choice, Schedule, relax_tokens
from leakscope.core.attacks.inversion.released_tokens.token_words import (
    regular_token_ids,
    whole_words,
)
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, OnProgress, Vectors, WhiteBoxEncoder, no_progress
from leakscope.core.ranges import Categorical, Uniform
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import setting
from leakscope.core.text import STOP_WORDS

MEMORY = 384 * 2**20
"""Bytes for z, its gradient, Adam's two moments, the softmax and its gradient."""
MAX_CHUNK = 16


class TokenEncodings:
    """The embedding of each candidate token alone, cached per encoder and layer."""

    def __init__(self) -> None:
        self.key: Hashable = None
        self.directions = torch.empty(0)

    def compute(
        self,
        key: Hashable,
        embed: Callable[[Tensor], Tensor],
        token_vectors: Tensor,
        on_part: Callable[[], None],
    ) -> None:
        """Embed (m, hidden) token vectors as one-token texts and cache them, unless cached.

        `on_part` is called before each part, so that the work can be stopped there.
        """
        if key == self.key:
            return
        parts = []
        with torch.inference_mode():
            for part in token_vectors.split(512):
                on_part()
                parts.append(embed(part[:, None]))
        encodings = torch.cat(parts)
        self.directions = F.normalize(encodings - encodings.mean(0), dim=1)
        self.key = key

    def nearest(self, targets: Tensor, n_kept: int) -> Tensor:
        """Return the positions of the candidates of highest cosine to each target, (n, n_kept)."""
        return (targets @ self.directions.T).topk(n_kept, dim=1).indices


class RelaxedSearch:
    """Inversion of vectors by an attack's relaxation, in batches with restarts.

    Parameters
    ----------
    attack : RelaxationAttack
        The settings.
    layer : int or None
        Where the soft text must meet its target; None is the encoder's own output.
    centre : ndarray, shape (d,)
        Mean of what targets of texts look like, for the shortlist.
    """

    def __init__(
        self,
        encoder: WhiteBoxEncoder,
        attack: RelaxationAttack,
        layer: int | None,
        centre: NDArray[np.float32],
        encodings: TokenEncodings,
    ) -> None:
        self.attack, self.centre, self.encodings = attack, centre, encodings
        self.length = attack.length or attack.mean_length_
        self.embed = lambda vectors: encoder.embed_token_vectors(vectors, layer)
        ids = regular_token_ids(encoder, words_only=attack.candidates == "words")
        names = whole_words(encoder.tokens)
        left_out = frozenset() if attack.keep_stop_words else STOP_WORDS
        self.words = [None if names[i] in left_out else names[i] for i in ids]
        vectors = encoder.token_vectors.detach().float()
        self.token_vectors = vectors[torch.from_numpy(ids).to(vectors.device)]
        self.n_kept = min(attack.shortlist or len(ids), len(ids))
        self.key = (encoder.fingerprint, layer, attack.candidates)

    @property
    def chunk_size(self) -> int:
        """The number of vectors that are inverted at a time, so that they fit into MEMORY."""
        return max(1, min(MAX_CHUNK, MEMORY // (6 * 4 * self.length * self.n_kept)))

    def run(
        self, targets: Vectors, rows: NDArray[np.int64], report: Callable[[float], None]
    ) -> list[Recovery]:
        """Invert target vectors (n, d); `rows` are their positions, which seed the starts.

        Raises
        ------
        InvalidInputError
            A target is so far from every text that its loss is no finite number.
        """
        goal = torch.from_numpy(targets).to(self.token_vectors.device)
        centre = torch.from_numpy(self.centre).to(goal.device)
        columns, token_vectors = None, self.token_vectors
        if self.n_kept < len(self.words):
            self.encodings.compute(
                self.key, self.embed, self.token_vectors, on_part=lambda: report(0.0)
            )
            columns = self.encodings.nearest(goal - centre, self.n_kept)
            token_vectors = self.token_vectors[columns]
        attack, n_steps = self.attack, self.attack.n_steps
        schedule = Schedule(
            learning_rate=attack.learning_rate,
            temperature=attack.temperature,
            final_temperature=attack.final_temperature,
            n_steps=n_steps,
        )
        n_total = attack.n_restarts * n_steps
        best: list[Recovery] = []
        losses = np.full(len(rows), np.inf)
        for restart in range(attack.n_restarts):
            done = restart * n_steps
            choice = relax_tokens(
                self.embed,
                goal,
                token_vectors,
                length=self.length,
                schedule=schedule,
                seeds=[[attack.seed, restart, int(row)] for row in rows],
                on_step=lambda step, done=done: report((done + step) / n_total),  # type: ignore[misc]
            )
            far = np.flatnonzero(~np.isfinite(choice.losses))
            if len(far):
                raise InvalidInputError(
                    f"The loss of vector {rows[far[0]]} is not finite: its numbers are too large, "
                    "or the trained attack is damaged. Check the vectors, or train the attack "
                    "again."
                )
            answers = self._answers(choice, columns)
            best = [
                new if choice.losses[i] < losses[i] else best[i] for i, new in enumerate(answers)
            ]
            losses = np.minimum(losses, choice.losses)
        return best

    def _answers(self, choice: Choice, columns: Tensor | None) -> list[Recovery]:
        """Convert the chosen candidates to answers: words scored by their largest weight."""
        chosen = choice.columns
        if columns is not None:
            chosen = np.take_along_axis(columns.cpu().numpy(), chosen, axis=1)
        answers = []
        for row, weights in zip(chosen, choice.weights, strict=True):
            scores: dict[str, float] = {}
            for column, weight in zip(row, weights, strict=True):
                word = self.words[column]
                if word is not None:
                    scores[word] = max(scores.get(word, 0.0), float(weight))
            ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
            answers.append(Recovery(tuple(RecoveredWord(w, s) for w, s in ranked)))
        return answers


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
        """Measure the mean number of tokens and the mean vector of the auxiliary texts.

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
        """Set the mean length and vector to defaults for English sentences, instead of fitting."""
        require_white_box(encoder, self._name)
        self.mean_length_ = USUAL_LENGTH
        self.mean_vector_ = np.zeros(encoder.dimension, dtype=np.float32)
        bind(self, encoder)
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return an answer for each vector: its words, the largest softmax weight first."""
        vectors = check_fitted(self, encoder, vectors)
        open_encoder = require_white_box(encoder, self._name)
        targets, layer, centre = self._targets(vectors)
        search = RelaxedSearch(open_encoder, self, layer, centre, self._encodings)
        n_chunk = search.chunk_size
        answers: list[Recovery] = []
        for start in range(0, len(targets), n_chunk):
            rows = np.arange(start, min(start + n_chunk, len(targets)))

            def report(done: float, start: int = start, n: int = len(rows)) -> None:
                """Report the share of all gradient steps that is done."""
                share = (start + n * done) / len(targets)
                on_progress(share, f"Following gradients, {share:.0%} of the steps")

            answers += search.run(targets[rows], rows, report)
        return answers

    def _targets(self, vectors: Vectors) -> tuple[Vectors, int | None, Vectors]:
        """Return the target vectors for the soft text, their layer, and the mean target.

        Layer None is the encoder's own output.
        """
        return vectors, None, self.mean_vector_

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what to store: the mean vector; metadata with mean length and encoder."""
        meta = {**bound_meta(self), "mean_length": self.mean_length_}
        return {"mean_vector": self.mean_vector_}, meta

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the fitted attack from the arrays and metadata that `state` returned."""
        rebind(self, meta)
        check_shapes(self, arrays, {"mean_vector": "d"})
        self.mean_length_ = int(meta["mean_length"])
        self.mean_vector_ = arrays["mean_vector"]
        return self
