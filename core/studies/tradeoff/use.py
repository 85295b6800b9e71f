"""Utility of vectors behind a defence, compared with no defence on the same texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakscope.core.corpora import split_reference
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import Score
from leakscope.core.results.rows import Cell
from leakscope.core.studies.named_texts import NamedTexts
from leakscope.core.studies.tradeoff.summary import change_measure, utility_measure
from leakscope.core.tasks.labelled import LabelledTask, read_labelled
from leakscope.core.tasks.outcomes import Outcome, Task
from leakscope.core.tasks.pairs import read_pairs
from leakscope.core.tasks.searches import LabelSearchTask, SearchTask, read_searches


def use_scores(
    cell: Cell, encoder: Encoder, protected: Encoder
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Return each task's score behind the defence, its paired change from none, and facts.

    Both are trained and tested on the same texts, and the difference is taken text by text. Tasks
    of the same texts share one release: no text is put through the defence twice.
    """
    own, protected = CachedEncoder(encoder), _OneRelease(protected)
    scores: dict[str, Score] = {}
    tasks = open_tasks(cell["tasks"], cell["pairs"], cell["searches"])
    for task in tasks:
        sizes = sizes_of(task, cell)
        found = task.outcome(protected, **sizes)
        usual = undefended(task, own, **sizes)
        scores[utility_measure(task.name, task.measure)] = found.score()
        scores[change_measure(task.name, task.measure)] = found.change_from(usual, cell["seed"])
    return scores, facts_of(tasks, cell)


class _OneRelease:
    """A protected encoder that releases each list of texts only once."""

    def __init__(self, protected: Encoder) -> None:
        self._protected = protected
        self._released: dict[bytes, Vectors] = {}
        self.name, self.dimension = protected.name, protected.dimension
        self.fingerprint = protected.fingerprint

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Encode texts, or return their first release."""
        key = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()
        if key not in self._released:
            self._released[key] = self._protected.encode(texts, on_progress)
        return self._released[key]


def facts_of(tasks: Sequence[Task], cell: Cell) -> dict[str, Any]:
    """Return the facts of the tasks: official splits, label searches and near-duplicates."""
    label_searches = [task.name for task in tasks if isinstance(task, LabelSearchTask)]
    return {
        **({"label_searches": label_searches} if label_searches else {}),
        "same_texts": [task.name for task in tasks if task.has_official_split],
        "task_near_duplicates": {
            task.name: task.n_near_duplicates(**sizes_of(task, cell))
            for task in tasks
            if isinstance(task, LabelledTask | LabelSearchTask)
        },
    }


def sizes_of(task: Task, cell: Cell) -> dict[str, int]:
    """Return a task's numbers of training and test texts, and the seed."""
    n_test = cell["n_test"]
    if isinstance(task, SearchTask):
        n_test = min(cell["n_searched"], len(task.queries))
    return {"n_train": cell["n_train"], "n_test": n_test, "seed": cell["seed"]}


_OUTCOMES: dict[tuple[Any, ...], Outcome] = {}
"""Outcomes without a defence in this process: the baseline of every defence."""


def undefended(task: Task, own: Encoder, **sizes: int) -> Any:
    """Return a task's outcome without a defence, measured once per process."""
    place = (own.fingerprint, getattr(own, "precision", ""), task, *sizes.values())
    if place not in _OUTCOMES:
        if len(_OUTCOMES) > 100:
            _OUTCOMES.clear()
        _OUTCOMES[place] = task.outcome(own, **sizes)
    return _OUTCOMES[place]


def open_tasks(
    tasks: Sequence[str], pairs: Sequence[str], searches: Sequence[str] = ()
) -> list[Task]:
    """Read the tasks of references NAME=FILE, once per process."""
    return [
        *(_labelled(told) for told in tasks),
        *(_pairs(told) for told in pairs),
        *(_searches(told) for told in searches),
    ]


@lru_cache(maxsize=32)
def _labelled(told: str) -> Task:
    """Read a task of labelled texts."""
    texts = NamedTexts.of(told)
    path, column = split_reference(texts.place)
    return read_labelled(texts.name, Path(path), column)


@lru_cache(maxsize=32)
def _pairs(told: str) -> Task:
    """Read a task of scored pairs."""
    texts = NamedTexts.of(told)
    return read_pairs(texts.name, Path(texts.place))


@lru_cache(maxsize=32)
def _searches(told: str) -> Task:
    """Read a search task."""
    texts = NamedTexts.of(told)
    return read_searches(texts.name, Path(texts.place), texts.column, texts.value)


def contents_of(
    tasks: Sequence[str], pairs: Sequence[str], searches: Sequence[str] = ()
) -> list[str]:
    """Return a digest of each task's texts."""
    return [_digest(task) for task in open_tasks(tasks, pairs, searches)]


@lru_cache(maxsize=64)
def _digest(task: Task) -> str:
    """Return a digest of a task's content."""
    return hashlib.sha256(repr(task).encode()).hexdigest()[:16]
