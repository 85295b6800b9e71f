"""The rows of a study on disk: JSON for the pages, Parquet for analysis, Markdown for readers."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from core.durable import write_whole
from core.errors import ArtifactError
from core.store import read_json, storage_errors, write_json
from core.studies.rows import Row

__all__ = [
    "SCORE_COLUMNS",
    "markdown_table",
    "n_fitted_on",
    "read_rows",
    "score_cells",
    "write_rows",
]

SCORE_COLUMNS = ("n", "P", "R", "F1 [95 %]")
"""What `score_cells` fills."""


def markdown_table(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> list[str]:
    r"""Return the lines of a Markdown table; rows that end early are filled up.

    Examples
    --------
    >>> markdown_table(["a", "b"], [[1, "x|y"], [2]])
    ['| a | b |', '|---|---|', '| 1 | x\\|y |', '| 2 |  |']
    """
    table = [_line(columns), "|" + "---|" * len(columns)]
    for cells in lines:
        table.append(_line([*cells, *[""] * (len(columns) - len(cells))]))
    return table


def _line(cells: Sequence[object]) -> str:
    escaped = (" ".join(str(cell).split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def score_cells(row: Row, *more: str, then: Sequence[object] = ()) -> tuple[object, ...]:
    """Return what SCORE_COLUMNS and the columns after them hold, or, where a cell failed, why.

    Parameters
    ----------
    row : Row
        With precision, recall and token_set_f1, all ×100.
    *more : str
        Further scores of the row; `chance` is what guessing reaches in token_set_f1.
    then : sequence
        What stands in the last columns.
    """
    if row.error:
        return ("–", f"failed: {row.error}")
    f1 = row.said("token_set_f1", is_bold=True)
    return (
        row.facts["n"],
        *(_plain_score(row, name) for name in ("precision", "recall")),
        f1,
        *(_plain_score(row, name) for name in more),
        *then,
    )


def _plain_score(row: Row, name: str) -> str:
    value = row.scores["token_set_f1"].chance if name == "chance" else row.scores[name].value
    return "" if math.isnan(value) else f"{value:.1f}"


def n_fitted_on(row: Row) -> str:
    """Return how many texts a row's attack learned from; of a failed one, how many were asked."""
    return f"{row.get('n_fitted_on', row.get('n_auxiliary')):,}"


def write_rows(path: Path, study: str, rows: Sequence[Row], table: str) -> None:
    """Write `path`, and the same with .parquet and .md.

    In Parquet a line is a score; entries that are no numbers or words stand as JSON.

    Raises
    ------
    StorageError
        The disk is full or the folder cannot be written.
    """
    import pandas as pd

    write_json(path, {"study": study, "rows": [row.to_dict() for row in rows]}, is_public=True)
    flat = [
        {name: _plain(value) for name, value in record.items()}
        for row in rows
        for record in row.tidy()
    ]
    columns = io.BytesIO()
    pd.DataFrame(flat).to_parquet(columns, index=False)
    with storage_errors(path):
        write_whole(path.with_suffix(".parquet"), columns.getvalue(), is_public=True)
        told = table.encode(errors="backslashreplace")
        write_whole(path.with_suffix(".md"), told, is_public=True)


def read_rows(path: Path, study: str) -> list[Row]:
    """Read what `write_rows` wrote.

    Raises
    ------
    ArtifactError
        Missing, damaged, or the rows of another study; the message names the file.
    """
    data = read_json(path)
    try:
        rows = [Row.from_dict(row) for row in data["rows"]]
        is_ours = data["study"] == study and bool(rows)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{path} does not hold rows of a study ({error}). Make it anew."
        ) from error
    if not is_ours:
        raise ArtifactError(
            f"{path} does not hold rows of `python -m core study {study}`. Make it anew."
        )
    return rows


def _plain(value: Any) -> Any:
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain else json.dumps(value, ensure_ascii=False)
