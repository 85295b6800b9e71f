"""Search tasks: whether the nearest stored vector is relevant to the query."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import Columns
from leakscope.core.corpora.readers.raw_files import refusal
from leakscope.core.corpora.readers.tables import open_table, read_rows
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.results import Score
from leakscope.core.tasks.labelled import LabelledTask, read_labelled
from leakscope.core.tasks.outcomes import Hits

SEARCH_COLUMNS = Columns(text="question1", others=("question2",))
"""Columns of paraphrased question pairs."""


@dataclass(frozen=True)
class SearchTask:
    """Search for the paraphrase of each query among stored texts (recall@1).

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
        """Encode the texts; return how often a query's paraphrase is nearest, in per cent."""
        return self.outcome(encoder, n_train=n_train, n_test=n_test, seed=seed).score()

    def outcome(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Hits:
        """Encode `n_test` queries (0 for all) and their texts; return which find theirs first.

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
        asked = encoder.encode([self.queries[i] for i in rows])
        stored = encoder.encode([self.stored[i] for i in rows])
        return Hits(_nearest_rows(asked, stored) == np.arange(n), 100 / n)


@dataclass(frozen=True)
class LabelSearchTask:
    """Search among labelled texts: a stored text with the query's label is relevant.

    The test texts of `labelled` are the queries and its training texts are stored, so that the
    texts and their vectors are those of the classification task.
    """

    measure: ClassVar[str] = "precision@1"

    name: str
    labelled: LabelledTask

    @property
    def has_official_split(self) -> bool:
        """Whether every run has the same queries."""
        return self.labelled.has_official_split

    def score(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Score:
        """Encode the texts; return how often the nearest one has the query's label, in per cent."""
        return self.outcome(encoder, n_train=n_train, n_test=n_test, seed=seed).score()

    def outcome(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Hits:
        """Encode the texts; return which queries' nearest stored text has the query's label.

        Queries and stored texts both come from `encoder`: behind a defence, both are protected.
        Chance is what a stored text drawn at random reaches.

        Parameters
        ----------
        n_train, n_test : int
            Stored texts and queries at most; 0 for all.
        seed : int
            Of the drawing, as in `LabelledTask.parts`.

        Raises
        ------
        InvalidInputError
            Fewer texts than asked for, or one label only.
        """
        stored, asked = self.labelled.parts(n_train=n_train, n_test=n_test, seed=seed)
        labels = np.array(self.labelled.labels)
        vectors = encoder.encode([self.labelled.texts[i] for i in (*stored, *asked)])
        nearest = _nearest_rows(vectors[len(stored) :], vectors[: len(stored)])
        frequency = Counter(labels[stored])
        chance = float(np.mean([frequency[label] for label in labels[asked]])) / len(stored)
        return Hits(labels[stored][nearest] == labels[asked], 100 * chance)

    def n_near_duplicates(self, *, n_train: int = 0, n_test: int = 0, seed: int) -> int:
        """Return how many queries are left out because they nearly repeat stored texts."""
        return self.labelled.n_near_duplicates(n_train=n_train, n_test=n_test, seed=seed)


def is_label_search(path: Path) -> bool:
    """Return whether a table file holds labelled texts rather than question pairs."""
    table = open_table(path)
    names = table.names if table is not None else []
    return SEARCH_COLUMNS.text not in names and "label" in names


def read_searches(
    name: str, path: Path, column: str = "", value: str = ""
) -> SearchTask | LabelSearchTask:
    """Read a search task from a table: question pairs, or labelled texts to search by label.

    A table with the columns question1 and question2 holds pairs, each text once. A table with a
    `label` and no question1 is read as a labelled task (`LabelSearchTask`).

    Parameters
    ----------
    column, value : str
        Read only pairs with this value in this column; empty for all.

    Raises
    ------
    InvalidInputError
        Another table, a question that is no text, no row of that value, or a condition on a
        labelled table.
    """
    if is_label_search(path):
        if column:
            raise InvalidInputError(
                f"{path} holds labelled texts, of which all are searched; {column}={value} chooses "
                f"pairs of questions. Give {name}=FILE alone."
            )
        table = open_table(path)
        has_text = table is not None and "text" in table.names
        return LabelSearchTask(name, read_labelled(name, path, "text" if has_text else None))
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
        raise InvalidInputError(
            f"{path} holds no pair of questions{_describe_condition(column, value)}."
        )
    return SearchTask(name, tuple(queries), tuple(stored))


def _describe_condition(column: str, value: str) -> str:
    """Describe a condition on a column, for an error message; "" without a column."""
    return f" whose {column} is {value!r}" if column else ""


def _nearest_rows(asked: Vectors, stored: Vectors) -> NDArray[np.intp]:
    """Return, for each query, the row of the stored vector with the greatest cosine."""
    asked, stored = _normalise(asked), _normalise(stored)
    blocks = range(0, len(asked), 1024)
    return np.concatenate([(asked[i : i + 1024] @ stored.T).argmax(1) for i in blocks])


def _normalise(vectors: Vectors) -> Vectors:
    """Return vectors with each row normalised to unit length."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, 1e-12)
    return unit
