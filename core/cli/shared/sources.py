"""Check the text files and corpora that a command is given, before anything is loaded.

A missing or unreadable file and a missing or empty column are reported at once, before a model or
a library for models is loaded.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leakscope.core.cli.shared.output import show_note
from leakscope.core.corpora import Columns, Corpus, check_source, split_reference
from leakscope.core.corpora.guess import FileFacts, check_holds_text, inspect_file

_CHOICE = "; choose another with --text-column"


def checked_columns(path: Path, columns: Columns) -> Columns:
    """Check a file of texts and return the columns to read; print which column was guessed.

    Raises
    ------
    InvalidInputError
        The file cannot be read, a column is not there, or that of the texts holds none.
    """
    return _inspect_and_note(path, columns).columns


def checked_corpus(name: str, columns: Columns) -> Columns | None:
    """Check a corpus, given by name or path; return the columns to read, or None if it has none.

    Raises
    ------
    InvalidInputError
        As `checked_columns`; no such corpus; or columns of a corpus that has none.
    """
    path = check_source(name, columns)
    if path is not None:
        columns = replace(columns, text=columns.text or split_reference(name)[1])
        return _inspect_and_note(path, columns).columns
    return columns if columns != Columns() else None


def checked_reference(name: str, columns: Columns | None = None) -> str:
    """Check a corpus; return its name or path, as NAME#COLUMN if a text column was given.

    Studies store this reference: it identifies the texts that were read.

    Raises
    ------
    InvalidInputError
        As `checked_corpus`.
    """
    columns = columns or Columns()
    checked_corpus(name, columns)
    return name if columns.text is None else f"{split_reference(name)[0]}#{columns.text}"


def show_notes(corpus: Corpus, name: str) -> None:
    """Print how a loaded corpus was read, if that could not be checked before loading."""
    if check_source(name) is None:
        for note in corpus.notes:  # the notes of a hub's corpus are all guesses
            show_note(note + _CHOICE)


def _inspect_and_note(path: Path, columns: Columns) -> FileFacts:
    """Check that a file has the columns and holds text; print notes on it; return its facts."""
    facts = inspect_file(path, columns)
    check_holds_text(path, facts)
    for i, note in enumerate(facts.notes):
        show_note(note + _CHOICE if facts.is_guessed and i == 0 else note)
    return facts
