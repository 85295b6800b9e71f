"""How the leak grows with the attacker's texts (C22 Fig. 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from core.figures.learning import learning_figure
from core.studies.cell_attacks import attack_said
from core.studies.learning import gain_per_doubling
from core.studies.representations import RepresentationStudy, run
from core.studies.tables import SCORE_COLUMNS, markdown_table, n_fitted_on, score_cells

__all__ = ["FOLDER", "PAPER", "SIZES", "figure", "markdown", "run", "scaling_study"]

FOLDER = "inversion"
"""These are cells of the study of representations, kept with its others."""

SIZES = (5_000, 10_000, 20_000, 40_000)

N_THEIRS = 166_377
PAPER = {"hashing": 89.33, "minilm": 41.36}
"""F1 of Corò (2022), Table 5.2, in-domain, at all N_THEIRS sentences: where the curves of Fig. 5.1
end but for its epochs, twice as many. The figure's other points are drawn, not printed."""


def scaling_study(**settings: Any) -> RepresentationStudy:
    """Return the study of one attack on growing samples of the attacker's texts.

    Parameters
    ----------
    **settings
        Those of `RepresentationStudy`; `sizes` are SIZES by default.
    """
    return RepresentationStudy(**{"sizes": SIZES, **settings})


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table, and what a doubling of texts gains."""
    head = ("encoder", "attack", "domain", "fitted on")
    lines = markdown_table(
        (*head, *SCORE_COLUMNS, "prior F1", "F1, every word"),
        (
            (
                row["encoder"],
                attack_said(row),
                row["domain"],
                n_fitted_on(row),
                *score_cells(row, "prior_f1", "unrestricted_f1"),
            )
            for row in rows
        ),
    )
    lines += [
        "",
        "Words count that the attacker's texts hold: more texts, more words to find. In the last "
        "column every word counts, at each size the same.",
        "",
    ]
    lines += [_said(name, gain) for name, gain in _gains(rows).items()]
    theirs = [f"{name} {f1:.1f}" for name, f1 in PAPER.items()]
    lines.append(
        f"- C22, Italian news, MSP, in-domain, {N_THEIRS:,} sentences: F1 {', '.join(theirs)} "
        "(its Sentence-BERT beside `minilm`)."
    )
    return "\n".join(lines) + "\n"


def figure(rows: Sequence[dict[str, Any]]) -> go.Figure:
    """Return F1 with its 95 % interval over the number of texts, a line a curve."""
    gains = _gains(rows)
    measured = [
        {**row, "target": _curve(row), "n_auxiliary": row["n_fitted_on"]}
        for row in _measured(rows)
        if _curve(row) in gains
    ]
    attacks = ", ".join(dict.fromkeys(attack_said(row) for row in measured))
    return learning_figure({"attack": attacks, "rows": measured, "gains": gains})


def _gains(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    curves: dict[str, list[dict[str, Any]]] = {}
    for row in _measured(rows):
        curves.setdefault(_curve(row), []).append({**row, "n_auxiliary": row["n_fitted_on"]})
    return {
        name: gain_per_doubling(curve)
        for name, curve in curves.items()
        if len({row["n_auxiliary"] for row in curve}) > 1
    }


def _measured(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that hold a score, each size once: a small corpus ends the curve."""
    kept = {(_curve(row), row["n_fitted_on"]): row for row in rows if "n" in row}
    return list(kept.values())


def _curve(row: dict[str, Any]) -> str:
    return f"{row['encoder']}, {attack_said(row)}, {row['domain']}-domain, seed {row['seed']}"


def _said(name: str, gain: float) -> str:
    return f"- {name}: {gain:+.1f} points of F1 a doubling, over the three largest sizes."
