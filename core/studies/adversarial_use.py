"""What defended vectors are still good for, beside the same encoder without the defence."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from core.corpora import split_reference
from core.protocols import Encoder
from core.results import Interval, Score
from core.studies.named_texts import NamedTexts
from core.studies.rows import Cell
from core.studies.tradeoff_summary import change_measure, utility_measure
from core.tasks.logistic import LogisticTask, read_logistic
from core.tasks.outcomes import Hits

__all__ = ["MEAN", "mean_change", "use_scores"]

MEAN = "mean"
"""What the mean over the tasks is called."""

_USUAL: dict[tuple[str, str, str, int, int, int], Hits] = {}
"""Without a defence, of this process: every λ is held against it."""


def use_scores(cell: Cell, base: Encoder, protected: Encoder) -> dict[str, Score]:
    """Return the accuracy of each task behind the defence, and by how much it differs.

    Both are trained and tested on the same texts, and the difference is taken text by text.
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
    """Return the mean over tasks of differences; their texts are independent of each other.

    Its interval is as far from the mean as the root of the sum of squares of the tasks' own.
    """
    k, value = len(changes), sum(each.value for each in changes) / len(changes)
    low = sum((each.value - each.ci95.low) ** 2 for each in changes) ** 0.5 / k
    high = sum((each.ci95.high - each.value) ** 2 for each in changes) ** 0.5 / k
    return Score(value, Interval(value - low, value + high), sum(e.n for e in changes), 0.0)


@lru_cache(maxsize=16)
def _task(told: str, digest: str) -> LogisticTask:
    texts = NamedTexts.of(told)
    path, column = split_reference(texts.place)
    return read_logistic(texts.name, Path(path), column)
