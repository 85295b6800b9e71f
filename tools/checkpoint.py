"""Checkpoint of a long run of tries, in a JSON Lines file: a run that is killed resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class TryLog(Generic[_T]):
    """The outcomes of a run's tries so far, appended to a file.

    Parameters
    ----------
    path : Path
        Of the file; its first line holds a digest of the code, each other one what came of a try.
        What was tried with other code is dropped.
    kind : type
        A dataclass of what JSON can hold.
    code : iterable of Path
        Folders whose files decide what comes of a try.
    """

    def __init__(self, path: Path, kind: type[_T], code: Iterable[Path]) -> None:
        self._path = path
        begun = json.dumps({"code": _digest_code(code)})
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.known = tuple(_parse_outcomes(lines[1:], kind)) if lines[:1] == [begun] else ()
        path.write_text(begun + "\n", encoding="utf-8")
        for each in self.known:
            self.add(each)

    def add(self, outcome: _T) -> None:
        """Append one outcome to the file."""
        told: Any = outcome
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(told)) + "\n")

    def remove(self) -> None:
        """Delete the file, once the table of all outcomes is written."""
        self._path.unlink()


def _digest_code(folders: Iterable[Path]) -> str:
    """Return a SHA-256 of the contents of all files below the folders, without __pycache__."""
    files = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    whole = hashlib.sha256()
    for path in sorted(path for path in files if "__pycache__" not in path.parts):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def _parse_outcomes(lines: Sequence[str], kind: type[_T]) -> Iterator[_T]:
    """Yield the outcomes parsed from JSON lines, up to a torn last line."""
    for line in lines:
        try:
            yield kind(**json.loads(line))
        except (ValueError, TypeError):  # the last line of a run that was killed while it wrote
            return
