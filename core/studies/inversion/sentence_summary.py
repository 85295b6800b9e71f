"""Shipped results of sentence reconstruction, by kind of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leakscope.core.assets import RESULTS
from leakscope.core.errors import ArtifactError
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.inversion.reconstruct_tables import parse_length

SHIPPED = RESULTS

KINDS: Mapping[str, str] = {
    "wikipedia": "Wikipedia (other sentences of it are training texts)",
    "bbc": "BBC News",
    "reviews": "reviews on the web",
}
"""The texts of each file; only the first is of the kind that the attack was trained on."""


@dataclass(frozen=True)
class SentencesRead:
    """Rows on one kind of text without a defence, in order of sentence length.

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
        """The query budget per sentence."""
        return int(self.read[0]["budget"])

    def pairs(self) -> list[tuple[Row, Score]]:
        """Return each length's row with the ROUGE-L of the blind baseline."""
        guessed = (row.scores["rouge_l"] for row in self.blind)
        return list(zip(self.read, guessed, strict=True))


def load_sentences(kind: str, folder: Path = SHIPPED) -> SentencesRead:
    """Read the shipped rows of one of `KINDS`.

    Raises
    ------
    ArtifactError
        Missing, damaged, or without rows of both readers for every length.
    """
    path = folder / f"reconstruct-{kind}.json"
    rows = read_rows(path, "reconstruct").measured.where(guarded_by="none")
    asked = rows.where(reader="reconstruct")
    read = _by_length(asked.where(budget=max(asked.column("budget"), default=0)))
    blind = _by_length(rows.where(reader="blind"))
    if not read or [r["length"] for r in read] != [r["length"] for r in blind]:
        raise ArtifactError(
            f"{path} lacks rows with and without the vector for the same sentences."
        )
    return SentencesRead(read, blind, tuple(rows))


def _by_length(rows: ResultTable) -> tuple[Row, ...]:
    """Sort rows by sentence length."""
    return tuple(sorted(rows, key=lambda row: parse_length(row["length"])))
