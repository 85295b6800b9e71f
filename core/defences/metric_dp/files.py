"""Privatise a file: the texts of one column are replaced, all else is kept in order.

Rows stream through in batches, so a large file needs no more memory than a small one. The result
appears under its name only when it is complete, and never in the place of another file.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np

from leakscope.core.corpora.guess import inspect_file
from leakscope.core.corpora.readers.json_table import JsonTable
from leakscope.core.corpora.readers.memory_file import File
from leakscope.core.corpora.readers.nested import get_leaf, leaf_names, set_leaf
from leakscope.core.corpora.readers.parquet_table import BATCH_ROWS, ParquetTable, column_values
from leakscope.core.corpora.readers.raw_files import MAX_TEXT_CHARACTERS, read_lines, refusal
from leakscope.core.corpora.readers.tables import CsvTable, open_table, table_format
from leakscope.core.corpora.rows import Columns, check_encodable
from leakscope.core.defences.metric_dp.guarantee import Guarantees
from leakscope.core.defences.metric_dp.identifiers import PassedThrough
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.spreadsheets import neutral_cell
from leakscope.core.storage.artifacts import check_folder, storage_errors
from leakscope.core.storage.atomic_files import unfinished

Answers = Sequence[str] | np.ndarray
"""Texts, or an array (n, d) of vectors that replace the texts."""

ChangeBatches = Callable[[Iterable[Sequence[str]]], Iterator[Answers]]
"""Yields the answers to each batch of texts, in order; it may read the next batch early."""

VECTOR_COLUMN = "vector"
"""Column that replaces the texts if vectors are released."""

SAMPLE_TEXTS = 40

_T = TypeVar("_T")


def map_batches(change: Callable[[Sequence[str]], Answers]) -> ChangeBatches:
    """Turn a function of one batch of texts into a function of a stream of batches."""
    return partial(map, change)


def zip_answers(
    change: ChangeBatches, batches: Iterable[_T], texts_of: Callable[[_T], Sequence[str]]
) -> Iterator[tuple[_T, Answers]]:
    """Yield (batch, answers to its texts) for each batch; the next may be read before."""
    waiting: deque[_T] = deque()

    def texts() -> Iterator[Sequence[str]]:
        for batch in batches:
            waiting.append(batch)
            yield texts_of(batch)

    for answers in change(texts()):
        yield waiting.popleft(), answers


@dataclass
class PrivatizedFile:
    """Summary of a privatised file: its rows, what it keeps of the source, sample texts.

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
        """Count the identifiers of a batch before and after; add its texts to the random sample."""
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
    """Read a file, privatise the texts of one column and write a copy; return its summary.

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
    kind = table_format(source)
    if gives_vectors and table_format(target) != "Parquet":
        raise InvalidInputError(
            f"{target}: vectors are written to Parquet. Use the ending .parquet."
        )
    if not gives_vectors and table_format(target) != kind:
        raise InvalidInputError(
            f"{target}: the output needs the format of {source.name}. Use the ending "
            f"{source.suffix or '.txt'}."
        )
    _refuse_existing(target)
    facts = inspect_file(source, Columns(text=column))
    column, passed = facts.columns.text, tuple(n for n in facts.names if n != facts.columns.text)
    if gives_vectors and VECTOR_COLUMN in passed:
        raise refusal(
            source,
            "",
            f"has a column {VECTOR_COLUMN!r}, where the protected vectors belong. Rename or remove "
            "it. If it contains vectors of the unprotected texts, do not release it.",
        )
    table = open_table(source, column)
    if table is not None and not table.names:
        raise refusal(source, "", "contains no text. Give at least one.")
    check_folder(target)
    write = _WRITERS.get(kind, _write_lines)
    if gives_vectors and kind != "Parquet":
        write = _write_vectors
    done = PrivatizedFile(
        passed=PassedThrough(passed, tuple(n for n in facts.vectors if n in passed))
    )
    change = _record_batches(_skip_blanks(change), done)
    with storage_errors(target), unfinished(target.parent) as file:
        done.n_rows = write(table or source, file.path, change, column, on_progress, done.passed)
        try:
            file.seal(target, is_new=True)
        except FileExistsError:  # it came to be meanwhile
            _refuse_existing(target)
    return done


def _record_batches(change: ChangeBatches, done: PrivatizedFile) -> ChangeBatches:
    """Wrap a batch transform so that `done` notes all texts and their answers."""

    def changed(batches: Iterable[Sequence[str]]) -> Iterator[Answers]:
        for texts, answers in zip_answers(change, batches, list):
            done.note(texts, answers)
            yield answers

    return changed


def _refuse_existing(target: Path) -> None:
    """Raise InvalidInputError if the target file exists already."""
    if target.exists() or target.is_symlink():
        raise InvalidInputError(f"{target} exists and is not overwritten. Name another file.")


def _skip_blanks(change: ChangeBatches) -> ChangeBatches:
    """Wrap a batch transform to skip blank texts: they stay blank, or get zero vectors."""

    def written_of(texts: Sequence[str]) -> list[int]:
        return [i for i, text in enumerate(texts) if text and not text.isspace()]

    def changed(batches: Iterable[Sequence[str]]) -> Iterator[Answers]:
        pairs = ((texts, written_of(texts)) for texts in batches)
        found = zip_answers(change, pairs, lambda pair: [pair[0][i] for i in pair[1]])
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


def _require_texts(path: File, answers: Answers) -> Sequence[str]:
    """Return the answers unchanged; raise if they are vectors, which the format cannot hold."""
    if isinstance(answers, np.ndarray):
        raise refusal(path, "", "cannot contain vectors. Write to a file that ends in .parquet.")
    return answers


def _in_batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    """Cut an iterator of rows into lists of up to `BATCH_ROWS` and yield them."""
    while batch := list(islice(rows, BATCH_ROWS)):
        yield batch


def _check_cell(source: File, place: str, cell: Any) -> str:
    """Return a cell's text, "" for None; raise for other types and for overlong texts."""
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise refusal(
            source, place, f"has type {type(cell).__name__}, not text. Name another column."
        )
    if len(cell) > MAX_TEXT_CHARACTERS:
        raise refusal(
            source, place, f"is longer than {MAX_TEXT_CHARACTERS:,} characters. Shorten it."
        )
    return cell


def _open_output(path: Path) -> TextIO:
    """Open a file for writing UTF-8 text without newline translation."""
    return path.open("w", encoding="utf-8", newline="")


def _write_lines(
    source: Path,
    out: Path,
    change: ChangeBatches,
    _: None,
    on_progress: OnProgress,
    _passed: PassedThrough,
) -> int:
    """Privatise the lines of a plain-text file and write them; return their number."""
    n_rows = 0
    with _open_output(out) as file:
        for batch, answers in zip_answers(
            change, _in_batches(read_lines(source)), _make_line_extractor(source)
        ):
            for answer, (_place, line) in zip(_require_texts(source, answers), batch, strict=True):
                ending = line[len(line.rstrip("\r\n")) :]
                # A privatised text holds no line break of its own: rows stay rows.
                file.write(" ".join(answer.splitlines()) + ending)
            n_rows += len(batch)
            on_progress(_estimate_progress(source, file.tell()), f"{n_rows:,} lines")
    return n_rows


def _make_line_extractor(source: File) -> Callable[[list[Any]], list[str]]:
    """Build a function that extracts and checks the texts of a batch of (place, line)."""
    return lambda batch: [_check_cell(source, place, line.rstrip("\r\n")) for place, line in batch]


def _write_csv(
    table: CsvTable,
    out: Path,
    change: ChangeBatches,
    column: str,
    on_progress: OnProgress,
    passed: PassedThrough,
) -> int:
    """Privatise one column of a CSV table and write the table; return the number of rows."""
    at, n_rows, texts_of = table.names.index(column), 0, _make_csv_extractor(table, column)
    with _open_output(out) as file:
        file.write(table.separator_line)
        writer = csv.writer(file, delimiter=table.delimiter, lineterminator="\n")
        writer.writerow(passed.neutralise(table.header))
        for batch, answers in zip_answers(change, _in_batches(table.whole_rows()), texts_of):
            for (_place, cells), answer in zip(
                batch, _require_texts(table.file, answers), strict=True
            ):
                writer.writerow(passed.neutralise([*cells[:at], answer, *cells[at + 1 :]]))
            _count_cells(passed, [dict(zip(table.names, cells, strict=True)) for _, cells in batch])
            n_rows += len(batch)
            on_progress(_estimate_progress(table.file, file.tell()), f"{n_rows:,} rows")
    return n_rows


def _make_csv_extractor(table: CsvTable, column: str) -> Callable[[list[Any]], list[str]]:
    """Build a function that extracts and checks the column's texts in a batch of CSV rows."""
    at = table.names.index(column)
    return lambda batch: [_check_cell(table.file, place, cells[at]) for place, cells in batch]


def _count_cells(passed: PassedThrough, records: Sequence[Mapping[str, Any]]) -> None:
    """Count in `passed` the identifiers in the columns that are written unchanged."""
    for name in passed.columns:
        if name not in passed.vectors:
            passed.count_cells(name, (get_leaf(record, name) for record in records))


def _write_json(
    table: JsonTable,
    out: Path,
    change: ChangeBatches,
    column: str,
    on_progress: OnProgress,
    passed: PassedThrough,
) -> int:
    """Privatise one field of JSON rows or a document and write it; return the number of rows."""
    n_rows = 0
    changed: list[Any] = []
    with _open_output(out) as file:
        batches = _in_batches(table.records())
        for batch, answers in zip_answers(change, batches, _make_json_extractor(table, column)):
            for (_place, record), answer in zip(
                batch, _require_texts(table.file, answers), strict=True
            ):
                if get_leaf(record, column) is not None:
                    set_leaf(record, column, answer)
                if table.document is None:
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
                elif table.columns is not None and column in table.columns:
                    changed.append(record[column])
            _count_cells(passed, [record for _, record in batch])
            n_rows += len(batch)
            on_progress(_estimate_progress(table.file, file.tell()), f"{n_rows:,} rows")
        if changed:  # a cell inside an object is changed in place, as a record of a list is
            table.columns[column][:] = changed  # type: ignore[index]
        if table.document is not None:
            json.dump(table.document, file, ensure_ascii=False)
            file.write("\n")
    return n_rows


def _make_json_extractor(table: JsonTable, column: str) -> Callable[[list[Any]], list[str]]:
    """Build a function that extracts and checks the field's texts in a batch of records."""

    def texts_of(batch: list[Any]) -> list[str]:
        return [
            _check_cell(table.file, p, _read_json_field(table.file, p, r, column)) for p, r in batch
        ]

    return texts_of


def _read_json_field(source: File, place: str, record: dict[str, Any], column: str) -> Any:
    """Return a JSON record's field; raise if it is missing or cannot be written back."""
    found = get_leaf(record, column)
    if found is None and column not in leaf_names(record):
        raise refusal(source, place, f"has no {column!r}. Fill it in or take the row out.")
    for name, value in record.items():
        check_encodable(source, place, repr(name), json.dumps([name, value], ensure_ascii=False))
    return found


def _write_parquet(
    table: ParquetTable,
    out: Path,
    change: ChangeBatches,
    column: str,
    on_progress: OnProgress,
    passed: PassedThrough,
) -> int:
    """Privatise one column of a Parquet table and write it; return the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = 0
    with ExitStack() as stack:
        file = stack.enter_context(table.opened())
        writer, cells = None, _parquet_batches(table, file, column)
        for (batch, found, _), answers in zip_answers(change, cells, itemgetter(2)):
            path = table.paths[column]
            whole = _replace_column(pa.Table.from_batches([batch]), path, found, answers)
            writer = writer or stack.enter_context(
                pq.ParquetWriter(out, whole.schema, compression="zstd")
            )
            writer.write_table(whole)
            for name in passed.columns:
                if name not in passed.vectors:
                    values = column_values(table.file, table.column_of(batch, name), n_rows)
                    passed.count_cells(name, values)
            n_rows += batch.num_rows
            on_progress(n_rows / max(file.metadata.num_rows, 1), f"{n_rows:,} rows")
    if not n_rows:
        raise refusal(table.file, "", "contains no row. Give at least one.")
    return n_rows


def _parquet_batches(
    table: ParquetTable, file: Any, column: str
) -> Iterator[tuple[Any, list[Any], list[str]]]:
    """Yield (batch, values of the column, their checked texts) for each Parquet batch."""
    n_rows = 0
    for batch in table.batches(file):
        found = column_values(table.file, table.column_of(batch, column), n_rows)
        checked = [_check_cell(table.file, f"row {n_rows + i}", c) for i, c in enumerate(found, 1)]
        yield batch, found, checked
        n_rows += batch.num_rows


def _write_vectors(
    table: CsvTable | JsonTable | Path,
    out: Path,
    change: ChangeBatches,
    column: str | None,
    on_progress: OnProgress,
    passed: PassedThrough,
) -> int:
    """Write vectors and the other columns to a Parquet file; return the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, rows = _iterate_rows(table)
    if isinstance(table, CsvTable):
        texts_of = _make_csv_extractor(table, str(column))
    elif isinstance(table, JsonTable):
        texts_of = _make_json_extractor(table, str(column))
    else:
        texts_of = _make_line_extractor(source)
    writer, n_rows = None, 0
    with ExitStack() as stack:
        for batch, answers in zip_answers(change, _in_batches(rows), texts_of):
            if not isinstance(answers, np.ndarray):
                raise TypeError("The answers must be vectors, as gives_vectors says.")
            records = [_row_to_mapping(table, row) for _, row in batch]
            kept = {
                name: _to_string_array(get_leaf(r, name) for r in records)
                for name in passed.columns
            }
            whole = pa.table({**kept, VECTOR_COLUMN: _to_vector_array(answers)})
            writer = writer or stack.enter_context(
                pq.ParquetWriter(out, whole.schema, compression="zstd")
            )
            writer.write_table(whole)
            _count_cells(passed, records)
            n_rows += len(batch)
            on_progress(0.0, f"{n_rows:,} rows")
    if not n_rows:
        raise refusal(source, "", "contains no row. Give at least one.")
    return n_rows


def _iterate_rows(table: CsvTable | JsonTable | Path) -> tuple[File, Iterator[tuple[str, Any]]]:
    """Return a table's source file and an iterator over its rows as (place, row) pairs."""
    if isinstance(table, CsvTable):
        return table.file, table.whole_rows()
    if isinstance(table, JsonTable):
        return table.file, table.records()
    return table, read_lines(table)


def _row_to_mapping(table: CsvTable | JsonTable | Path, row: Any) -> Mapping[str, Any]:
    """Return a row as a mapping of column names to values; empty for a line of plain text."""
    if isinstance(table, CsvTable):
        return dict(zip(table.names, row, strict=True))
    return row if isinstance(table, JsonTable) else {}


def _to_string_array(cells: Iterable[Any]) -> Any:
    """Convert cells to an Arrow string array; values that are not texts become JSON."""
    import pyarrow as pa

    texts = [
        cell if cell is None or isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)
        for cell in cells
    ]
    return pa.array(texts, pa.string())


def _to_vector_array(answers: np.ndarray) -> Any:
    """Convert vectors to an Arrow array of fixed-size lists."""
    import pyarrow as pa

    flat = pa.array(answers.ravel(), pa.float32())
    return pa.FixedSizeListArray.from_arrays(flat, answers.shape[1])


def _replace_column(table: Any, path: tuple[str, ...], cells: list[Any], answers: Answers) -> Any:
    """Return an Arrow table with the answers in place of a column; vectors get a new column."""
    import pyarrow as pa

    at = table.schema.get_field_index(path[0])
    if isinstance(answers, np.ndarray):
        rest = _replace_field(table.column(at).combine_chunks(), path[1:], None)
        table = table.remove_column(at) if rest is None else table.set_column(at, path[0], rest)
        return table.append_column(VECTOR_COLUMN, _to_vector_array(answers))
    kept = [None if cell is None else answer for cell, answer in zip(cells, answers, strict=True)]
    changed = pa.array(kept, pa.string())
    whole = _replace_field(table.column(at).combine_chunks(), path[1:], changed)
    return table.set_column(at, path[0], whole)


def _replace_field(column: Any, path: tuple[str, ...], field_values: Any) -> Any:
    """Return a struct column with the field at `path` replaced; None as new values removes it.

    A column itself is replaced where the path is empty. None is returned where nothing is left.
    """
    import pyarrow as pa

    if not path:
        return field_values
    names = [column.type.field(i).name for i in range(column.type.num_fields)]
    inner = {name: column.field(name) for name in names}
    changed = _replace_field(inner[path[0]], path[1:], field_values)
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


def _estimate_progress(source: File, n_written: int) -> float:
    """Return the share done, estimated as bytes written over bytes of the source file."""
    n_bytes = source.stat().st_size if isinstance(source, Path) else len(source.content)
    return min(1.0, n_written / max(n_bytes, 1))


_WRITERS: dict[str, Callable[..., int]] = {
    "CSV": _write_csv,
    "TSV": _write_csv,
    "JSONL": _write_json,
    "Parquet": _write_parquet,
}


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
    """Context manager: yield a batch transform that also writes texts and answers to a CSV file.

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


class RepeatCounter:
    """Counts how often each text occurs in a stream of batches, in eight bytes a text.

    Texts that differ in white space or case alone count as one: tokenizers drop both.
    """

    def __init__(self) -> None:
        self._digests = array("Q")

    def counted(self, change: ChangeBatches) -> ChangeBatches:
        """Wrap a batch transform so that this counter records every text that passes through."""

        def changed(batches: Iterable[Sequence[str]]) -> Iterator[Answers]:
            return change(map(self._record, batches))

        return changed

    def _record(self, texts: Sequence[str]) -> Sequence[str]:
        """Store the digests of a batch of texts; return the batch unchanged."""
        self._digests.extend(_digest(text) for text in texts)
        return texts

    @property
    def counts(self) -> tuple[int, int]:
        """Occurrences of the most frequent text, and number of texts that occur repeatedly."""
        if not self._digests:
            return 0, 0
        found = np.unique(np.frombuffer(self._digests, np.uint64), return_counts=True)[1]
        return int(found.max()), int((found > 1).sum())

    def describe(self, promises: Guarantees) -> str:
        """Describe in a sentence how the repeats in the file weaken the given guarantees."""
        most, n_repeated = self.counts
        if most < 2:
            return "No text occurs more than once in the file."
        texts = "One text occurs" if n_repeated == 1 else f"{n_repeated:,} texts occur"
        return (
            f"{texts} more than once. The most frequent text occurs {most:,} times, and its odds "
            f"are raised to the power {most:,}: odds of at most {promises.after(most).all_odds}."
        )

    def to_dict(self, promises: Guarantees) -> dict[str, Any]:
        """Return the repeats, and the most frequent text's guarantee, as a JSON-able dict."""
        most, n_repeated = self.counts
        left = promises.after(max(most, 1)).to_dict()
        return {"most_frequent": most, "n_repeated": n_repeated, "promise": left}


def _digest(text: str) -> int:
    """Return a 64-bit digest of a text, ignoring case and white space."""
    folded = " ".join(text.split()).casefold()
    return int.from_bytes(hashlib.blake2b(folded.encode(), digest_size=8).digest(), "little")
