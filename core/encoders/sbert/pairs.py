"""Sentence pairs with human similarity scores, and how well an encoder's cosines match them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder
from leakscope.core.rank_correlation import spearman_correlation
from leakscope.core.results import Interval, Score
from leakscope.core.text import check_text

MAX_SCORE = 5.0
"""Highest score of the STS benchmark, whose scores run from 0 to 5."""


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of texts with human similarity scores in [0, 5]."""

    one: tuple[str, ...]
    two: tuple[str, ...]
    scores: NDArray[np.float32]

    @classmethod
    def of(
        cls, one: Sequence[str], two: Sequence[str], scores: Sequence[float], name: str = "pairs"
    ) -> ScoredPairs:
        """Check two lists of texts and their scores; build the pairs, or raise InvalidInputError.

        Raises
        ------
        InvalidInputError
            Unequal lengths, a text that cannot be encoded, or a score that is not a number in
            [0, 5]; the message names it.
        """
        if isinstance(one, str) or isinstance(two, str):
            raise InvalidInputError(f"{name}: provide two lists of texts, not single texts.")
        try:
            values = np.asarray(scores, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"{name}: scores must be numbers.") from error
        if not len(one) == len(two) == len(values) or values.ndim != 1:
            raise InvalidInputError(
                f"{name}: pairs_a, pairs_b and scores must have the same length, got {len(one)}, "
                f"{len(two)} and scores of shape {values.shape}."
            )
        bad = np.flatnonzero(~((values >= 0) & (values <= MAX_SCORE)))  # NaN is bad, too
        if len(bad):
            raise InvalidInputError(
                f"{name}: score {bad[0] + 1} is {values[bad[0]]}; scores must lie in [0, 5]. "
                "Correct it or leave the pair out."
            )
        for side, texts in (("pairs_a", one), ("pairs_b", two)):
            for i, text in enumerate(texts, 1):
                check_text(text, name=f"{name}: text {i} of {side}")
        return cls(tuple(one), tuple(two), values)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.scores)

    def take(self, rows: NDArray[np.int64]) -> ScoredPairs:
        """Return the pairs with the given row numbers."""
        return ScoredPairs(
            tuple(self.one[i] for i in rows), tuple(self.two[i] for i in rows), self.scores[rows]
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the texts and scores in order."""
        digest = hashlib.sha256("\0".join(self.one + self.two).encode())
        digest.update(self.scores.tobytes())
        return digest.hexdigest()


def spearman_score(encoder: Encoder, pairs: ScoredPairs, seed: int = 0) -> Score:
    """Encode pairs; return Spearman's correlation ×100 between cosines and human scores.

    Raises
    ------
    InvalidInputError
        The vectors hold NaN or infinity.
    """
    one, two = encoder.encode(pairs.one), encoder.encode(pairs.two)
    cosines = F.cosine_similarity(torch.from_numpy(one), torch.from_numpy(two)).numpy()
    if not np.isfinite(cosines).all():
        raise InvalidInputError(
            "Training diverged: the vectors contain NaN or infinity. Lower learning_rate."
        )
    value, ends = spearman_correlation(
        cosines.astype(np.float64), pairs.scores.astype(np.float64), seed=seed
    )
    return Score(100 * value, Interval(100 * ends.low, 100 * ends.high), len(pairs))


def format_spearman(score: Score) -> str:
    """Format Spearman's correlation with its interval and number of pairs."""
    return f"Spearman {score.format()} on {score.n:,} pairs"
