"""Search: whether a text is found by another of the same meaning, among many."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from core.corpora import Columns
from core.corpora.raw_files import refusal
from core.corpora.tables import read_rows
from core.errors import InvalidInputError
from core.protocols import Encoder, Vectors
from core.results import Score
from core.tasks.outcomes import Hits

__all__ = ["SEARCH_COLUMNS", "SearchTask", "read_searches"]

SEARCH_COLUMNS = Columns(text="question1", others=("question2",))
"""Of pairs of questions that ask the same."""


@dataclass(frozen=True)
class SearchTask:
    """Pairs of texts with one meaning: it is what vectors are stored for.

    Attributes
    ----------
    queries, stored : tuple of str
        The i-th query asks for the i-th stored text. No text is there twice.
    """

    measure: ClassVar[str] = "recall@1"
    has_official_split: ClassVar[bool] = False

    name: str
    queries: tuple[str, ...]
    stored: tuple[str, ...]

    def score(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Score:
        """Return how often the nearest of the stored texts is the one that was asked for."""
        return self.outcome(encoder, n_train=n_train, n_test=n_test, seed=seed).score()

    def outcome(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Hits:
        """Return which queries find their text first by cosine, among `n_test`; 0 for all.

        Queries and stored texts both come from `encoder`: where it is behind a defence, both are
        protected.

        Raises
        ------
        InvalidInputError
            Fewer pairs than asked for.
        """
        del n_train  # nothing is trained
        n = n_test or len(self.queries)
        if not 2 <= n <= len(self.queries):
            raise InvalidInputError(
                f"{self.name} needs {max(n, 2)} pairs of texts, and has {len(self.queries)}."
            )
        rows = np.random.default_rng([seed, 5]).permutation(len(self.queries))[:n]
        asked = _unit(encoder.encode([self.queries[i] for i in rows]))
        stored = _unit(encoder.encode([self.stored[i] for i in rows]))
        nearest = np.concatenate(
            [(asked[i : i + 1024] @ stored.T).argmax(1) for i in range(0, n, 1024)]
        )
        return Hits(nearest == np.arange(n), 100 / n)


def read_searches(name: str, path: Path, column: str = "", value: str = "") -> SearchTask:
    """Read a table with the columns question1 and question2, each text once.

    Parameters
    ----------
    column, value : str
        Only the rows with this value in this column; empty for all.

    Raises
    ------
    InvalidInputError
        Another table, a question that is no text, or no row of that value.
    """
    others = ("question2", column) if column else ("question2",)
    seen: set[str] = set()
    queries, stored = [], []
    for row in read_rows(path, Columns(text="question1", others=others)):
        if column and str(row.others[1]) != value:
            continue
        pair = (row.text, row.others[0])
        if not all(isinstance(text, str) and text.strip() for text in pair):
            raise refusal(path, row.place, "holds a question that is empty or no text.")
        folded = [" ".join(text.lower().split()) for text in pair]
        if folded[0] == folded[1] or seen & set(folded):
            continue
        seen.update(folded)
        queries.append(pair[0])
        stored.append(pair[1])
    if not queries:
        raise InvalidInputError(f"{path} holds no pair of questions{_said(column, value)}.")
    return SearchTask(name, tuple(queries), tuple(stored))


def _said(column: str, value: str) -> str:
    return f" whose {column} is {value!r}" if column else ""


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, 1e-12)
    return unit
