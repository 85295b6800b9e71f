"""The rows of a study on disk: JSON for pages, Parquet for analysis, Markdown for readers."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from leakscope.core.errors import ArtifactError
from leakscope.core.results import Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.storage.artifacts import read_json, storage_errors, write_json
from leakscope.core.storage.atomic_files import atomic_write

SCORE_COLUMNS = ("n", "P", "R", "F1 [95 %]")
"""The columns that `score_cells` fills."""


def markdown_table(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> list[str]:
    r"""Format rows as the lines of a Markdown table; short rows are padded with empty cells.

    Examples
    --------
    >>> markdown_table(["a", "b"], [[1, "x|y"], [2]])
    ['| a | b |', '|---|---|', '| 1 | x\\|y |', '| 2 |  |']
    """
    table = [_markdown_row(columns), "|" + "---|" * len(columns)]
    for cells in lines:
        table.append(_markdown_row([*cells, *[""] * (len(columns) - len(cells))]))
    return table


def markdown_records(records: Sequence[Mapping[str, object]]) -> list[str]:
    """Format records with the same keys as the lines of a Markdown table; the keys are columns.

    Examples
    --------
    >>> markdown_records([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
    ['| a | b |', '|---|---|', '| 1 | x |', '| 2 | y |']
    """
    return markdown_table([*records[0]], [[*record.values()] for record in records])


def _markdown_row(cells: Sequence[object]) -> str:
    """Format cells as one line of a Markdown table; bars are escaped."""
    escaped = (" ".join(str(cell).split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def score_cells(row: Row, *more: str, then: Sequence[object] = ()) -> tuple[object, ...]:
    """Format a row's scores as table cells, as in SCORE_COLUMNS; its error if it failed.

    Parameters
    ----------
    row : Row
        With precision, recall and token_set_f1, all ×100.
    *more : str
        Further scores of the row; `chance` is what guessing reaches in token_set_f1.
    then : sequence
        The cells of the last columns.
    """
    if row.error:
        return ("–", f"failed: {row.error}")
    f1 = row.format("token_set_f1", is_bold=True)
    return (
        _describe_sample(row),
        *(_format_score(row, name) for name in ("precision", "recall")),
        f1,
        *(_format_score(row, name) for name in more),
        *then,
    )


def _describe_sample(row: Row) -> str:
    """Format a row's number of texts, with that of documents if these are resampled."""
    n, n_documents = row.facts["n"], row.facts.get("n_documents")
    return str(n) if n_documents is None else f"{n} of {n_documents:,} documents"


def _format_score(row: Row, name: str) -> str:
    """Format one score of a row, or the chance level of its F1, without bold type."""
    score = Score(row.scores["token_set_f1"].chance) if name == "chance" else row.scores[name]
    return "" if math.isnan(score.value) else score.format()


def n_fitted_on(row: Row) -> str:
    """Format how many texts the attack was fitted on; of a failed row, how many were requested."""
    return f"{row.get('n_fitted_on', row.get('n_auxiliary')):,}"


def rows_to_json(study: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Convert rows to the JSON-able object of files and `--json`: flat, with shared provenances.

    Shared parts are stored once, in `provenances`. A row has the index of its own as `provenance`
    if there are several, and its time as `cell_begun`.
    """
    known = [row.provenance for row in rows]
    own = [None if p is None else replace(p, begun="").to_dict() for p in known]
    found: list[dict[str, Any]] = []
    for each in own:
        if each is not None and each not in found:
            found.append(each)
    is_one = len(found) == 1 and all(e or row.error for e, row in zip(own, rows, strict=True))
    flat = []
    for row, each in zip(rows, own, strict=True):
        told = row.to_dict()
        if each is not None and row.provenance is not None and row.provenance.begun:
            told["cell_begun"] = row.provenance.begun
        if found and not is_one:
            told["provenance"] = None if each is None else found.index(each)
        flat.append(told)
    shared = {"provenances": found} if found else {}
    return {"study": study, **shared, "rows": flat}


def rows_from_json(table: Mapping[str, Any]) -> ResultTable:
    """Parse rows from the JSON-able object that `rows_to_json` returns.

    Raises
    ------
    AttributeError, IndexError, KeyError, TypeError, ValueError
        It is something else.
    """
    found = [Provenance.from_dict(each) for each in table.get("provenances", ())]
    rows = ResultTable()
    for each in table["rows"]:
        flat = dict(each)
        begun, i = str(flat.pop("cell_begun", "")), flat.pop("provenance", 0 if found else None)
        row = Row.from_dict(flat)
        if i is not None and not row.error:
            row = replace(row, provenance=replace(found[i], begun=begun))
        rows.append(row)
    return rows


def write_rows(path: Path, study: str, rows: Sequence[Row], table: str) -> None:
    """Write rows as JSON to `path`, and beside it as .parquet, and their `table` text as .md.

    In Parquet a line is a score; entries that are no numbers or words stand as JSON.

    Raises
    ------
    StorageError
        The disk is full or the folder cannot be written.
    """
    import pandas as pd

    write_json(path, rows_to_json(study, rows), is_public=True)
    flat = [
        {name: _to_parquet_value(value) for name, value in record.items()}
        for row in rows
        for record in row.tidy()
    ]
    columns = io.BytesIO()
    pd.DataFrame(flat).to_parquet(columns, index=False)
    with storage_errors(path):
        atomic_write(path.with_suffix(".parquet"), columns.getvalue(), is_public=True)
        told = table.encode(errors="backslashreplace")
        atomic_write(path.with_suffix(".md"), told, is_public=True)


def read_rows(path: Path, study: str) -> ResultTable:
    """Read the rows of a study from a JSON file written by `write_rows`.

    Raises
    ------
    ArtifactError
        Missing, damaged, or the rows of another study; the message names the file.
    """
    data = read_json(path)
    try:
        rows = rows_from_json(data)
        is_ours = data["study"] == study and bool(rows)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{path} does not contain rows of a study ({error}). Run the study again."
        ) from error
    if not is_ours:
        raise ArtifactError(
            f"{path} does not contain rows of `leakscope study {study}`. Run the study again."
        )
    return rows


def _to_parquet_value(value: Any) -> Any:
    """Return numbers and strings unchanged, and other values as JSON text, for Parquet."""
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain else json.dumps(value, ensure_ascii=False)
