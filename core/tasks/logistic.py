"""Classification of texts or text pairs by logistic regression on frozen vectors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import Columns
from leakscope.core.corpora.readers.tables import open_table, read_rows
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.tasks.labelled import LABEL_COLUMN, SPLIT_COLUMN, LabelledTask, read_labelled
from leakscope.core.tasks.outcomes import Hits

PENALTIES = (0.003, 0.03, 0.3)
"""Inverse penalty strengths (C) to try, for features of unit variance."""

PAIR = ("sentence1", "sentence2")
"""Column names of a table of pairs."""


@dataclass(frozen=True)
class LogisticTask:
    """Classified texts, or classified text pairs (such as paraphrases).

    Parameters
    ----------
    labelled : LabelledTask
        The texts, of pairs both joined, with classes and the official split.
    first, second : tuple of str
        What is encoded; `second` is empty where there are no pairs.
    """

    measure: ClassVar[str] = "accuracy"

    labelled: LabelledTask
    first: tuple[str, ...]
    second: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The task's name in results."""
        return self.labelled.name

    @property
    def has_official_split(self) -> bool:
        """Whether every run is tested on the same texts."""
        return self.labelled.has_official_split

    def outcome(self, encoder: Encoder, *, n_train: int = 0, n_test: int = 0, seed: int) -> Hits:
        """Encode texts, fit logistic regression; return which test texts it classifies correctly.

        Implements Song & Raghunathan (2020), §7, after Conneau & Kiela (2018): each benchmark is a
        classification by logistic regression; of pairs on (|u − v|, u·v).
        Differs from the paper: features are scaled to unit variance, and the penalty is chosen
        on a tenth of the training texts. Chance is the share of the most frequent class.

        Raises
        ------
        InvalidInputError
            Fewer texts than asked for, or one class only.
        """
        known, held = self.labelled.parts(n_train=n_train, n_test=n_test, seed=seed)
        labels = np.array(self.labelled.labels)
        features = self._encode_features(encoder, [*known, *held])
        seen, unseen = features[: len(known)], features[len(known) :]
        mean, spread = seen.mean(0), np.maximum(seen.std(0), 1e-9)
        seen, unseen = (seen - mean) / spread, (unseen - mean) / spread
        right = _fit_with_tuned_penalty(seen, labels[known], seed).predict(unseen) == labels[held]
        _, counts = np.unique(labels[held], return_counts=True)
        return Hits(right, 100 * int(counts.max()) / len(held), self.labelled.units(held))

    def _encode_features(self, encoder: Encoder, rows: list[int]) -> Vectors:
        """Encode the texts at the given rows; return their vectors, or the features of pairs."""
        one = encoder.encode([self.first[i] for i in rows])
        if not self.second:
            return one
        return pair_features(one, encoder.encode([self.second[i] for i in rows]))


def pair_features(one: Vectors, two: Vectors) -> Vectors:
    """Return (|u − v|, u·v) of each pair of vectors, shape (n, 2 d).

    Examples
    --------
    >>> pair_features(np.array([[1.0, -2.0]]), np.array([[3.0, 1.0]])).tolist()
    [[2.0, 3.0, 3.0, -2.0]]
    """
    return np.concatenate([np.abs(one - two), one * two], axis=1)


def _fit_with_tuned_penalty(features: NDArray[np.float32], labels: NDArray[Any], seed: int) -> Any:
    """Fit a logistic regression on all texts, with the penalty chosen on a tenth of them."""
    from sklearn.linear_model import LogisticRegression

    order = np.random.default_rng([seed, 5]).permutation(len(labels))
    held, rest = order[: len(order) // 10], order[len(order) // 10 :]

    def fit(c: float, rows: NDArray[np.intp]) -> Any:
        """Fit a logistic regression with inverse penalty c on the given rows."""
        return LogisticRegression(C=c, max_iter=300, tol=1e-3).fit(features[rows], labels[rows])

    if len(held) < 2 or len(set(labels[rest])) < len(set(labels)):
        return fit(PENALTIES[1], order)
    scores = [fit(c, rest).score(features[held], labels[held]) for c in PENALTIES]
    return fit(PENALTIES[int(np.argmax(scores))], order)


def read_logistic(name: str, path: Path, text: str | None = None) -> LogisticTask:
    """Read a task from a table: labelled texts, or pairs if it has `sentence1` and `sentence2`.

    Raises
    ------
    InvalidInputError
        The file or a column cannot be read.
    """
    table = open_table(path)
    names = () if table is None else tuple(table.names)
    if not {*PAIR} <= {*names}:
        labelled = read_labelled(name, path, text)
        return LogisticTask(labelled, labelled.texts)
    split = (SPLIT_COLUMN,) if SPLIT_COLUMN in names else ()
    first, second, labels, splits = [], [], [], []
    for row in read_rows(path, Columns(text=PAIR[0], others=(PAIR[1], LABEL_COLUMN, *split))):
        other, label, *part = row.others
        first.append(row.text)
        second.append(str(other))
        labels.append(str(label))
        splits += [str(each).lower() for each in part]
    joined = tuple(f"{a}\n{b}" for a, b in zip(first, second, strict=True))
    labelled = LabelledTask(name, joined, tuple(labels), tuple(splits))
    return LogisticTask(labelled, tuple(first), tuple(second))
