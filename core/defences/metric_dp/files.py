"""Privatise a file: one column of texts changed, all else and the order of rows kept.

Rows stream through in batches, so a large file needs no more memory than a small one. The result
appears under its name only when it is complete, and never in the place of another file.
"""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO, TypeVar

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

__all__ = ["BATCH_ROWS", "Answers", "ChangeBatches", "each", "privatize_file", "with_answers"]

Answers = Sequence[str] | np.ndarray
"""Texts, or an array (n, d) of vectors that take the texts' place."""

ChangeBatches = Callable[[Iterable[Sequence[str]]], Iterator[Answers]]
"""Gives the answers to each batch of texts, in their order; the next may be read before."""

_T = TypeVar("_T")


def each(change: Callable[[Sequence[str]], Answers]) -> ChangeBatches:
    """Return what changes batches, one after the other, as they come."""
    return partial(map, change)


def with_answers(
    change: ChangeBatches, batches: Iterable[_T], texts_of: Callable[[_T], Sequence[str]]
) -> Iterator[tuple[_T, Answers]]:
    """Give each batch, of whatever holds texts, with the answers to these."""
    waiting: deque[_T] = deque()

    def texts() -> Iterator[Sequence[str]]:
        for batch in batches:
            waiting.append(batch)
            yield texts_of(batch)

    for answers in change(texts()):
        yield waiting.popleft(), answers


def privatize_file(
    source: Path,
    target: Path,
    change: ChangeBatches,
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
        Applied to the texts of all batches. Cells without any text stay as they are.
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


def _keeping_blanks(change: ChangeBatches) -> ChangeBatches:
    """Pass on only texts that hold something; vectors of the others are zero."""

    def written_of(texts: Sequence[str]) -> list[int]:
        return [i for i, text in enumerate(texts) if text and not text.isspace()]

    def changed(batches: Iterable[Sequence[str]]) -> Iterator[Answers]:
        pairs = ((texts, written_of(texts)) for texts in batches)
        found = with_answers(change, pairs, lambda pair: [pair[0][i] for i in pair[1]])
        for (texts, written), answers in found:
            if isinstance(answers, np.ndarray):
                vectors = np.zeros((len(texts), answers.shape[1]), np.float32)
                vectors[written] = answers
                yield vectors
                continue
            whole = list(texts)
            for i, answer in zip(written, answers, strict=True):
                whole[i] = answer
            yield whole

    return changed


def _texts(path: File, answers: Answers) -> Sequence[str]:
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


def _plain(source: Path, out: Path, change: ChangeBatches, _: None, on_progress: OnProgress) -> int:
    def texts_of(batch: list[Any]) -> list[str]:
        return [_checked(source, place, line.rstrip("\r\n")) for place, line in batch]

    n_rows = 0
    with _written(out) as file:
        for batch, answers in with_answers(change, _batches(read_lines(source)), texts_of):
            for answer, (_place, line) in zip(_texts(source, answers), batch, strict=True):
                ending = line[len(line.rstrip("\r\n")) :]
                # A privatised text holds no line break of its own: rows stay rows.
                file.write(" ".join(answer.splitlines()) + ending)
            n_rows += len(batch)
            on_progress(_share(source, file.tell()), f"{n_rows:,} lines")
    return n_rows


def _csv(
    table: CsvTable, out: Path, change: ChangeBatches, column: str, on_progress: OnProgress
) -> int:
    at, n_rows = table.names.index(column), 0

    def texts_of(batch: list[Any]) -> list[str]:
        return [_checked(table.file, place, cells[at]) for place, cells in batch]

    with _written(out) as file:
        writer = csv.writer(file, delimiter=table.delimiter, lineterminator="\n")
        writer.writerow(table.header)
        for batch, answers in with_answers(change, _batches(table.whole_rows()), texts_of):
            for (_place, cells), answer in zip(batch, _texts(table.file, answers), strict=True):
                writer.writerow([*cells[:at], answer, *cells[at + 1 :]])
            n_rows += len(batch)
            on_progress(_share(table.file, file.tell()), f"{n_rows:,} rows")
    return n_rows


def _jsonl(
    table: JsonTable, out: Path, change: ChangeBatches, column: str, on_progress: OnProgress
) -> int:
    def texts_of(batch: list[Any]) -> list[str]:
        return [_checked(table.file, p, _value(table.file, p, r, column)) for p, r in batch]

    n_rows = 0
    with _written(out) as file:
        for batch, answers in with_answers(change, _batches(table.records()), texts_of):
            for (_place, record), answer in zip(batch, _texts(table.file, answers), strict=True):
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
    table: ParquetTable, out: Path, change: ChangeBatches, column: str, on_progress: OnProgress
) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    at, n_rows = table.names.index(column), 0
    with ExitStack() as stack:
        file = stack.enter_context(table.opened())
        writer, cells = None, _cells(table, file, at)
        for (batch, found, _), answers in with_answers(change, cells, itemgetter(2)):
            whole = _replaced(pa.Table.from_batches([batch]), at, found, answers)
            writer = writer or stack.enter_context(
                pq.ParquetWriter(out, whole.schema, compression="zstd")
            )
            writer.write_table(whole)
            n_rows += batch.num_rows
            on_progress(n_rows / max(file.metadata.num_rows, 1), f"{n_rows:,} rows")
    if not n_rows:
        raise refusal(table.file, "", "holds no row. Give at least one.")
    return n_rows


def _cells(table: ParquetTable, file: Any, at: int) -> Iterator[tuple[Any, list[Any], list[str]]]:
    """Give each batch, what its column holds, and that as text."""
    n_rows = 0
    for batch in table.batches(file):
        found = values_of(table.file, batch.column(at), n_rows)
        checked = [_checked(table.file, f"row {n_rows + i}", c) for i, c in enumerate(found, 1)]
        yield batch, found, checked
        n_rows += batch.num_rows


def _replaced(table: Any, at: int, cells: list[Any], answers: Answers) -> Any:
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
