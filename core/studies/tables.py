"""The rows of a study on disk: JSON for the pages, Parquet for analysis, Markdown for readers."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.durable import write_whole
from core.errors import ArtifactError
from core.results import Score
from core.store import read_json, storage_errors, write_json
from core.studies.provenance import Provenance
from core.studies.rows import Row

__all__ = [
    "SCORE_COLUMNS",
    "markdown_table",
    "n_fitted_on",
    "read_rows",
    "rows_of",
    "score_cells",
    "table_of",
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
        _sample_said(row),
        *(_plain_score(row, name) for name in ("precision", "recall")),
        f1,
        *(_plain_score(row, name) for name in more),
        *then,
    )


def _sample_said(row: Row) -> str:
    """Return how many texts were scored, and of how many documents where intervals are of these."""
    n, n_documents = row.facts["n"], row.facts.get("n_documents")
    return str(n) if n_documents is None else f"{n} of {n_documents:,} documents"


def _plain_score(row: Row, name: str) -> str:
    score = Score(row.scores["token_set_f1"].chance) if name == "chance" else row.scores[name]
    return "" if math.isnan(score.value) else score.said()


def n_fitted_on(row: Row) -> str:
    """Return how many texts a row's attack learned from; of a failed one, how many were asked."""
    return f"{row.get('n_fitted_on', row.get('n_auxiliary')):,}"


def table_of(study: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Return rows as files and `--json` hold them: flat, with where they come from.

    What rows share of that stands once, in `provenances`. A row names by `provenance` which of
    them is its own, where there are several, and by `cell_begun` when it was measured.
    """
    own = [_without_time(row.provenance) for row in rows]
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


def _without_time(told: Provenance | None) -> dict[str, Any] | None:
    return None if told is None else replace(told, begun="").to_dict()


def rows_of(table: Mapping[str, Any]) -> list[Row]:
    """Return the rows of what `table_of` returned; those of earlier versions tell no provenance.

    Raises
    ------
    AttributeError, IndexError, KeyError, TypeError, ValueError
        It is something else.
    """
    found = [Provenance.from_dict(each) for each in table.get("provenances", ())]
    rows = []
    for each in table["rows"]:
        flat = dict(each)
        begun, i = str(flat.pop("cell_begun", "")), flat.pop("provenance", 0 if found else None)
        row = Row.from_dict(flat)
        if i is not None and not row.error:
            row = replace(row, provenance=replace(found[i], begun=begun))
        rows.append(row)
    return rows


def write_rows(path: Path, study: str, rows: Sequence[Row], table: str) -> None:
    """Write `path`, and the same with .parquet and .md.

    In Parquet a line is a score; entries that are no numbers or words stand as JSON.

    Raises
    ------
    StorageError
        The disk is full or the folder cannot be written.
    """
    import pandas as pd

    write_json(path, table_of(study, rows), is_public=True)
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
        rows = rows_of(data)
        is_ours = data["study"] == study and bool(rows)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
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
