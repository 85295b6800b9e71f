"""Privatise a file: one column of texts changed, all else and the order of rows kept.

Rows stream through in batches, so a large file needs no more memory than a small one. The result
appears under its name only when it is complete, and never in the place of another file.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from core.corpora.guess import facts_of
from core.corpora.memory_file import File
from core.corpora.parquet_table import BATCH_ROWS, ParquetTable, values_of
from core.corpora.raw_files import MAX_TEXT_CHARACTERS, read_lines, refusal
from core.corpora.rows import Columns, check_whole
from core.corpora.tables import CsvTable, JsonTable, kind_of, open_table
from core.durable import unfinished
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.store import check_folder, storage_errors

__all__ = ["BATCH_ROWS", "ChangeTexts", "privatize_file"]

ChangeTexts = Callable[[Sequence[str]], "list[str] | np.ndarray"]
"""Texts to texts, or texts to an array (n, d) of vectors that take the texts' place."""


def privatize_file(
    source: Path,
    target: Path,
    change: ChangeTexts,
    *,
    column: str | None = None,
    on_progress: OnProgress = no_progress,
) -> int:
    """Write `source` to `target` with the texts of one column changed; return the rows.

    Parameters
    ----------
    source : Path
        Plain text (a text a line), CSV, TSV, JSONL or Parquet.
    target : Path
        Of the same kind, in UTF-8; vectors can be written to Parquet only, as the column
        `vector`.
    change : callable
        Applied to the texts of a batch. Cells without any text stay as they are.
    column : str, optional
        Of the texts in a table; the longest by default.

    Raises
    ------
    InvalidInputError
        `target` exists, is of another kind, or `source` cannot be read; nothing is written then.
    StorageError
        The disk is full; no unfinished file is left.
    """
    kind = kind_of(source)
    if kind_of(target) != kind:
        raise InvalidInputError(
            f"{target}: must be of the kind of {source.name}. Give it the ending "
            f"{source.suffix or '.txt'}."
        )
    _refuse_existing(target)
    column = facts_of(source, Columns(text=column)).columns.text
    table = open_table(source, column)
    if table is not None and not table.names:
        raise refusal(source, "", "holds no text. Give at least one.")
    check_folder(target)
    write = _WRITERS.get(kind, _plain)
    with storage_errors(target), unfinished(target.parent) as file:
        n_rows = write(table or source, file.path, _keeping_blanks(change), column, on_progress)
        try:
            file.seal(target, is_new=True)
        except FileExistsError:  # it came to be meanwhile
            _refuse_existing(target)
    return n_rows


def _refuse_existing(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise InvalidInputError(f"{target} exists and is not overwritten. Name another file.")


def _keeping_blanks(change: ChangeTexts) -> ChangeTexts:
    """Pass on only texts that hold something; vectors of the others are zero."""

    def changed(texts: Sequence[str]) -> list[str] | np.ndarray:
        written = [i for i, text in enumerate(texts) if text and not text.isspace()]
        answers = change([texts[i] for i in written]) if written else []
        if isinstance(answers, np.ndarray):
            vectors = np.zeros((len(texts), answers.shape[1]), np.float32)
            vectors[written] = answers
            return vectors
        whole = list(texts)
        for i, answer in zip(written, answers, strict=True):
            whole[i] = answer
        return whole

    return changed


def _texts(path: File, answers: list[str] | np.ndarray) -> list[str]:
    if isinstance(answers, np.ndarray):
        raise refusal(
            path, "", "cannot hold vectors. Give Parquet, or choose the text-to-text mechanism."
        )
    return answers


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, BATCH_ROWS)):
        yield batch


def _checked(source: File, place: str, cell: Any) -> str:
    """Return a cell as text; None becomes the empty text."""
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise refusal(source, place, f"holds {type(cell).__name__}, not text. Name another column.")
    if len(cell) > MAX_TEXT_CHARACTERS:
        raise refusal(source, place, f"is longer than {MAX_TEXT_CHARACTERS:,} characters. Cut it.")
    return cell


def _written(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="")


def _plain(source: Path, out: Path, change: ChangeTexts, _: None, on_progress: OnProgress) -> int:
    n_rows = 0
    with _written(out) as file:
        for batch in _batches(read_lines(source)):
            lines = [_checked(source, place, line.rstrip("\r\n")) for place, line in batch]
            for answer, (_place, line) in zip(_texts(source, change(lines)), batch, strict=True):
                ending = line[len(line.rstrip("\r\n")) :]
                # A privatised text holds no line break of its own: rows stay rows.
                file.write(" ".join(answer.splitlines()) + ending)
            n_rows += len(batch)
            on_progress(_share(source, file.tell()), f"{n_rows:,} lines")
    return n_rows


def _csv(
    table: CsvTable, out: Path, change: ChangeTexts, column: str, on_progress: OnProgress
) -> int:
    at, n_rows = table.names.index(column), 0
    with _written(out) as file:
        writer = csv.writer(file, delimiter=table.delimiter, lineterminator="\n")
        writer.writerow(table.header)
        for batch in _batches(table.whole_rows()):
            texts = [_checked(table.file, place, cells[at]) for place, cells in batch]
            for (_place, cells), answer in zip(
                batch, _texts(table.file, change(texts)), strict=True
            ):
                writer.writerow([*cells[:at], answer, *cells[at + 1 :]])
            n_rows += len(batch)
            on_progress(_share(table.file, file.tell()), f"{n_rows:,} rows")
    return n_rows


def _jsonl(
    table: JsonTable, out: Path, change: ChangeTexts, column: str, on_progress: OnProgress
) -> int:
    n_rows = 0
    with _written(out) as file:
        for batch in _batches(table.records()):
            texts = [_checked(table.file, p, _value(table.file, p, r, column)) for p, r in batch]
            for (_place, record), answer in zip(
                batch, _texts(table.file, change(texts)), strict=True
            ):
                if record[column] is not None:
                    record[column] = answer
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            n_rows += len(batch)
            on_progress(_share(table.file, file.tell()), f"{n_rows:,} rows")
    return n_rows


def _value(source: File, place: str, record: dict[str, Any], column: str) -> Any:
    """Return a field of a record whose other fields can be written again."""
    if column not in record:
        raise refusal(source, place, f"is not a JSON object with {column!r}.")
    for name, value in record.items():
        check_whole(source, place, repr(name), json.dumps([name, value], ensure_ascii=False))
    return record[column]


def _parquet(
    table: ParquetTable, out: Path, change: ChangeTexts, column: str, on_progress: OnProgress
) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    at, n_rows = table.names.index(column), 0
    with ExitStack() as stack:
        file = stack.enter_context(table.opened())
        writer = None
        for batch in table.batches(file):
            found = values_of(table.file, batch.column(at), n_rows)
            cells = [_checked(table.file, f"row {n_rows + i}", c) for i, c in enumerate(found, 1)]
            whole = _replaced(pa.Table.from_batches([batch]), at, found, change(cells))
            writer = writer or stack.enter_context(
                pq.ParquetWriter(out, whole.schema, compression="zstd")
            )
            writer.write_table(whole)
            n_rows += batch.num_rows
            on_progress(n_rows / max(file.metadata.num_rows, 1), f"{n_rows:,} rows")
    if not n_rows:
        raise refusal(table.file, "", "holds no row. Give at least one.")
    return n_rows


def _replaced(table: Any, at: int, cells: list[Any], answers: list[str] | np.ndarray) -> Any:
    """Return the table with the answers in the place of a column; an empty cell stays empty."""
    import pyarrow as pa

    if isinstance(answers, np.ndarray):
        flat = pa.array(answers.ravel(), pa.float32())
        vectors = pa.FixedSizeListArray.from_arrays(flat, answers.shape[1])
        return table.remove_column(at).append_column("vector", vectors)
    kept = [None if cell is None else answer for cell, answer in zip(cells, answers, strict=True)]
    return table.set_column(at, table.schema.names[at], pa.array(kept, pa.string()))


def _share(source: File, n_written: int) -> float:
    """Estimate progress by bytes: a privatised text is about as long as the text."""
    n_bytes = source.stat().st_size if isinstance(source, Path) else len(source.content)
    return min(1.0, n_written / max(n_bytes, 1))


_WRITERS: dict[str, Callable[..., int]] = {
    "CSV": _csv,
    "TSV": _csv,
    "JSONL": _jsonl,
    "Parquet": _parquet,
}
