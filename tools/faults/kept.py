"""What was tried so far: a file beside the table, so that a run that is ended goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from core.assets import ROOT
from tools.faults.tries import Outcome

__all__ = ["Kept", "in_order"]


class Kept:
    """The outcomes of a run that has not ended.

    Parameters
    ----------
    path : Path
        Of the file; its first line holds a digest of the code, each other one an outcome. What was
        tried with other code is dropped.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        begun = json.dumps({"code": _digest()})
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.outcomes = tuple(_outcomes(lines[1:])) if lines[:1] == [begun] else ()
        path.write_text(begun + "\n", encoding="utf-8")
        for outcome in self.outcomes:
            self.add(outcome)

    def add(self, outcome: Outcome) -> None:
        """Keep one more."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")

    def remove(self) -> None:
        """Take the file away: the table is written."""
        self._path.unlink()


def _digest() -> str:
    """Return a digest of the engine and of what makes its faults."""
    sources = [*(ROOT / "core").rglob("*.py"), *Path(__file__).parent.glob("*.*")]
    whole = hashlib.sha256()
    for path in sorted(sources):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def _outcomes(lines: Sequence[str]) -> Iterator[Outcome]:
    for line in lines:
        try:
            yield Outcome(**json.loads(line))
        except ValueError:  # the last line of a run that was killed while it wrote
            return


def in_order(outcomes: Sequence[Outcome], names: Sequence[str]) -> list[Outcome]:
    """Return the outcomes of commands, command by command, as their operations follow."""
    chosen = [each for each in outcomes if each.command in names]
    return sorted(chosen, key=lambda each: (names.index(each.command), each.at))
