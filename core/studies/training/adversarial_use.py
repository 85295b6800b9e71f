"""Utility of defended vectors, compared with the undefended encoder on the same texts."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from leakscope.core.corpora import split_reference
from leakscope.core.protocols import Encoder
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell
from leakscope.core.studies.named_texts import NamedTexts
from leakscope.core.studies.tradeoff.summary import change_measure, utility_measure
from leakscope.core.tasks.logistic import LogisticTask, read_logistic
from leakscope.core.tasks.outcomes import Hits

MEAN = "mean"
"""The name of the mean over tasks."""

_USUAL: dict[tuple[str, str, str, int, int, int], Hits] = {}
"""Outcomes without a defence in this process, the reference of every λ."""


def use_scores(cell: Cell, base: Encoder, protected: Encoder) -> dict[str, Score]:
    """Return each task's accuracy with the defence, and its paired change from no defence.

    Both are trained and tested on the same texts and compared text by text.
    """
    seed, sizes = cell["seed"], {"n_train": cell["n_train"], "n_test": cell["n_test"]}
    scores: dict[str, Score] = {}
    changes = []
    for told, digest in zip(cell["tasks"], cell["contents"][1:], strict=True):
        task = _task(told, digest)
        place = (base.fingerprint, told, digest, seed, *sizes.values())
        if place not in _USUAL:
            if len(_USUAL) > 100:
                _USUAL.clear()
            _USUAL[place] = task.outcome(base, **sizes, seed=seed)
        found = task.outcome(protected, **sizes, seed=seed)
        scores[utility_measure(task.name, task.measure)] = found.score()
        changes.append(found.change_from(_USUAL[place], seed))
        scores[change_measure(task.name, task.measure)] = changes[-1]
    if changes:
        scores[change_measure(MEAN, LogisticTask.measure)] = mean_change(changes)
    return scores


def mean_change(changes: list[Score]) -> Score:
    """Return the mean of independent changes over tasks, with its interval.

    Its half-widths are the root of the tasks' summed squared half-widths, over their number.
    """
    k, value = len(changes), sum(each.value for each in changes) / len(changes)
    low = sum((each.value - each.ci95.low) ** 2 for each in changes) ** 0.5 / k
    high = sum((each.ci95.high - each.value) ** 2 for each in changes) ** 0.5 / k
    return Score(value, Interval(value - low, value + high), sum(e.n for e in changes), 0.0)


@lru_cache(maxsize=16)
def _task(told: str, digest: str) -> LogisticTask:
    """Read a task of labelled texts or pairs, once per process."""
    texts = NamedTexts.of(told)
    path, column = split_reference(texts.place)
    return read_logistic(texts.name, Path(path), column)
