"""Named files of texts with users and classes: `news=posts.parquet:topic`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from leakscope.core.corpora import split_reference
from leakscope.core.errors import InvalidInputError
from leakscope.core.studies.named_texts import check_distinct_names
from leakscope.core.tasks.classifiers import AuthoredTexts, read_authored


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
        """Return the reference that `of` parses."""
        return f"{self.name}={self.place}:{self.label}"

    def at(self, place: str) -> ClassedTexts:
        """Return the same reference with another file path."""
        return replace(self, place=place)


def parse_classed_texts(references: Sequence[str]) -> list[ClassedTexts]:
    """Parse references to texts with classes, and check that their names differ.

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
