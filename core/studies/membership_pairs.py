"""Consecutive sentences, document by document."""

from __future__ import annotations

from dataclasses import replace

from core.corpora import Corpus
from core.encoders.dual.context_pairs import pairs_of
from core.errors import InvalidInputError

__all__ = ["pairs_by_document"]


def pairs_by_document(corpus: Corpus) -> list[list[tuple[str, str]]]:
    """Return each sentence with the next one of its document, document by document.

    A document without any, such as a single sentence, has none.

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
        pairs_of(corpus)  # says what is wrong
    return found
