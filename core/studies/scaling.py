"""How the leak grows with the attacker's texts (C22 Fig. 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.specs import setting
from core.studies.cell_attacks import attack_said
from core.studies.domains import DOMAINS
from core.studies.encoders import EncoderStudy, measure
from core.studies.rows import Row
from core.studies.tables import SCORE_COLUMNS, markdown_table, n_fitted_on, score_cells

__all__ = ["PAPER", "ScalingStudy", "curves", "gain_per_doubling", "markdown", "measure"]

N_THEIRS = 166_377
PAPER = {"hashing": 89.33, "minilm": 41.36}
"""F1 of Corò (2022), Table 5.2, in-domain, at all N_THEIRS sentences: where the curves of Fig. 5.1
end but for its epochs, twice as many. The figure's other points are drawn, not printed."""


@dataclass(frozen=True, kw_only=True)
class ScalingStudy(EncoderStudy):
    """Attacks on growing samples of the attacker's texts."""

    encoders: tuple[str, ...] = setting(("hashing", "minilm"), "encoders by name")
    attacks: tuple[str, ...] = setting(("msp",), "attacks by name")
    domains: tuple[str, ...] = setting(
        ("in",), "whose texts the attacker has", choices=tuple(DOMAINS)
    )
    sizes: tuple[int, ...] = setting(
        (5_000, 10_000, 20_000, 40_000), "sentences to train on", low=1, flag="n-auxiliary"
    )
    variants: tuple[tuple[str, Any], ...] = field(default=(), init=False)


def markdown(rows: Sequence[Row]) -> str:
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
                *score_cells(row, "chance", "unrestricted_f1"),
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
    lines += [
        f"- {name}: {gain_per_doubling(curve):+.1f} points of F1 a doubling, over the three "
        "largest sizes."
        for name, curve in curves(rows).items()
    ]
    theirs = [f"{name} {f1:.1f}" for name, f1 in PAPER.items()]
    lines.append(
        f"- C22, Italian news, MSP, in-domain, {N_THEIRS:,} sentences: F1 {', '.join(theirs)} "
        "(its Sentence-BERT beside `minilm`)."
    )
    return "\n".join(lines) + "\n"


def curves(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each curve of at least two sizes, smallest first, by its name.

    Each size stands once: a small corpus ends the curve.
    """
    found: dict[str, dict[int, Row]] = {}
    for row in rows:
        if not row.error:
            name = f"{row['encoder']}, {attack_said(row)}, {row['domain']}-domain"
            name += f", seed {row['seed']}"
            found.setdefault(name, {})[row.facts["n_fitted_on"]] = row
    return {
        name: [curve[size] for size in sorted(curve)]
        for name, curve in found.items()
        if len(curve) > 1
    }


def gain_per_doubling(curve: Sequence[Row]) -> float:
    """Return the F1 gained per doubling over the three largest sizes, by least squares.

    Examples
    --------
    >>> from core.results import Score
    >>> scores = {8: Score(9.0), 16: Score(12.0)}
    >>> curve = [Row({}, {"token_set_f1": f1}, {"n_fitted_on": n}) for n, f1 in scores.items()]
    >>> gain_per_doubling(curve)
    3.0
    """
    last = sorted(curve, key=lambda row: int(row.facts["n_fitted_on"]))[-3:]
    doublings = np.log2([row.facts["n_fitted_on"] for row in last])
    slope = np.polyfit(doublings, [row.scores["token_set_f1"].value for row in last], 1)[0]
    return round(float(slope), 4)
