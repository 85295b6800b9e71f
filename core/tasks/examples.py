"""Classified texts or text pairs, with an official split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import Columns, split_reference
from leakscope.core.corpora.readers.raw_files import refusal
from leakscope.core.corpora.readers.tables import open_table, read_rows
from leakscope.core.storage.artifacts import digest_of
from leakscope.core.tasks.labelled import LABEL_COLUMN, SPLIT_COLUMN, LabelledTask, read_labelled
from leakscope.core.tasks.outcomes import ClassIds

PAIRS_OF_TEXTS = (("sentence1", "sentence2"), ("question1", "question2"))
"""Column names of the two texts, as in MRPC and in QQP."""


@dataclass(frozen=True)
class Examples(ClassIds):
    """Classified texts or text pairs.

    Attributes
    ----------
    second : tuple of str
        The other text of each; empty for single texts.
    splits : tuple of str
        Part of the official split of each example; empty if there is none.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    labels: tuple[str, ...]
    splits: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.first)

    @property
    def is_paired(self) -> bool:
        """Whether each example is a pair of texts."""
        return bool(self.second)

    @cached_property
    def digest(self) -> str:
        """A hash of texts, classes and split."""
        return digest_of({}, [self.first, self.second, self.labels, self.splits])[:16]

    def parts(
        self, *, n_train: int = 0, n_test: int = 0, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Split the examples: return train and test indices, official or with a fifth held out.

        As `LabelledTask.parts`: none is in both, and without a split a fifth is held out.
        """
        pairs = zip(self.first, self.second or [""] * len(self), strict=True)
        joined = tuple("\n".join(pair) for pair in pairs)
        task = LabelledTask(self.name, joined, self.labels, self.splits)
        return task.parts(n_train=n_train, n_test=n_test, seed=seed)


def pair_columns(path: Path) -> tuple[str, str] | None:
    """Find a table's two text columns and return their names; None if rows are single texts.

    Raises
    ------
    InvalidInputError
        The file cannot be read.
    """
    table = open_table(path)
    names = set() if table is None else set(table.names)
    return next((pair for pair in PAIRS_OF_TEXTS if names.issuperset(pair)), None)


def read_examples(name: str, place: str) -> Examples:
    """Read a table with a column `label`: text pairs if it has two text columns, else texts.

    Rows without a class are left out.

    Raises
    ------
    InvalidInputError
        The file or a column cannot be used.
    """
    reference, column = split_reference(place)
    path = Path(reference)
    pair = None if column else pair_columns(path)
    if pair is None:
        task = read_labelled(name, path, text=column)
        return Examples(name, task.texts, (), task.labels, task.splits)
    return _read_pairs(name, path, pair)


def _read_pairs(name: str, path: Path, pair: tuple[str, str]) -> Examples:
    """Read a table of labelled text pairs; skip pairs without a label."""
    table = open_table(path)
    assert table is not None
    has_split = SPLIT_COLUMN in table.names
    others = (pair[1], *([SPLIT_COLUMN] if has_split else []))
    rows: list[tuple[str, str, str, str]] = []
    for row in read_rows(path, Columns(text=pair[0], label=LABEL_COLUMN, others=others)):
        if row.label is None:
            continue
        texts = (row.text, row.others[0])
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise refusal(path, row.place, "lacks a text of its pair. Take the row out.")
        split = str(row.others[1] or "").lower() if has_split else ""
        rows.append((*texts, str(row.label), split))
    if not rows:
        raise refusal(path, "", "holds no pair with a class. Give at least two.")
    first, second, labels, splits = zip(*rows, strict=True)
    return Examples(name, first, second, labels, splits if has_split else ())
