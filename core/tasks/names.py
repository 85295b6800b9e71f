"""What tasks are about, in words for people who do not know the data sets."""

from __future__ import annotations

import re

__all__ = ["TASK_NAMES", "USES", "task_said", "use_of"]

USES: dict[str, str] = {
    "search": "Search",
    "classification": "Classification",
    "similarity": "Similarity",
}
"""What vectors are used for, and its title; the first is what most people store vectors for."""

_USE_OF_MEASURE = {"recall@1": "search", "precision@1": "search", "spearman": "similarity"}


def use_of(measure: str) -> str:
    """Return the use that a task's measure belongs to, one of `USES`.

    Examples
    --------
    >>> use_of("precision@1"), use_of("accuracy"), use_of("spearman")
    ('search', 'classification', 'similarity')
    """
    return _USE_OF_MEASURE.get(measure, "classification")


TASK_NAMES: dict[str, str] = {
    "SST-2": "film reviews, whole sentences: liked or not",
    "MR": "film reviews: liked or not",
    "TREC": "questions: what kind of answer",
    "SUBJ": "films: opinion or plot",
    "MPQA": "phrases from news: for or against",
    "CR": "product reviews: content or not",
    "STS-b": "two sentences: how alike",
    "MRPC": "two sentences: do they say the same",
    "QQP": "search: the same question in other words",
    "BANKING77": "messages to a bank: which of 77 intents",
    "BANKING77-search": "search: messages to a bank with the same intent",
}
"""Data sets that the field knows by their short names."""


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


_BY_LETTERS = {_letters(name): name for name in TASK_NAMES}


def task_said(name: str) -> str:
    """Return what a task is about, with its short name; the name alone where no words are known.

    However it is spelt: capitals and hyphens do not count.

    Examples
    --------
    >>> task_said("TREC"), task_said("trec"), task_said("minister")
    ('questions: what kind of answer (TREC)', 'questions: what kind of answer (TREC)', 'minister')
    """
    known = _BY_LETTERS.get(_letters(name))
    return f"{TASK_NAMES[known]} ({known})" if known else name
