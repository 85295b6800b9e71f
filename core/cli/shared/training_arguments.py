"""Arguments, texts and output folder of commands that train: `defend` and `train-private`.

Shared by `defend` and `train-private`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from leakscope.core.cli.shared.arguments import add_column_arguments, add_encoder_arguments
from leakscope.core.cli.shared.output import show_note
from leakscope.core.corpora import Columns, load_corpus
from leakscope.core.corpora.document import Document
from leakscope.core.corpora.labels import near_identical_note
from leakscope.core.errors import InvalidInputError

CHECKPOINT = "checkpoint"
"""The folder below `--out` with the checkpoint of a stopped run."""


def add_training_arguments(parser: argparse.ArgumentParser, *, label: str, rows: str) -> None:
    """Add the options for the encoder, the training texts and their columns, and the output folder.

    Parameters
    ----------
    label : str
        Description of the column of labels.
    rows : str
        How the file separates texts, such as `a row`.
    """
    add_encoder_arguments(parser)
    parser.add_argument(
        "--texts", type=Path, required=True, metavar="FILE", help=f"texts to train on, {rows} each"
    )
    add_column_arguments(parser, label=label)
    parser.add_argument("--limit", type=int, help="use only the first N texts")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def check_limit(limit: int | None) -> None:
    """Raise InvalidInputError if `--limit` leaves fewer than two texts."""
    if limit is not None and limit < 2:
        raise InvalidInputError(f"--limit must be at least 2, got {limit}.")


def read_documents(given: argparse.Namespace, columns: Columns) -> list[Document]:
    """Read the training documents; with a label column, only those that have a label."""
    check_limit(given.limit)
    found = load_corpus(given.texts, columns=columns).documents
    known = [d for d in found if given.label_column is None or d.label is not None]
    chosen = known[: given.limit]
    labels = () if given.label_column is None else tuple(str(d.label) for d in chosen)
    if note := near_identical_note(labels, what="labels"):
        show_note(note)
    return chosen


def read_training_texts(
    given: argparse.Namespace, columns: Columns
) -> tuple[list[str], list[str] | None]:
    """Read the training texts and, with a label column, the labels of those that have one."""
    chosen = read_documents(given, columns)
    labels = None if given.label_column is None else [str(d.label) for d in chosen]
    return [d.text for d in chosen], labels


def is_free(out: Path) -> bool:
    """Return whether a folder is empty except for the checkpoint of a stopped run."""
    if not out.exists():
        return True
    return out.is_dir() and all(path.name == CHECKPOINT for path in out.iterdir())
