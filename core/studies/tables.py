"""The rows of a study on disk: JSON for the pages, Parquet for analysis, Markdown for readers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from core.store import storage_errors, write_json

__all__ = ["SCORE_COLUMNS", "markdown_table", "n_fitted_on", "score_cells", "write_rows"]

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


def score_cells(row: dict[str, Any], *more: str, then: Sequence[object] = ()) -> tuple[object, ...]:
    """Return what SCORE_COLUMNS and the columns after them hold, or, where a cell failed, why.

    Parameters
    ----------
    row : dict
        With precision, recall, token_set_f1 and its interval, all ×100.
    *more : str
        Further scores of the row.
    then : sequence
        What stands in the last columns.
    """
    if "error" in row:
        return ("–", f"failed: {row['error']}")
    low, high = row["token_set_f1_ci95"]
    f1 = f"**{row['token_set_f1']:.1f}** [{low:.1f}, {high:.1f}]"
    p, r, *others = (f"{row[name]:.1f}" for name in ("precision", "recall", *more))
    return (row["n"], p, r, f1, *others, *then)


def n_fitted_on(row: dict[str, Any]) -> str:
    """Return how many texts a row's attack learned from; of a failed one, how many were asked."""
    return f"{row.get('n_fitted_on', row['n_auxiliary']):,}"


def write_rows(path: Path, study: str, rows: Sequence[dict[str, Any]], table: str) -> None:
    """Write `path`, and the same with .parquet and .md.

    In Parquet, entries that are no numbers or words stand as JSON.

    Raises
    ------
    StorageError
        The disk is full or the folder cannot be written.
    """
    import pandas as pd

    write_json(path, {"study": study, "rows": list(rows)})
    flat = [{name: _plain(value) for name, value in row.items()} for row in rows]
    with storage_errors(path):
        pd.DataFrame(flat).to_parquet(path.with_suffix(".parquet"), index=False)
        path.with_suffix(".md").write_text(table, encoding="utf-8")


def _plain(value: Any) -> Any:
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain else json.dumps(value, ensure_ascii=False)
