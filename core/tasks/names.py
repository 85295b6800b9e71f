"""What tasks are about, in words for people who do not know the data sets."""

from __future__ import annotations

__all__ = ["TASK_NAMES", "task_said"]

TASK_NAMES: dict[str, str] = {
    "SST-2": "film reviews, whole sentences: liked or not",
    "MR": "film reviews: liked or not",
    "TREC": "questions: what kind of answer",
    "SUBJ": "films: opinion or plot",
    "MPQA": "phrases from news: for or against",
    "CR": "product reviews: content or not",
    "STS-b": "two sentences: how alike",
    "QQP": "search: the same question in other words",
}
"""Data sets that the field knows by their short names."""


def task_said(name: str) -> str:
    """Return what a task is about, with its short name; the name alone where no words are known.

    Examples
    --------
    >>> task_said("TREC"), task_said("minister")
    ('questions: what kind of answer (TREC)', 'minister')
    """
    said = TASK_NAMES.get(name)
    return f"{said} ({name})" if said else name
