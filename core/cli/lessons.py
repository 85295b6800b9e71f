"""Texts that something is trained on and kept in a folder: the arguments, the texts, the folder.

Shared by `defend` and `train-private`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from core.cli.arguments import add_column_arguments, add_encoder_arguments
from core.corpora import Columns
from core.errors import InvalidInputError

__all__ = ["CHECKPOINT", "add_lesson_arguments", "check_limit", "is_free", "read_lesson"]

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


def read_lesson(given: argparse.Namespace, columns: Columns) -> tuple[list[str], list[str] | None]:
    """Return the texts, and their labels where a column of these is named: then those with one."""
    from core.corpora import load_corpus

    check_limit(given.limit)
    found = load_corpus(given.texts, columns=columns).documents
    known = [d for d in found if given.label_column is None or d.label is not None]
    chosen = known[: given.limit]
    labels = None if given.label_column is None else [str(d.label) for d in chosen]
    return [d.text for d in chosen], labels


def is_free(out: Path) -> bool:
    """Whether a folder holds no more than the checkpoint of a run that was stopped."""
    if not out.exists():
        return True
    return out.is_dir() and all(path.name == CHECKPOINT for path in out.iterdir())
