"""What changes when [EOS] is among the words to predict (C22 §A.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.studies.representations import RepresentationStudy, run
from core.studies.tables import SCORE_COLUMNS, markdown_table, n_fitted_on, score_cells

__all__ = ["FOLDER", "PAPER", "eos_study", "markdown", "run"]

FOLDER = "inversion"
"""These are cells of the study of representations, kept with its others."""

PAPER = {False: (41.53, 45.47, 41.36), True: (64.05, 18.75, 27.20)}
"""Precision, recall and F1 of Corò (2022), §A.1, without and with [EOS] among the targets:
Sentence-BERT on Italian news, in-domain, L words answered at most."""

AS_IN_THE_THESIS = ("answer_count", "mean")
"""L words are answered, L being the mean of the auxiliary texts, unless [EOS] comes before."""


def eos_study(**settings: Any) -> RepresentationStudy:
    """Return the study of MSP without [EOS] among the words to predict, and with it.

    Parameters
    ----------
    **settings
        Those of `RepresentationStudy`, but for attacks and variants.
    """
    given = dict(settings.pop("attack_settings", ()))
    return RepresentationStudy(
        **settings,
        attacks=("msp",),
        attack_settings=tuple(({AS_IN_THE_THESIS[0]: AS_IN_THE_THESIS[1]} | given).items()),
        variants=(("end_token", True),),
    )


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table beside the thesis's figures."""
    head = ("encoder", "domain", "[EOS] among the targets", "fitted on")
    theirs = ("C22: P", "R", "F1")
    lines = markdown_table((*head, *SCORE_COLUMNS, "prior F1", *theirs), map(_cells, rows))
    return "\n".join(lines) + "\n"


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    is_target = bool(row["settings"].get("end_token", False))
    has_theirs = (row["encoder"], row["domain"]) == ("minilm", "in")
    theirs = [f"{value:.1f}" for value in PAPER[is_target]] if has_theirs else []
    head = (row["encoder"], row["domain"], "yes" if is_target else "no")
    return (*head, n_fitted_on(row), *score_cells(row, "prior_f1", then=theirs))
