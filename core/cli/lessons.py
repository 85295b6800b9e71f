"""Texts that something is trained on and kept in a folder: the arguments, the texts, the folder.

Shared by `defend` and `train-private`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from core.cli.arguments import add_column_arguments, add_encoder_arguments
from core.cli.output import show_note
from core.corpora import Columns
from core.errors import InvalidInputError

if TYPE_CHECKING:
    from core.corpora.document import Document

__all__ = ["CHECKPOINT", "add_lesson_arguments", "check_limit", "is_free", "read_documents",
           "read_lesson"]  # fmt: skip

CHECKPOINT = "checkpoint"
"""The folder beneath `--out` of a run that was stopped."""


def add_lesson_arguments(parser: argparse.ArgumentParser, *, label: str, rows: str) -> None:
    """Declare the encoder, the texts with their columns, and where what is trained is written.

    Parameters
    ----------
    label : str
        What the column of labels is of.
    rows : str
        How texts stand in the file.
    """
    add_encoder_arguments(parser)
    parser.add_argument("--texts", type=Path, required=True, metavar="FILE",
                        help=f"texts to train on, {rows} each")  # fmt: skip
    add_column_arguments(parser, label=label)
    parser.add_argument("--limit", type=int, help="texts taken, from the first")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="written here")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def check_limit(limit: int | None) -> None:
    """Raise InvalidInputError for a limit that leaves too few texts."""
    if limit is not None and limit < 2:
        raise InvalidInputError(f"--limit must be at least 2, got {limit}.")


def read_documents(given: argparse.Namespace, columns: Columns) -> list[Document]:
    """Return the documents to train on: those with a label where a column of labels is named."""
    from core.corpora import load_corpus
    from core.corpora.labels import alike_note

    check_limit(given.limit)
    found = load_corpus(given.texts, columns=columns).documents
    known = [d for d in found if given.label_column is None or d.label is not None]
    chosen = known[: given.limit]
    labels = () if given.label_column is None else tuple(str(d.label) for d in chosen)
    if note := alike_note(labels, what="labels"):
        show_note(note)
    return chosen


def read_lesson(given: argparse.Namespace, columns: Columns) -> tuple[list[str], list[str] | None]:
    """Return the texts, and their labels where a column of these is named: then those with one."""
    chosen = read_documents(given, columns)
    labels = None if given.label_column is None else [str(d.label) for d in chosen]
    return [d.text for d in chosen], labels


def is_free(out: Path) -> bool:
    """Whether a folder holds no more than the checkpoint of a run that was stopped."""
    if not out.exists():
        return True
    return out.is_dir() and all(path.name == CHECKPOINT for path in out.iterdir())
