"""Wrappers around a batch transform: readable releases, and a CSV of each text before and after."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from leakscope.core.defences.metric_dp.files import Answers, ChangeBatches, zip_answers
from leakscope.core.errors import InvalidInputError
from leakscope.core.spreadsheets import neutral_cell
from leakscope.core.storage.artifacts import check_folder, storage_errors
from leakscope.core.storage.atomic_files import unfinished

_PIECE = "##"
"""Marks a token that continues the previous word; the first token of a text continues none."""


def strip_leading_mark(change: ChangeBatches) -> ChangeBatches:
    """Wrap a batch transform so that a released text never begins with the word-piece mark `##`.

    Word pieces are joined to the word before by the tokenizer itself.
    """

    def read(answers: Answers) -> Answers:
        if isinstance(answers, np.ndarray):
            return answers
        return [answer.removeprefix(_PIECE) for answer in answers]

    return lambda batches: map(read, change(batches))


@contextmanager
def write_before_and_after(change: ChangeBatches, target: Path | None) -> Iterator[ChangeBatches]:
    """Wrap a batch transform so that each text and its replacement are written to a CSV file.

    Cells that a spreadsheet would take for a formula are neutralised.

    Parameters
    ----------
    target : Path, optional
        Must not exist; it appears when all is written. Without one, nothing is written.

    Raises
    ------
    InvalidInputError
        The file exists, is no CSV file, or the mechanism releases vectors.
    StorageError
        The disk is full; no unfinished file is left.
    """
    if target is None:
        yield change
        return
    if target.suffix.lower() != ".csv":
        raise InvalidInputError(
            f"{target}: before and after are written as CSV. Use a name that ends in .csv."
        )
    if target.exists() or target.is_symlink():
        raise InvalidInputError(f"{target} exists and is not overwritten. Name another file.")
    check_folder(target)
    with storage_errors(target), unfinished(target.parent) as file:
        with file.path.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(["before", "after"])

            def changed(batches: Iterable[Sequence[str]]) -> Iterator[Answers]:
                for texts, answers in zip_answers(change, batches, list):
                    if isinstance(answers, np.ndarray):
                        raise InvalidInputError(
                            "Vectors cannot be listed beside texts. Omit --beside, or choose a "
                            "mechanism that releases texts."
                        )
                    writer.writerows(
                        map(neutral_cell, pair) for pair in zip(texts, answers, strict=True)
                    )
                    yield answers

            yield changed
        file.seal(target, is_new=True)
