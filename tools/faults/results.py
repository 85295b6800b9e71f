"""What a command left on disk, normalised by removing times."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

_TIMES = {"seconds", "cell_seconds", "begun", "cell_begun", "seal", "log", "n_resumed"}
_SECONDS_IN_TABLE = re.compile(r"\d+ \|$", re.MULTILINE)
_NO_RESULT = (".sqlite", "lock")
"""Proposals of a search, which are no result: that they are whole, the next run proves."""


def results_of(folder: Path) -> dict[str, Any]:
    """Return the normalised content of every file below a folder, by relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): _content(path) for path in files}


def _content(path: Path) -> Any:
    """Return one file's normalised content."""
    if path.name.endswith(_NO_RESULT):
        return ""
    if path.suffix == ".json":
        try:
            return _timeless(json.loads(path.read_text(encoding="utf-8")))
        except ValueError:
            return "no JSON"
    if path.suffix == ".md":
        return _SECONDS_IN_TABLE.sub("|", path.read_text(encoding="utf-8"))
    if path.suffix == ".parquet":
        return _rows(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _timeless(data: Any) -> Any:
    """Remove times from nested JSON data."""
    if isinstance(data, dict):
        return {name: _timeless(value) for name, value in data.items() if name not in _TIMES}
    return [_timeless(value) for value in data] if isinstance(data, list) else data


def _rows(path: Path) -> Any:
    """Return a Parquet file's rows without times."""
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except Exception as error:  # whatever a torn file makes the library say
        return f"no Parquet: {error}"
    return repr(table.drop(columns=[c for c in table if c in _TIMES]).to_dict("list"))
