"""The rows of a study on disk: JSON for the pages, Parquet for analysis, Markdown for readers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.store import storage_errors, write_json

__all__ = ["write_rows"]


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
