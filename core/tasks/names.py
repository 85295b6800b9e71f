"""Readable names of tasks and of the uses they measure."""

from __future__ import annotations

import re

USES: dict[str, str] = {
    "search": "Search",
    "classification": "Classification",
    "similarity": "Similarity",
}
"""Titles of the uses of vectors; the first is the most common."""

_USE_OF_MEASURE = {"recall@1": "search", "precision@1": "search", "spearman": "similarity"}


def use_of(measure: str) -> str:
    """Return the use of vectors that a measure (by name) belongs to, one of `USES`.

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
    "CR": "product reviews: satisfied or not",
    "STS-b": "two sentences: how similar",
    "MRPC": "two sentences: whether they mean the same",
    "QQP": "search: duplicate questions",
    "BANKING77": "messages to a bank: which of 77 intents",
    "BANKING77-search": "search: messages to a bank with the same intent",
}
"""Descriptions of data sets by their short names."""


def _letters_only(name: str) -> str:
    """Return the letters and digits of a name, lower-cased and joined."""
    return re.sub(r"[\W_]", "", name).lower()


_BY_LETTERS = {_letters_only(name): name for name in TASK_NAMES}


def describe_task(name: str) -> str:
    """Describe a task given by its short name: "questions: … (TREC)"; unknown names unchanged.

    However it is spelt: capitals and hyphens do not count.

    Examples
    --------
    >>> describe_task("TREC"), describe_task("trec"), describe_task("minister")
    ('questions: what kind of answer (TREC)', 'questions: what kind of answer (TREC)', 'minister')
    """
    known = _BY_LETTERS.get(_letters_only(name))
    return f"{TASK_NAMES[known]} ({known})" if known else name
