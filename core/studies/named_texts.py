"""Named references to texts in a study's settings, such as `TREC=trec.parquet`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leakscope.core.corpora import Columns, Corpus, load_corpus, split_reference
from leakscope.core.errors import InvalidInputError


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
        """Return the reference that `of` parses."""
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
    """Parse references to texts, and check that their names differ.

    Raises
    ------
    InvalidInputError
        Two have, or one cannot be read.
    """
    texts = [NamedTexts.of(each) for each in references]
    check_distinct_names([each.name for each in texts])
    return texts


def check_distinct_names(names: Sequence[str]) -> None:
    """Check that no two texts have the same name.

    Raises
    ------
    InvalidInputError
        Two have.
    """
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"Two texts are called {name!r}. Name them apart: NAME=FILE.")
