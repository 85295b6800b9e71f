"""The study of [EOS] among the words to predict (C22 §A.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from leakscope.core.results.rows import Row
from leakscope.core.results.tables import SCORE_COLUMNS, markdown_table, n_fitted_on, score_cells
from leakscope.core.specs import setting
from leakscope.core.studies.domains import DOMAINS
from leakscope.core.studies.inversion.representations import EncoderStudy
from leakscope.core.studies.inversion.representations import measure as measure

PAPER = {False: (41.53, 45.47, 41.36), True: (64.05, 18.75, 27.20)}
"""Precision, recall and F1 of Corò (2022), §A.1, without and with [EOS] among the targets:
Sentence-BERT on Italian news, in-domain, L words answered at most."""

AS_IN_THE_THESIS = {"answer_count": "mean"}
"""Answers have L words, the mean of the auxiliary texts, unless [EOS] comes first."""


@dataclass(frozen=True, kw_only=True)
class EosStudy(EncoderStudy):
    """Settings of the [EOS] study: MSP with and without [EOS] among its targets."""

    encoders: tuple[str, ...] = setting(("minilm",), "names of encoders")
    attacks: tuple[str, ...] = field(default=("msp",), init=False)
    domains: tuple[str, ...] = setting(
        ("in",), "domains of the attacker's texts", choices=tuple(DOMAINS)
    )
    variants: tuple[tuple[str, Any], ...] = field(default=(("end_token", True),), init=False)

    def settings_of(self, attack: str) -> dict[str, Any]:
        """Return the settings of MSP: those of the thesis, overridden by given ones."""
        return AS_IN_THE_THESIS | super().settings_of(attack)


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as a Markdown table with the thesis's scores."""
    head = ("encoder", "domain", "[EOS] among the targets", "fitted on")
    theirs = ("C22: P", "R", "F1")
    lines = markdown_table((*head, *SCORE_COLUMNS, "prior F1", *theirs), map(_table_cells, rows))
    return "\n".join(lines) + "\n"


def _table_cells(row: Row) -> tuple[object, ...]:
    """Return a row's table cells: whether [EOS] is a target, and all scores."""
    is_target = bool(row["settings"].get("end_token", False))
    has_theirs = (row["encoder"], row["domain"]) == ("minilm", "in")
    theirs = [f"{value:.1f}" for value in PAPER[is_target]] if has_theirs else []
    head = (row["encoder"], row["domain"], "yes" if is_target else "no")
    return (*head, n_fitted_on(row), *score_cells(row, "chance", then=theirs))
