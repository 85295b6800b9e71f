"""Privatise a file: one column of texts changed, all else and the order of rows kept.

Rows stream through in batches, so a large file needs no more memory than a small one. The result
appears under its name only when it is complete, and never in the place of another file.
"""

from __future__ import annotations

import csv
import json
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np

from core.corpora.guess import facts_of
from core.corpora.memory_file import File
from core.corpora.nested import leaf_names, leaf_of, set_leaf
from core.corpora.parquet_table import BATCH_ROWS, ParquetTable, values_of
from core.corpora.raw_files import MAX_TEXT_CHARACTERS, read_lines, refusal
from core.corpora.rows import Columns, check_whole
from core.corpora.tables import CsvTable, JsonTable, kind_of, open_table
from core.defences.metric_dp.identifiers import PassedThrough
from core.durable import unfinished
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.store import check_folder, storage_errors

__all__ = [
    "BATCH_ROWS",
    "Answers",
    "ChangeBatches",
    "PrivatizedFile",
    "each",
    "privatize_file",
    "with_answers",
]

Answers = Sequence[str] | np.ndarray
"""Texts, or an array (n, d) of vectors that take the texts' place."""

ChangeBatches = Callable[[Iterable[Sequence[str]]], Iterator[Answers]]
"""Gives the answers to each batch of texts, in their order; the next may be read before."""

VECTOR_COLUMN = "vector"
"""Takes the place of the texts where vectors are released."""

SAMPLE_TEXTS = 40

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


@dataclass
class PrivatizedFile:
    """What was written, and what of the source it still holds.

    Attributes
    ----------
    n_rows : int
    passed : PassedThrough
        The columns that were not changed, and the identifiers left in the file.
    texts : list of str
        Up to 40 texts of the source, drawn at random: what a report on this file is about. They
        are not in the file that was written.
    """

    n_rows: int = 0
    passed: PassedThrough = field(default_factory=PassedThrough)
    texts: list[str] = field(default_factory=list)
    _n_texts: int = 0
    _rng: random.Random = field(default_factory=lambda: random.Random(0))

    def note(self, texts: Sequence[str], answers: Answers) -> None:
        """Count the identifiers of a batch, and draw some of its texts (a reservoir)."""
        for i, text in enumerate(texts):
            if not text or text.isspace():
                continue
            after = None if isinstance(answers, np.ndarray) else answers[i]
            self.passed.count_text(text, after)
            self._n_texts += 1
            if len(self.texts) < SAMPLE_TEXTS:
                self.texts.append(text)
            elif (place := self._rng.randrange(self._n_texts)) < SAMPLE_TEXTS:
                self.texts[place] = text


def privatize_file(
    source: Path,
    target: Path,
    change: ChangeBatches,
    *,
    column: str | None = None,
    gives_vectors: bool = False,
    on_progress: OnProgress = no_progress,
) -> PrivatizedFile:
    """Write `source` to `target` with the texts of one column changed.

    Parameters
    ----------
    source : Path
        Plain text (a text a line), CSV, TSV, JSON, JSONL or Parquet.
    target : Path
        Of the same kind, in UTF-8; Parquet where vectors are released, as the column `vector`.
        The other columns of a source that is not Parquet are then written as texts.
    change : callable
        Applied to the texts of all batches. Cells without any text stay as they are.
    column : str, optional
        Of the texts in a table; the longest by default.
    gives_vectors : bool
        Whether `change` answers with vectors.

    Raises
    ------
    InvalidInputError
        `target` exists, is of another kind, or `source` cannot be read; nothing is written then.
    StorageError
        The disk is full; no unfinished file is left.
    """
    kind = kind_of(source)
    if gives_vectors and kind_of(target) != "Parquet":
        raise InvalidInputError(
            f"{target}: vectors are written to Parquet. Give it the ending .parquet."
        )
    if not gives_vectors and kind_of(target) != kind:
        raise InvalidInputError(
            f"{target}: must be of the kind of {source.name}. Give it the ending "
            f"{source.suffix or '.txt'}."
        )
    _refuse_existing(target)
    facts = facts_of(source, Columns(text=column))
    column, passed = facts.columns.text, tuple(n for n in facts.names if n != facts.columns.text)
    if gives_vectors and VECTOR_COLUMN in passed:
        raise refusal(
            source,
            "",
            f"has a column {VECTOR_COLUMN!r}, where the protected vectors belong. Rename or remove "
            "it; if it holds the vectors of the texts before protection, do not release it.",
        )
    table = open_table(source, column)
    if table is not None and not table.names:
        raise refusal(source, "", "holds no text. Give at least one.")
    check_folder(target)
    write = _WRITERS.get(kind, _plain)
    if gives_vectors and kind != "Parquet":
        write = _vectors_of_rows
    done = PrivatizedFile(
        passed=PassedThrough(passed, tuple(n for n in facts.vectors if n in passed))
    )
    change = _noting(_keeping_blanks(change), done)
    with storage_errors(target), unfinished(target.parent) as file:
        done.n_rows = write(table or source, file.path, change, column, on_progress, done.passed)
        try:
            file.seal(target, is_new=True)
        except FileExistsError:  # it came to be meanwhile
            _refuse_existing(target)
    return done


def _noting(change: ChangeBatches, done: PrivatizedFile) -> ChangeBatches:
    """Return what changes batches likewise, and notes what they hold."""

    def changed(batches: Iterable[Sequence[str]]) -> Iterator[Answers]:
        for texts, answers in with_answers(change, batches, list):
            done.note(texts, answers)
            yield answers

    return changed


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
        raise refusal(path, "", "cannot hold vectors. Write to a file that ends in .parquet.")
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


def _plain(
    source: Path,
    out: Path,
    change: ChangeBatches,
    _: None,
    on_progress: OnProgress,
    _passed: PassedThrough,
) -> int:
    n_rows = 0
    with _written(out) as file:
        for batch, answers in with_answers(change, _batches(read_lines(source)), _lines(source)):
            for answer, (_place, line) in zip(_texts(source, answers), batch, strict=True):
                ending = line[len(line.rstrip("\r\n")) :]
                # A privatised text holds no line break of its own: rows stay rows.
                file.write(" ".join(answer.splitlines()) + ending)
            n_rows += len(batch)
            on_progress(_share(source, file.tell()), f"{n_rows:,} lines")
    return n_rows


def _lines(source: File) -> Callable[[list[Any]], list[str]]:
    """Return what gives the texts of a batch of lines."""
    return lambda batch: [_checked(source, place, line.rstrip("\r\n")) for place, line in batch]


def _csv(
    table: CsvTable,
    out: Path,
    change: ChangeBatches,
    column: str,
    on_progress: OnProgress,
    passed: PassedThrough,
) -> int:
    at, n_rows, texts_of = table.names.index(column), 0, _cells_of(table, column)
    with _written(out) as file:
        file.write(table.separator_line)
        writer = csv.writer(file, delimiter=table.delimiter, lineterminator="\n")
        writer.writerow(passed.neutral(table.header))
        for batch, answers in with_answers(change, _batches(table.whole_rows()), texts_of):
            for (_place, cells), answer in zip(batch, _texts(table.file, answers), strict=True):
                writer.writerow(passed.neutral([*cells[:at], answer, *cells[at + 1 :]]))
            _count_cells(passed, [dict(zip(table.names, cells, strict=True)) for _, cells in batch])
            n_rows += len(batch)
            on_progress(_share(table.file, file.tell()), f"{n_rows:,} rows")
    return n_rows


def _cells_of(table: CsvTable, column: str) -> Callable[[list[Any]], list[str]]:
    """Return what gives the texts of a batch of rows."""
    at = table.names.index(column)
    return lambda batch: [_checked(table.file, place, cells[at]) for place, cells in batch]


def _count_cells(passed: PassedThrough, records: Sequence[Mapping[str, Any]]) -> None:
    for name in passed.columns:
        if name not in passed.vectors:
            passed.count_cells(name, (leaf_of(record, name) for record in records))


def _json(
    table: JsonTable,
    out: Path,
    change: ChangeBatches,
    column: str,
    on_progress: OnProgress,
    passed: PassedThrough,
) -> int:
    """Write an object a line, or the whole document where the source is one."""
    n_rows = 0
    changed: list[Any] = []
    with _written(out) as file:
        batches = _batches(table.records())
        for batch, answers in with_answers(change, batches, _fields(table, column)):
            for (_place, record), answer in zip(batch, _texts(table.file, answers), strict=True):
                if leaf_of(record, column) is not None:
                    set_leaf(record, column, answer)
                if table.document is None:
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
                elif table.columns is not None and column in table.columns:
                    changed.append(record[column])
            _count_cells(passed, [record for _, record in batch])
            n_rows += len(batch)
            on_progress(_share(table.file, file.tell()), f"{n_rows:,} rows")
        if changed:  # a cell inside an object is changed in place, as a record of a list is
            table.columns[column][:] = changed  # type: ignore[index]
        if table.document is not None:
            json.dump(table.document, file, ensure_ascii=False)
            file.write("\n")
    return n_rows


def _fields(table: JsonTable, column: str) -> Callable[[list[Any]], list[str]]:
    """Return what gives the texts of a batch of records."""

    def texts_of(batch: list[Any]) -> list[str]:
        return [_checked(table.file, p, _value(table.file, p, r, column)) for p, r in batch]

    return texts_of


def _value(source: File, place: str, record: dict[str, Any], column: str) -> Any:
    """Return a field of a record whose other fields can be written again."""
    found = leaf_of(record, column)
    if found is None and column not in leaf_names(record):
        raise refusal(source, place, f"has no {column!r}. Fill it in or take the row out.")
    for name, value in record.items():
        check_whole(source, place, repr(name), json.dumps([name, value], ensure_ascii=False))
    return found


def _parquet(
    table: ParquetTable,
    out: Path,
    change: ChangeBatches,
    column: str,
    on_progress: OnProgress,
    passed: PassedThrough,
) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = 0
    with ExitStack() as stack:
        file = stack.enter_context(table.opened())
        writer, cells = None, _cells(table, file, column)
        for (batch, found, _), answers in with_answers(change, cells, itemgetter(2)):
            path = table.paths[column]
            whole = _replaced(pa.Table.from_batches([batch]), path, found, answers)
            writer = writer or stack.enter_context(
                pq.ParquetWriter(out, whole.schema, compression="zstd")
            )
            writer.write_table(whole)
            for name in passed.columns:
                if name not in passed.vectors:
                    values = values_of(table.file, table.column_of(batch, name), n_rows)
                    passed.count_cells(name, values)
            n_rows += batch.num_rows
            on_progress(n_rows / max(file.metadata.num_rows, 1), f"{n_rows:,} rows")
    if not n_rows:
        raise refusal(table.file, "", "holds no row. Give at least one.")
    return n_rows


def _cells(
    table: ParquetTable, file: Any, column: str
) -> Iterator[tuple[Any, list[Any], list[str]]]:
    """Give each batch, what its column holds, and that as text."""
    n_rows = 0
    for batch in table.batches(file):
        found = values_of(table.file, table.column_of(batch, column), n_rows)
        checked = [_checked(table.file, f"row {n_rows + i}", c) for i, c in enumerate(found, 1)]
        yield batch, found, checked
        n_rows += batch.num_rows


def _vectors_of_rows(
    table: CsvTable | JsonTable | Path,
    out: Path,
    change: ChangeBatches,
    column: str | None,
    on_progress: OnProgress,
    passed: PassedThrough,
) -> int:
    """Write the vectors of a source that is not Parquet to Parquet, beside its other columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, rows = _rows_of(table)
    if isinstance(table, CsvTable):
        texts_of = _cells_of(table, str(column))
    elif isinstance(table, JsonTable):
        texts_of = _fields(table, str(column))
    else:
        texts_of = _lines(source)
    writer, n_rows = None, 0
    with ExitStack() as stack:
        for batch, answers in with_answers(change, _batches(rows), texts_of):
            if not isinstance(answers, np.ndarray):
                raise TypeError("The answers must be vectors, as gives_vectors says.")
            records = [_record(table, row) for _, row in batch]
            kept = {name: _as_texts(leaf_of(r, name) for r in records) for name in passed.columns}
            whole = pa.table({**kept, VECTOR_COLUMN: _vectors(answers)})
            writer = writer or stack.enter_context(
                pq.ParquetWriter(out, whole.schema, compression="zstd")
            )
            writer.write_table(whole)
            _count_cells(passed, records)
            n_rows += len(batch)
            on_progress(0.0, f"{n_rows:,} rows")
    if not n_rows:
        raise refusal(source, "", "holds no row. Give at least one.")
    return n_rows


def _rows_of(table: CsvTable | JsonTable | Path) -> tuple[File, Iterator[tuple[str, Any]]]:
    if isinstance(table, CsvTable):
        return table.file, table.whole_rows()
    if isinstance(table, JsonTable):
        return table.file, table.records()
    return table, read_lines(table)


def _record(table: CsvTable | JsonTable | Path, row: Any) -> Mapping[str, Any]:
    if isinstance(table, CsvTable):
        return dict(zip(table.names, row, strict=True))
    return row if isinstance(table, JsonTable) else {}


def _as_texts(cells: Iterable[Any]) -> Any:
    """Return cells as an Arrow array of texts; what is not a text is written as JSON."""
    import pyarrow as pa

    texts = [
        cell if cell is None or isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)
        for cell in cells
    ]
    return pa.array(texts, pa.string())


def _vectors(answers: np.ndarray) -> Any:
    import pyarrow as pa

    flat = pa.array(answers.ravel(), pa.float32())
    return pa.FixedSizeListArray.from_arrays(flat, answers.shape[1])


def _replaced(table: Any, path: tuple[str, ...], cells: list[Any], answers: Answers) -> Any:
    """Return the table with the answers in the place of a column; an empty cell stays empty."""
    import pyarrow as pa

    at = table.schema.get_field_index(path[0])
    if isinstance(answers, np.ndarray):
        rest = _with_field(table.column(at).combine_chunks(), path[1:], None)
        table = table.remove_column(at) if rest is None else table.set_column(at, path[0], rest)
        return table.append_column(VECTOR_COLUMN, _vectors(answers))
    kept = [None if cell is None else answer for cell, answer in zip(cells, answers, strict=True)]
    changed = pa.array(kept, pa.string())
    whole = _with_field(table.column(at).combine_chunks(), path[1:], changed)
    return table.set_column(at, path[0], whole)


def _with_field(column: Any, path: tuple[str, ...], field_values: Any) -> Any:
    """Return a struct column with another array in the place of a field, or without the field.

    A column itself is replaced where the path is empty. None is returned where nothing is left.
    """
    import pyarrow as pa

    if not path:
        return field_values
    names = [column.type.field(i).name for i in range(column.type.num_fields)]
    inner = {name: column.field(name) for name in names}
    changed = _with_field(inner[path[0]], path[1:], field_values)
    if changed is None:
        del inner[path[0]]
    else:
        inner[path[0]] = changed
    if not inner:
        return None
    return pa.StructArray.from_arrays(
        list(inner.values()),
        names=list(inner),
        mask=column.is_null() if column.null_count else None,
    )


def _share(source: File, n_written: int) -> float:
    """Estimate progress by bytes: a privatised text is about as long as the text."""
    n_bytes = source.stat().st_size if isinstance(source, Path) else len(source.content)
    return min(1.0, n_written / max(n_bytes, 1))


_WRITERS: dict[str, Callable[..., int]] = {
    "CSV": _csv,
    "TSV": _csv,
    "JSONL": _json,
    "Parquet": _parquet,
}
