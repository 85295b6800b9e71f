"""The search around the relaxed optimisation (Eq. 5, Eq. 6): shortlists, batches and restarts."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from leakscope.core.attacks.inversion.relaxation.soft_tokens import Choice, Schedule, relax_tokens
from leakscope.core.attacks.inversion.released_tokens.token_words import (
    regular_token_ids,
    whole_words,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Vectors, WhiteBoxEncoder
from leakscope.core.results import RecoveredWord, Recovery
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
        """Encode (m, hidden) token vectors as one-token texts, unless they are cached.

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
        """Return the candidates with the highest cosine to each centred target, (n, n_kept)."""
        return (targets @ self.directions.T).topk(n_kept, dim=1).indices


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """Settings of a relaxed search: candidates, length, restarts and optimisation schedule.

    Parameters
    ----------
    length : int
        Positions to fill.
    candidates : str
        `tokens`, or `words`: whole words only.
    shortlist : int
        Candidates kept a vector; 0 for all.
    """

    schedule: Schedule
    length: int
    candidates: str
    shortlist: int
    n_restarts: int
    keep_stop_words: bool
    seed: int


class RelaxedSearch:
    """Inversion of vectors by relaxation under a plan, in batches with restarts.

    Parameters
    ----------
    layer : int or None
        Where the soft text must meet its target; None is the encoder's own output.
    centre : ndarray, shape (d,)
        Mean of what targets of texts look like, for the shortlist.
    """

    def __init__(
        self,
        encoder: WhiteBoxEncoder,
        plan: SearchPlan,
        layer: int | None,
        centre: NDArray[np.float32],
        encodings: TokenEncodings,
    ) -> None:
        self.plan, self.centre, self.encodings = plan, centre, encodings
        self.embed = lambda vectors: encoder.embed_token_vectors(vectors, layer)
        ids = regular_token_ids(encoder, words_only=plan.candidates == "words")
        names = whole_words(encoder.tokens)
        left_out = frozenset() if plan.keep_stop_words else STOP_WORDS
        self.words = [None if names[i] in left_out else names[i] for i in ids]
        vectors = encoder.token_vectors.detach().float()
        self.token_vectors = vectors[torch.from_numpy(ids).to(vectors.device)]
        self.n_kept = min(plan.shortlist or len(ids), len(ids))
        self.key = (encoder.fingerprint, layer, plan.candidates)

    @property
    def chunk_size(self) -> int:
        """The number of vectors that fit into MEMORY at a time."""
        return max(1, min(MAX_CHUNK, MEMORY // (6 * 4 * self.plan.length * self.n_kept)))

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
        schedule = self.plan.schedule
        n_total = self.plan.n_restarts * schedule.n_steps
        best: list[Recovery] = []
        losses = np.full(len(rows), np.inf)
        for restart in range(self.plan.n_restarts):
            done = restart * schedule.n_steps
            choice = relax_tokens(
                self.embed,
                goal,
                token_vectors,
                length=self.plan.length,
                schedule=schedule,
                seeds=[[self.plan.seed, restart, int(row)] for row in rows],
                on_step=lambda step, done=done: report((done + step) / n_total),  # type: ignore[misc]
            )
            _check_losses(choice, rows)
            answers = self._answers(choice, columns)
            best = [
                new if choice.losses[i] < losses[i] else best[i] for i, new in enumerate(answers)
            ]
            losses = np.minimum(losses, choice.losses)
        return best

    def _answers(self, choice: Choice, columns: Tensor | None) -> list[Recovery]:
        """Convert chosen candidates to scored words; a word gets its largest weight."""
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


def _check_losses(choice: Choice, rows: NDArray[np.int64]) -> None:
    """Raise InvalidInputError if the loss of a row is not finite."""
    far = np.flatnonzero(~np.isfinite(choice.losses))
    if len(far):
        raise InvalidInputError(
            f"The loss of vector {rows[far[0]]} is not finite: its numbers are too large, or the "
            "trained attack is damaged. Check the vectors, or train the attack again."
        )
