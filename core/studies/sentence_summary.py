"""What `reconstruct` reads of whole sentences, from the rows that come with the project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.assets import ASSETS
from core.errors import ArtifactError
from core.results import Score
from core.studies.reconstruct_tables import ends_of
from core.studies.rows import Row
from core.studies.tables import read_rows

__all__ = ["KINDS", "SHIPPED", "SentencesRead", "load_sentences"]

SHIPPED = ASSETS / "inversion"
"""Where copies of the tables of `python -m core study reconstruct` lie, a file each kind."""

KINDS: Mapping[str, str] = {
    "wikipedia": "Wikipedia (other sentences of it were trained on)",
    "bbc": "BBC News",
    "reviews": "reviews on the web",
}
"""The texts of each file, as people call them; the first is the kind that the attack learnt from,
and those behind it are of no such kind."""


@dataclass(frozen=True)
class SentencesRead:
    """Rows of one kind of text without a defence, shortest sentences first.

    Attributes
    ----------
    read : tuple of Row
        Of `reconstruct`, with the most queries that were allowed.
    blind : tuple of Row
        Of a reader without the vector, by the same lengths.
    rows : tuple of Row
        All of them: every reader and budget.
    """

    read: tuple[Row, ...]
    blind: tuple[Row, ...]
    rows: tuple[Row, ...]

    @property
    def n_queries(self) -> int:
        """How many queries a sentence was allowed."""
        return int(self.read[0]["budget"])

    def pairs(self) -> list[tuple[Row, Score]]:
        """Return each length's row with what somebody without the vector gets of it."""
        guessed = (row.scores["rouge_l"] for row in self.blind)
        return list(zip(self.read, guessed, strict=True))


def load_sentences(kind: str, folder: Path = SHIPPED) -> SentencesRead:
    """Read the rows of one of `KINDS`.

    Raises
    ------
    ArtifactError
        Missing, damaged, or without rows of both readers for every length.
    """
    path = folder / f"{kind}.json"
    rows = [r for r in read_rows(path, "reconstruct") if not r.error and r["guarded_by"] == "none"]
    asked = [row for row in rows if row["reader"] == "reconstruct"]
    most = max((row["budget"] for row in asked), default=0)
    read = _by_length([row for row in asked if row["budget"] == most])
    blind = _by_length([row for row in rows if row["reader"] == "blind"])
    if not read or [r["length"] for r in read] != [r["length"] for r in blind]:
        raise ArtifactError(f"{path} holds no sentences read beside the same ones guessed.")
    return SentencesRead(read, blind, tuple(rows))


def _by_length(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: ends_of(row["length"])))
