"""Texts that a study calls by a name of their own, such as `TREC=trec.parquet`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.corpora import Columns, Corpus, load_corpus, split_reference
from core.errors import InvalidInputError

__all__ = ["NamedTexts", "check_different", "check_names"]


@dataclass(frozen=True)
class NamedTexts:
    """Texts and what tables call them.

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
    def of(cls, told: str) -> NamedTexts:
        """Read `CORPUS`, `NAME=CORPUS` or `NAME=CORPUS:COLUMN=VALUE`.

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
        name, equals, place = told.partition("=")
        if not equals:
            return cls(Path(split_reference(told)[0]).stem, told)
        head, colon, condition = place.rpartition(":")
        column, is_condition, value = condition.partition("=")
        if not (colon and is_condition):
            head, column, value = place, "", ""
        if not name or not head or bool(column) != bool(value):
            raise InvalidInputError(
                f"Texts are given as NAME=FILE or NAME=FILE:COLUMN=VALUE, got {told!r}."
            )
        return cls(name, head, column, value)

    def __str__(self) -> str:
        """Return what `of` reads."""
        if self.name == self.place:
            return self.name
        condition = f":{self.column}={self.value}" if self.column else ""
        return f"{self.name}={self.place}{condition}"

    def at(self, place: str) -> NamedTexts:
        """Return the same texts, lying elsewhere."""
        return replace(self, place=place)

    def open(self) -> Corpus:
        """Return the corpus, of the rows that are meant.

        Raises
        ------
        InvalidInputError
            No such corpus, or no row has the value.
        """
        if not self.column:
            return load_corpus(self.place)
        corpus = load_corpus(self.place, columns=Columns(label=self.column))
        return corpus.only([self.value])


def check_names(told: Sequence[str]) -> list[NamedTexts]:
    """Return texts, after checking that no two have the same name.

    Raises
    ------
    InvalidInputError
        Two have, or one cannot be read.
    """
    texts = [NamedTexts.of(each) for each in told]
    check_different([each.name for each in texts])
    return texts


def check_different(names: Sequence[str]) -> None:
    """Check that no two texts have the same name.

    Raises
    ------
    InvalidInputError
        Two have.
    """
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"Two texts are called {name!r}. Name them apart: NAME=FILE.")
