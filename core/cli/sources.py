"""Files of texts that a command is given: checked before anything is loaded, with what to know.

A file that is missing or of another kind, a column that is not there or holds nothing: all is
told within a moment, before a model or a library for models is opened.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.cli.output import show_note
from core.corpora import Columns, Corpus, check_source, split_reference
from core.corpora.guess import FileFacts, check_holds_text, facts_of

__all__ = ["checked_columns", "checked_corpus", "checked_reference", "show_notes"]

_CHOICE = "; choose another with --text-column"


def checked_columns(path: Path, columns: Columns) -> Columns:
    """Return the columns to read of a file, the guessed one told on standard error.

    Raises
    ------
    InvalidInputError
        The file cannot be read, a column is not there, or that of the texts holds none.
    """
    return _checked(path, columns).columns


def checked_corpus(name: str, columns: Columns) -> Columns | None:
    """Return the columns to read of a corpus by name or path; None for one without columns.

    Raises
    ------
    InvalidInputError
        As `checked_columns`; no such corpus; or columns of a corpus that has none.
    """
    path = check_source(name, columns)
    if path is not None:
        columns = replace(columns, text=columns.text or split_reference(name)[1])
        return _checked(path, columns).columns
    return columns if columns != Columns() else None


def checked_reference(name: str, columns: Columns | None = None) -> str:
    """Return the name of a corpus, as NAME#COLUMN where a column of texts is named.

    What a study calls its corpus: the one word says which texts were read.

    Raises
    ------
    InvalidInputError
        As `checked_corpus`.
    """
    columns = columns or Columns()
    checked_corpus(name, columns)
    return name if columns.text is None else f"{split_reference(name)[0]}#{columns.text}"


def show_notes(corpus: Corpus, name: str) -> None:
    """Tell what a corpus that could not be checked before, such as one of a hub, was read as."""
    if check_source(name) is None:
        for note in corpus.notes:  # of a hub, a guess is all there is to tell
            show_note(note + _CHOICE)


def _checked(path: Path, columns: Columns) -> FileFacts:
    facts = facts_of(path, columns)
    check_holds_text(path, facts)
    for i, note in enumerate(facts.notes):
        show_note(note + _CHOICE if facts.is_guessed and i == 0 else note)
    return facts
