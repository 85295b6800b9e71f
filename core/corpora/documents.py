"""Corpora: immutable sequences of documents, identified by a content hash."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from leakscope.core.corpora.document import Document
from leakscope.core.corpora.passages import (
    Paragraph,
    Sentences,
    gather_paragraphs,
    gather_sentences,
)
from leakscope.core.corpora.splits import split_by_class, split_by_document
from leakscope.core.errors import InvalidInputError


@dataclass(frozen=True)
class Corpus:
    """Documents of one source, in a fixed order.

    Parameters
    ----------
    name : str
        How results call it.
    documents : tuple of Document
        Documents with unique ids.
    licence : str
        Terms under which the texts may be used, if known.
    language : str
        Two-letter code, for the sentence splitter.
    is_split : bool
        Whether each document is one sentence already.
    notes : tuple of str
        What was decided in reading it: a guessed column, an encoding. No part of its identity.

    Raises
    ------
    InvalidInputError
        Two documents have the same id.
    """

    name: str
    documents: tuple[Document, ...]
    licence: str = "not known"
    language: str = "en"
    is_split: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for document in self.documents:
            if document.id in seen:
                raise InvalidInputError(
                    f"Corpus {self.name!r} has two documents with the id {document.id!r}. "
                    "Give each document a unique id."
                )
            seen.add(document.id)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.documents)

    @cached_property
    def content_hash(self) -> str:
        """The SHA-256 over the documents, in order, and over the settings that affect reading.

        This is the identity of the corpus in caches and results; name and licence do not count.
        """
        parts = (f for d in self.documents for f in (d.id, d.text, d.label, d.author))
        return digest_fields([self.language, str(self.is_split), *parts])

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The distinct class labels, in order of first appearance."""
        return tuple(dict.fromkeys(d.label for d in self.documents if d.label is not None))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The distinct sentences of 8 to 40 words, which attacks train on."""
        return self.sentences().texts

    def sentences(self, min_words: int = 8, max_words: int = 40) -> Sentences:
        """Split the documents; return the distinct sentences of min_words to max_words words."""
        found = self._gathered.get((min_words, max_words))
        if found is None:
            found = gather_sentences(
                self.documents,
                min_words,
                max_words,
                language=None if self.is_split else self.language,
            )
            self._gathered[min_words, max_words] = found
        return found

    @cached_property
    def _gathered(self) -> dict[tuple[int, int], Sentences]:
        """The cache of split sentences, by (min_words, max_words)."""
        return {}

    def paragraphs(self, min_words: int = 128, max_words: int = 168) -> tuple[Paragraph, ...]:
        """Join consecutive sentences of each document into paragraphs of min to max_words words."""
        return gather_paragraphs(self.sentences(), min_words, max_words)

    def split_by_document(self, fractions: Sequence[float], seed: int = 0) -> tuple[Corpus, ...]:
        """Split the documents at random into disjoint corpora of the given fractions."""
        parts = split_by_document(self.documents, fractions, seed, name=self.name)
        n = len(parts)
        return tuple(
            replace(self, name=f"{self.name}, part {i} of {n}", documents=part)
            for i, part in enumerate(parts, 1)
        )

    def split_by_class(
        self, classes: Collection[str], leave_out: Collection[str] = ()
    ) -> tuple[Corpus, Corpus]:
        """Split by class label into two corpora: the given classes, and all others."""
        inside, outside = split_by_class(self.documents, classes, leave_out, name=self.name)
        said = ", ".join(label for label in self.labels if label in classes)
        return (
            replace(self, name=f"{self.name}: {said}", documents=inside),
            replace(self, name=f"{self.name}: all but {said}", documents=outside),
        )

    def only(self, classes: Collection[str]) -> Corpus:
        """Return the corpus restricted to documents of the given classes.

        Raises
        ------
        InvalidInputError
            A class that the corpus does not have.
        """
        missing = sorted(set(classes) - set(self.labels))
        if missing:
            raise InvalidInputError(
                f"Corpus {self.name!r} has no class {missing[0]!r}. "
                f"It has: {', '.join(self.labels[:20]) or 'none'}."
            )
        return replace(self, documents=tuple(d for d in self.documents if d.label in classes))

    def head(self, limit: int | None) -> Corpus:
        """Return the corpus of the first `limit` documents; the corpus itself for None."""
        check_limit(limit)
        return self if limit is None else replace(self, documents=self.documents[:limit])


def check_limit(limit: int | None) -> None:
    """Raise InvalidInputError unless `limit` is None or at least 1."""
    if limit is not None and limit < 1:
        raise InvalidInputError(f"limit must be at least 1, got {limit}. Leave it out to use all.")


def digest_fields(fields: Iterable[str | None]) -> str:
    """Return the SHA-256, in hexadecimal, of strings in order; None and "" differ."""
    digest = hashlib.sha256()
    for text in fields:
        if text is None:
            digest.update(b"-")
            continue
        content = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()
