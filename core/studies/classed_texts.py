"""Texts with users and classes that a study calls by a name, such as `news=posts.parquet:topic`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from core.corpora import split_reference
from core.errors import InvalidInputError
from core.studies.named_texts import check_different
from core.tasks.classifiers import AuthoredTexts, read_authored

__all__ = ["ClassedTexts", "named_apart", "open_classed"]


@dataclass(frozen=True)
class ClassedTexts:
    """A file of texts, and the column that holds their classes.

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
    def of(cls, told: str) -> ClassedTexts:
        """Read `NAME=FILE:CLASS` or `FILE:CLASS`.

        Raises
        ------
        InvalidInputError
            It names no file or no class.

        Examples
        --------
        >>> ClassedTexts.of("news=posts.parquet#body:topic")
        ClassedTexts(name='news', place='posts.parquet#body', label='topic')
        """
        name, equals, rest = told.partition("=")
        place, colon, label = (rest if equals else told).rpartition(":")
        if not (place and colon and label) or (equals and not name):
            raise InvalidInputError(
                f"Texts with classes are given as NAME=FILE:CLASS, CLASS being the column of the "
                f"classes, got {told!r}."
            )
        return cls(name if equals else Path(split_reference(place)[0]).stem, place, label)

    def __str__(self) -> str:
        """Return what `of` reads."""
        return f"{self.name}={self.place}:{self.label}"

    def at(self, place: str) -> ClassedTexts:
        """Return the same texts, lying elsewhere."""
        return replace(self, place=place)


def named_apart(told: Sequence[str]) -> list[ClassedTexts]:
    """Return texts, after checking that no two have the same name.

    Raises
    ------
    InvalidInputError
        Two have, or one cannot be read.
    """
    texts = [ClassedTexts.of(each) for each in told]
    check_different([each.name for each in texts])
    return texts


@lru_cache(maxsize=6)
def open_classed(name: str, place: str, label: str, user: str, piece: str) -> AuthoredTexts:
    """Return the texts, read once a process.

    Raises
    ------
    InvalidInputError
        The file or a column cannot be used.
    """
    return read_authored(name, place, label=label, user=user, piece=piece)
