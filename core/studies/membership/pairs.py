"""Pairs of consecutive sentences by document."""

from __future__ import annotations

from dataclasses import replace

from leakscope.core.corpora import Corpus
from leakscope.core.encoders.dual.context_pairs import pairs_of
from leakscope.core.errors import InvalidInputError


def pairs_by_document(corpus: Corpus) -> list[list[tuple[str, str]]]:
    """Return each document's pairs of consecutive sentences; a single sentence has none.

    Raises
    ------
    InvalidInputError
        No document has two sentences in a row.
    """
    found = []
    for document in corpus.documents:
        try:
            found.append(pairs_of(replace(corpus, documents=(document,))))
        except InvalidInputError:
            found.append([])
    if not any(found):
        pairs_of(corpus)  # raises an error that says what is wrong
    return found
