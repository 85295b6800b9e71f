"""What is released as people read it, and before and after side by side."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from core.defences.metric_dp.files import Answers, ChangeBatches, with_answers
from core.durable import unfinished
from core.errors import InvalidInputError
from core.spreadsheets import neutral_cell
from core.store import check_folder, storage_errors

__all__ = ["readable", "side_by_side"]

_PIECE = "##"
"""Marks a token that goes on with the word before; at the start of a text there is none."""


def readable(change: ChangeBatches) -> ChangeBatches:
    """Return what changes batches likewise, a piece that begins a text without its mark.

    Word pieces are joined to the word before by the tokenizer itself.
    """

    def read(answers: Answers) -> Answers:
        if isinstance(answers, np.ndarray):
            return answers
        return [answer.removeprefix(_PIECE) for answer in answers]

    return lambda batches: map(read, change(batches))


@contextmanager
def side_by_side(change: ChangeBatches, target: Path | None) -> Iterator[ChangeBatches]:
    """Yield what changes batches likewise, and writes each beside what became of it, as CSV.

    No cell is a formula to a spreadsheet.

    Parameters
    ----------
    target : Path, optional
        Must not exist; it appears when all is written. Without one, nothing is written.

    Raises
    ------
    InvalidInputError
        There is such a file, it is no CSV, or vectors are released: they are no text.
    StorageError
        The disk is full; no unfinished file is left.
    """
    if target is None:
        yield change
        return
    if target.suffix.lower() != ".csv":
        raise InvalidInputError(f"{target}: before and after are written as CSV. End it in .csv.")
    if target.exists() or target.is_symlink():
        raise InvalidInputError(f"{target} exists and is not overwritten. Name another file.")
    check_folder(target)
    with storage_errors(target), unfinished(target.parent) as file:
        with file.path.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(["before", "after"])

            def changed(batches: Iterable[Sequence[str]]) -> Iterator[Answers]:
                for texts, answers in with_answers(change, batches, list):
                    if isinstance(answers, np.ndarray):
                        raise InvalidInputError(
                            "Vectors cannot stand beside texts. Leave --beside out, or choose a "
                            "mechanism that releases texts."
                        )
                    writer.writerows(
                        map(neutral_cell, pair) for pair in zip(texts, answers, strict=True)
                    )
                    yield answers

            yield changed
        file.seal(target, is_new=True)
