"""Privatise a file: one column of texts changed, all else and the order of rows kept.

Rows stream through in batches, so a large file needs no more memory than a small one. The result
appears under its name only when it is complete, and never in the place of another file.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from core.corpora.raw_files import MAX_TEXT_CHARACTERS, check_file, read_lines, refusal
from core.corpora.rows import Columns
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.store import storage_errors

__all__ = ["ChangeTexts", "privatize_file"]

ChangeTexts = Callable[[Sequence[str]], "list[str] | np.ndarray"]
"""Texts to texts, or texts to an array (n, d) of vectors that take the texts' place."""

BATCH_ROWS = 2048

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


def privatize_file(
    source: Path,
    target: Path,
    change: ChangeTexts,
    *,
    column: str = "text",
    on_progress: OnProgress = no_progress,
) -> int:
    """Write `source` to `target` with the texts of one column changed; return the rows.

    Parameters
    ----------
    source : Path
        Plain text (a text a line), CSV, TSV, JSONL or Parquet.
    target : Path
        Of the same kind; vectors can be written to Parquet only, as the column `vector`.
    change : callable
        Applied to the texts of a batch. Cells without any text stay as they are.

    Raises
    ------
    InvalidInputError
        `target` exists, is of another kind, or `source` cannot be read; nothing is written then.
    StorageError
        The disk is full; no unfinished file is left.
    """
    kind = source.suffix.lower()
    write = _WRITERS.get(kind, _plain)
    if (_WRITERS.get(target.suffix.lower(), _plain)) is not write or (
        kind in _DELIMITERS and _DELIMITERS[kind] != _DELIMITERS.get(target.suffix.lower())
    ):
        raise InvalidInputError(
            f"{target}: must be of the kind of {source.name}. Give it the ending {kind or '.txt'}."
        )
    _refuse_existing(target)
    check_file(source, is_parquet=write is _parquet)
    with storage_errors(target):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    unfinished = Path(name)
    os.close(handle)
    try:
        with storage_errors(target):
            n_rows = write(source, unfinished, _keeping_blanks(change), column, on_progress)
            unfinished.chmod(0o644)
            try:
                os.link(unfinished, target)  # fails where a file came to be meanwhile
            except FileExistsError:
                _refuse_existing(target)
            except OSError:  # a file system without links
                _refuse_existing(target)
                unfinished.rename(target)
        return n_rows
    finally:
        unfinished.unlink(missing_ok=True)


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


def _texts(path: Path, answers: list[str] | np.ndarray) -> list[str]:
    if isinstance(answers, np.ndarray):
        raise refusal(
            path, "", "cannot hold vectors. Give Parquet, or choose the text-to-text mechanism."
        )
    return answers


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, BATCH_ROWS)):
        yield batch


def _checked(source: Path, place: str, cell: Any) -> str:
    """Return a cell as text; None becomes the empty text."""
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise refusal(source, place, f"holds {type(cell).__name__}, not text. Name another column.")
    if len(cell) > MAX_TEXT_CHARACTERS:
        raise refusal(source, place, f"is longer than {MAX_TEXT_CHARACTERS:,} characters. Cut it.")
    return cell


def _plain(source: Path, out: Path, change: ChangeTexts, _: str, on_progress: OnProgress) -> int:
    n_rows = 0
    with out.open("w", encoding="utf-8", newline="") as file:
        for batch in _batches(read_lines(source)):
            lines = [_checked(source, place, line.rstrip("\r\n")) for place, line in batch]
            for answer, (_place, line) in zip(_texts(source, change(lines)), batch, strict=True):
                ending = line[len(line.rstrip("\r\n")) :]
                # A privatised text holds no line break of its own: rows stay rows.
                file.write(" ".join(answer.splitlines()) + ending)
            n_rows += len(batch)
            on_progress(_share(source, file.tell()), f"{n_rows:,} lines")
    return n_rows


def _table(
    source: Path, out: Path, change: ChangeTexts, column: str, on_progress: OnProgress
) -> int:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_TEXT_CHARACTERS + 1))
    lines = (line for _, line in read_lines(source))
    head = next(lines, "")
    delimiter = _DELIMITERS[source.suffix.lower()]
    if delimiter == "," and column not in next(csv.reader([head]), []) and ";" in head:
        delimiter = ";"
    reader = csv.reader(_chain(head, lines), delimiter=delimiter, strict=True)
    n_rows = 0
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        try:
            header = next(reader)
            at = header.index(Columns(text=column).within(source, header)["text"])
            writer.writerow(header)
            for batch in _batches(reader):
                for cells in batch:
                    if len(cells) != len(header):
                        raise refusal(
                            source,
                            f"row {n_rows + 1 + batch.index(cells)}",
                            f"has {len(cells)} cells where the header has {len(header)}.",
                        )
                texts = [_checked(source, f"row {n_rows + i}", r[at]) for i, r in enumerate(batch)]
                for cells, answer in zip(batch, _texts(source, change(texts)), strict=True):
                    writer.writerow([*cells[:at], answer, *cells[at + 1 :]])
                n_rows += len(batch)
                on_progress(_share(source, file.tell()), f"{n_rows:,} rows")
        except csv.Error as error:
            raise refusal(source, f"line {reader.line_num}", f"is not CSV ({error}).") from error
    return n_rows


def _chain(head: str, lines: Iterator[str]) -> Iterator[str]:
    yield head
    yield from lines


def _jsonl(
    source: Path, out: Path, change: ChangeTexts, column: str, on_progress: OnProgress
) -> int:
    n_rows = 0
    with out.open("w", encoding="utf-8") as file:
        for batch in _batches((p, line) for p, line in read_lines(source) if line.strip()):
            records = [_record(source, place, line, column) for place, line in batch]
            texts = [
                _checked(source, place, record[column])
                for (place, _), record in zip(batch, records, strict=True)
            ]
            for record, answer in zip(records, _texts(source, change(texts)), strict=True):
                if record[column] is not None:
                    record[column] = answer
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            n_rows += len(batch)
            on_progress(_share(source, file.tell()), f"{n_rows:,} rows")
    return n_rows


def _record(source: Path, place: str, line: str, column: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise refusal(source, place, "is not JSON. Write one object a line.") from error
    if not isinstance(record, dict) or column not in record:
        raise refusal(source, place, f"is not a JSON object with {column!r}.")
    return record


def _parquet(
    source: Path, out: Path, change: ChangeTexts, column: str, on_progress: OnProgress
) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = 0
    writer = None
    try:
        with pq.ParquetFile(source) as file:
            names = file.schema_arrow.names
            at = names.index(Columns(text=column).within(source, names)["text"])
            for batch in file.iter_batches(BATCH_ROWS):
                cells = batch.column(at).to_pylist()
                answers = change(
                    [_checked(source, f"row {n_rows + i}", c) for i, c in enumerate(cells, 1)]
                )
                table = _replaced(pa.Table.from_batches([batch]), at, cells, answers)
                writer = writer or pq.ParquetWriter(out, table.schema, compression="zstd")
                writer.write_table(table)
                n_rows += batch.num_rows
                on_progress(n_rows / max(file.metadata.num_rows, 1), f"{n_rows:,} rows")
            if writer is None:
                raise refusal(source, "", "holds no row. Give at least one.")
    except (pa.ArrowException, EOFError, UnicodeDecodeError) as error:
        raise refusal(
            source, f"after row {n_rows}", "is truncated, damaged or not Parquet."
        ) from error
    finally:
        if writer is not None:
            writer.close()
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


def _share(source: Path, n_written: int) -> float:
    """Estimate progress by bytes: a privatised text is about as long as the text."""
    return min(1.0, n_written / max(source.stat().st_size, 1))


_WRITERS = {
    ".csv": _table,
    ".tsv": _table,
    ".tab": _table,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".parquet": _parquet,
    ".pq": _parquet,
}
