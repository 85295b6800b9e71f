"""Semantic similarity task: correlation of cosines with human judgements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import Columns
from leakscope.core.corpora.readers.raw_files import refusal
from leakscope.core.corpora.readers.tables import read_rows
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.results import Score
from leakscope.core.tasks.outcomes import Ranks
from leakscope.core.units import units_or_none

PAIR_COLUMNS = Columns(text="sentence1", others=("sentence2", "score", "split", "lang"))
"""Columns of the STS benchmark."""


@dataclass(frozen=True)
class PairTask:
    """Text pairs with a human similarity score."""

    measure: ClassVar[str] = "spearman"

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: tuple[float, ...]

    has_official_split: ClassVar[bool] = True
    """The same test pairs are used under every seed."""

    def score(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Score:
        """Encode the pairs; return Spearman's correlation × 100 of cosines with human scores.

        The interval is from a bootstrap over the test pairs; chance is no correlation.
        """
        return self.outcome(encoder, n_train=n_train, n_test=n_test, seed=seed).score()

    def outcome(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Ranks:
        """Encode `n_test` pairs (0 for all); return their cosines beside their human scores."""
        del n_train  # nothing is trained
        n = n_test or len(self.scores)
        rows = np.random.default_rng(seed).permutation(len(self.scores))[:n]
        one = encoder.encode([self.first[i] for i in rows])
        two = encoder.encode([self.second[i] for i in rows])
        units = units_or_none([f"{self.first[i]}\n{self.second[i]}" for i in rows])
        return Ranks(_cosines(one, two), np.array(self.scores)[rows], seed, units)


def read_pairs(name: str, path: Path, *, language: str = "en", split: str = "test") -> PairTask:
    """Read one split and language of a table in the STS benchmark's format as a PairTask.

    Raises
    ------
    InvalidInputError
        Another table; the message names the column that is missing, or the row that has no score.
    """
    first, second, scores = [], [], []
    for row in read_rows(path, PAIR_COLUMNS):
        other, score, its_split, its_language = row.others
        if (its_split, its_language) == (split, language):
            first.append(row.text)
            second.append(other)
            scores.append(_parse_score(path, row.place, score))
    return PairTask(name, tuple(first), tuple(second), tuple(scores))


def _parse_score(path: Path, place: str, cell: object) -> float:
    """Parse a score cell as float; raise InvalidInputError if it is no number."""
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise refusal(path, place, f"has no number in 'score' but {cell!r}.") from error


def _cosines(one: Vectors, two: Vectors) -> NDArray[np.float64]:
    """Return the cosine of each row of one matrix with the same row of the other."""
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    dots: NDArray[np.float64] = np.einsum("ij,ij->i", one, two, dtype=np.float64)
    return dots / np.maximum(lengths, 1e-12)
