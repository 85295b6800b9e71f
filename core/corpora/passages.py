"""Extract filtered sentences and joined paragraphs from documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from leakscope.core.corpora.document import Document
from leakscope.core.corpora.sentences import split_sentences
from leakscope.core.errors import InvalidInputError
from leakscope.core.text import words


@dataclass(frozen=True)
class Sentences:
    """Sentences with their document ids, classes and authors, as aligned tuples."""

    texts: tuple[str, ...]
    document_ids: tuple[str, ...]
    labels: tuple[str | None, ...]
    authors: tuple[str | None, ...]

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.texts)

    def take(self, rows: list[int]) -> Sentences:
        """Return the sentences at the given rows, in the given order."""
        columns = (self.texts, self.document_ids, self.labels, self.authors)
        return Sentences(*(tuple(column[i] for i in rows) for column in columns))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Paragraph:
    """Consecutive sentences of one document, joined by spaces."""

    text: str
    sentences: tuple[str, ...]
    document_id: str
    label: str | None = None
    author: str | None = None


def gather_sentences(
    documents: Sequence[Document], min_words: int, max_words: int, *, language: str | None = "en"
) -> Sentences:
    """Split documents; return the distinct sentences with min_words to max_words words.

    Implements the filter of Corò (2022), §4.3.1: white space collapsed, 8 to 40 words of at
    least two characters.
    Differs from the paper: the case is kept, since `leakscope.core.text.words` lowers it where
    words are compared; a text that appears again is left out; sentences are cut by another library.

    Parameters
    ----------
    language : str or None
        Two-letter code, for the sentence splitter; None: each document is one sentence already.

    Raises
    ------
    InvalidInputError
        Bounds below 1 or the wrong way round.
    """
    _check_bounds(min_words, max_words)
    rows: dict[str, tuple[str, str | None, str | None]] = {}
    for document in documents:
        for text in _sentences_of(document.text, language):
            if text not in rows and min_words <= len(words(text)) <= max_words:
                rows[text] = (document.id, document.label, document.author)
    ids, labels, authors = zip(*rows.values(), strict=True) if rows else ((), (), ())
    return Sentences(tuple(rows), ids, labels, authors)


def _sentences_of(text: str, language: str | None) -> list[str]:
    """Split a text into sentences; without a language, the text is one sentence."""
    if language is None:
        return [" ".join(text.split())]
    return split_sentences(text, language)


def gather_paragraphs(
    sentences: Sentences, min_words: int, max_words: int
) -> tuple[Paragraph, ...]:
    """Join consecutive sentences of a document into paragraphs of min_words to max_words words.

    Implements the artificial paragraphs of Corò (2022), §4.3.1: sentences that passed the
    filter, at least 128 words, at most 168 (the least length and the longest sentence).
    Differs from the paper: nothing. What is left at a document's end and is too short makes no
    paragraph. Where a sentence would exceed max_words, which the paper's bounds exclude, the
    earliest sentences are dropped.

    Raises
    ------
    InvalidInputError
        Bounds below 1 or the wrong way round.
    """
    _check_bounds(min_words, max_words)
    paragraphs: list[Paragraph] = []
    for _, rows in groupby(range(len(sentences)), key=lambda i: sentences.document_ids[i]):
        gathered: list[tuple[int, int]] = []  # (row, its number of words)
        for row in rows:
            gathered.append((row, len(words(sentences.texts[row]))))
            while sum(n for _, n in gathered) > max_words:
                gathered.pop(0)
            if sum(n for _, n in gathered) >= min_words:
                paragraphs.append(_join_sentences(sentences, [row for row, _ in gathered]))
                gathered = []
    return tuple(paragraphs)


def _join_sentences(sentences: Sentences, rows: list[int]) -> Paragraph:
    """Join the sentences at the given rows into one paragraph."""
    part = sentences.take(rows)
    return Paragraph(
        " ".join(part.texts), part.texts, part.document_ids[0], part.labels[0], part.authors[0]
    )


def _check_bounds(min_words: int, max_words: int) -> None:
    """Raise InvalidInputError unless 1 ≤ min_words ≤ max_words."""
    if not 1 <= min_words <= max_words:
        raise InvalidInputError(
            "min_words and max_words must satisfy 1 ≤ min_words ≤ max_words, "
            f"got {min_words} and {max_words}."
        )
