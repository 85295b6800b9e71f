"""The scaling study: leakage by the number of the attacker's training texts (C22 Fig. 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import SCORE_COLUMNS, markdown_table, n_fitted_on, score_cells
from leakscope.core.specs import setting
from leakscope.core.studies.domains import DOMAINS
from leakscope.core.studies.inversion.cell_attacks import describe_attack
from leakscope.core.studies.inversion.representations import EncoderStudy
from leakscope.core.studies.inversion.representations import measure as measure

N_THEIRS = 166_377
PAPER = {"hashing": 89.33, "minilm": 41.36}
"""F1 of Corò (2022), Table 5.2, in-domain, at all N_THEIRS sentences: where the curves of Fig. 5.1
end but for its epochs, twice as many. The figure's other points are drawn, not printed."""


@dataclass(frozen=True, kw_only=True)
class ScalingStudy(EncoderStudy):
    """Settings of the scaling study: attacks trained on samples of growing size."""

    encoders: tuple[str, ...] = setting(("hashing", "minilm"), "names of encoders")
    attacks: tuple[str, ...] = setting(("msp",), "names of attacks")
    domains: tuple[str, ...] = setting(
        ("in",), "domains of the attacker's texts", choices=tuple(DOMAINS)
    )
    sizes: tuple[int, ...] = setting(
        (5_000, 10_000, 20_000, 40_000),
        "numbers of sentences to train on",
        low=1,
        flag="n-auxiliary",
    )
    variants: tuple[tuple[str, Any], ...] = field(default=(), init=False)


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as a Markdown table, with the F1 gained per doubling of texts."""
    head = ("encoder", "attack", "domain", "fitted on")
    lines = markdown_table(
        (*head, *SCORE_COLUMNS, "prior F1", "F1, every word"),
        map(_table_cells, rows),
    )
    lines += [
        "",
        "Scores count words of the attacker's texts: more texts add words to recover. The last "
        "column counts every word, the same at each size.",
        "",
    ]
    lines += [
        f"- {name}: {gain_per_doubling(curve):+.1f} points of F1 per doubling, over the three "
        "largest sizes."
        for name, curve in curves(rows).items()
    ]
    theirs = [f"{name} {f1:.1f}" for name, f1 in PAPER.items()]
    lines.append(
        f"- C22, Italian news, MSP, in-domain, {N_THEIRS:,} sentences: F1 {', '.join(theirs)} "
        "(its Sentence-BERT corresponds to `minilm`)."
    )
    return "\n".join(lines) + "\n"


def _table_cells(row: Row) -> tuple[object, ...]:
    """Return the table cells of a row: setting and scores."""
    head = (row["encoder"], describe_attack(row), row["domain"], n_fitted_on(row))
    return (*head, *score_cells(row, "chance", "unrestricted_f1"))


def curves(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Group rows into named curves by ascending number of texts; those of one size are left out.

    Each size occurs once: a small corpus ends the curve.
    """
    found: dict[str, dict[int, Row]] = {}
    for row in ResultTable(rows).measured:
        setting = f"{row['encoder']}, {describe_attack(row)}, {row['domain']}-domain"
        of_seed = found.setdefault(f"{setting}, seed {row['seed']}", {})
        of_seed[row.facts["n_fitted_on"]] = row
    found = {name: curve for name, curve in found.items() if len(curve) > 1}
    return {name: [curve[size] for size in sorted(curve)] for name, curve in found.items()}


def gain_per_doubling(curve: Sequence[Row]) -> float:
    """Fit the F1 that a curve gains per doubling of texts, over its three largest sizes.

    Examples
    --------
    >>> from leakscope.core.results import Score
    >>> scores = {8: Score(9.0), 16: Score(12.0)}
    >>> curve = [Row({}, {"token_set_f1": f1}, {"n_fitted_on": n}) for n, f1 in scores.items()]
    >>> gain_per_doubling(curve)
    3.0
    """
    last = sorted(curve, key=lambda row: int(row.facts["n_fitted_on"]))[-3:]
    doublings = np.log2([row.facts["n_fitted_on"] for row in last])
    slope = np.polyfit(doublings, [row.scores["token_set_f1"].value for row in last], 1)[0]
    return round(float(slope), 4)
