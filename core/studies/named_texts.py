"""Named references to texts and tasks in a study's settings, such as `TREC=trec.parquet`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from leakscope.core.corpora import Columns, Corpus, load_corpus, split_reference
from leakscope.core.errors import InvalidInputError
from leakscope.core.tasks.classifiers import AuthoredTexts, read_authored
from leakscope.core.tasks.labelled import read_labelled
from leakscope.core.tasks.outcomes import Task
from leakscope.core.tasks.pairs import read_pairs
from leakscope.core.tasks.searches import read_searches


@dataclass(frozen=True)
class NamedTexts:
    """A named reference to texts: a corpus or file, and optionally the rows to read.

    Attributes
    ----------
    name : str
        How results call them.
    place : str
        A corpus by name or the path of a file, as PLACE#COLUMN where a column of texts is named.
    column, value : str
        The rows to read: those with this value in this column. Empty for all.
    """

    name: str
    place: str
    column: str = ""
    value: str = ""

    @classmethod
    def of(cls, text: str) -> NamedTexts:
        """Parse a reference: `CORPUS`, `NAME=CORPUS` or `NAME=CORPUS:COLUMN=VALUE`.

        Raises
        ------
        InvalidInputError
            A part of it is empty.

        Examples
        --------
        >>> NamedTexts.of("dev=sst2.parquet:split=dev")
        NamedTexts(name='dev', place='sst2.parquet', column='split', value='dev')
        >>> NamedTexts.of("news/bbc.parquet").name, str(NamedTexts.of("lee"))
        ('bbc', 'lee')
        """
        name, equals, place = text.partition("=")
        if not equals:
            return cls(Path(split_reference(text)[0]).stem, text)
        head, colon, condition = place.rpartition(":")
        column, is_condition, value = condition.partition("=")
        if not (colon and is_condition):
            head, column, value = place, "", ""
        if not name or not head or bool(column) != bool(value):
            raise InvalidInputError(
                f"Texts are given as NAME=FILE or NAME=FILE:COLUMN=VALUE, got {text!r}."
            )
        return cls(name, head, column, value)

    def __str__(self) -> str:
        """Return the reference as text, which `of` parses."""
        if self.name == self.place:
            return self.name
        condition = f":{self.column}={self.value}" if self.column else ""
        return f"{self.name}={self.place}{condition}"

    def at(self, place: str) -> NamedTexts:
        """Return the same reference with another corpus or file path."""
        return replace(self, place=place)

    def open(self) -> Corpus:
        """Load the corpus, restricted to the referenced rows.

        Raises
        ------
        InvalidInputError
            No such corpus, or no row has the value.
        """
        if not self.column:
            return load_corpus(self.place)
        corpus = load_corpus(self.place, columns=Columns(label=self.column))
        return corpus.only([self.value])


def parse_named_texts(references: Sequence[str]) -> list[NamedTexts]:
    """Parse references to texts; raise InvalidInputError if two have the same name.

    Raises
    ------
    InvalidInputError
        Two have, or one cannot be read.
    """
    texts = [NamedTexts.of(each) for each in references]
    check_distinct_names([each.name for each in texts])
    return texts


def check_distinct_names(names: Sequence[str]) -> None:
    """Raise InvalidInputError if two texts have the same name.

    Raises
    ------
    InvalidInputError
        Two have.
    """
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"Two texts are called {name!r}. Name them apart: NAME=FILE.")


@dataclass(frozen=True)
class ClassedTexts:
    """A named file of texts, with the column that holds their classes.

    Attributes
    ----------
    name : str
        How results call it.
    place : str
        The file, as FILE#COLUMN where the column of the texts is named.
    label : str
        The column of the classes; the year is the class where it holds dates.
    """

    name: str
    place: str
    label: str

    @classmethod
    def of(cls, reference: str) -> ClassedTexts:
        """Parse a reference such as `NAME=FILE:CLASS` or `FILE:CLASS`.

        Raises
        ------
        InvalidInputError
            It names no file or no class.

        Examples
        --------
        >>> ClassedTexts.of("news=posts.parquet#body:topic")
        ClassedTexts(name='news', place='posts.parquet#body', label='topic')
        """
        name, equals, rest = reference.partition("=")
        place, colon, label = (rest if equals else reference).rpartition(":")
        if not (place and colon and label) or (equals and not name):
            raise InvalidInputError(
                f"Texts with classes are given as NAME=FILE:CLASS, CLASS being the column of the "
                f"classes, got {reference!r}."
            )
        return cls(name if equals else Path(split_reference(place)[0]).stem, place, label)

    def __str__(self) -> str:
        """Return the reference as text, which `of` parses."""
        return f"{self.name}={self.place}:{self.label}"

    def at(self, place: str) -> ClassedTexts:
        """Return the same reference with another file path."""
        return replace(self, place=place)


def parse_classed_texts(references: Sequence[str]) -> list[ClassedTexts]:
    """Parse references to texts with classes; raise InvalidInputError if names repeat.

    Raises
    ------
    InvalidInputError
        Two have, or one cannot be read.
    """
    texts = [ClassedTexts.of(each) for each in references]
    check_distinct_names([each.name for each in texts])
    return texts


@lru_cache(maxsize=6)
def open_classed(name: str, place: str, label: str, user: str, piece: str) -> AuthoredTexts:
    """Read a table of texts with users and classes, once per process.

    Raises
    ------
    InvalidInputError
        The file or a column cannot be used.
    """
    return read_authored(name, place, label=label, user=user, piece=piece)


def open_tasks(
    tasks: Sequence[str], pairs: Sequence[str], searches: Sequence[str] = ()
) -> list[Task]:
    """Read the labelled, pair and search tasks of references NAME=FILE, once per process."""
    asked = {"labelled": tasks, "pairs": pairs, "searches": searches}
    return [_open_task(kind, each) for kind, own in asked.items() for each in own]


@lru_cache(maxsize=96)
def _open_task(kind: str, reference: str) -> Task:
    """Read a task of labelled texts, scored pairs or a search, once per process."""
    texts = NamedTexts.of(reference)
    if kind == "labelled":
        path, column = split_reference(texts.place)
        return read_labelled(texts.name, Path(path), column)
    if kind == "pairs":
        return read_pairs(texts.name, Path(texts.place))
    return read_searches(texts.name, Path(texts.place), texts.column, texts.value)


def contents_of(
    tasks: Sequence[str], pairs: Sequence[str], searches: Sequence[str] = ()
) -> list[str]:
    """Read the tasks of references NAME=FILE; return a digest of each one's content."""
    return [_digest(task) for task in open_tasks(tasks, pairs, searches)]


@lru_cache(maxsize=64)
def _digest(task: Task) -> str:
    """Return a digest of a task's content."""
    return hashlib.sha256(repr(task).encode()).hexdigest()[:16]
