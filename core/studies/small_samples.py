"""Warnings before a study runs: which intervals to expect from the number of attacked texts.

The mean F1 of n texts has a 95 % interval of about ± 1.96 · s / √n, s being the spread of F1 from
text to text. s is read from what ships: each trained attack's record has the interval and the n of
its held-out score. Texts that come in documents are less sure than that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.core.assets import ASSETS
from leakscope.core.errors import ArtifactError
from leakscope.core.results import Score
from leakscope.core.storage.artifacts import read_record

WIDE = 2.5
"""Half-width in points above which a study warns: attacks differ by less in our tables."""

MOST_SPREAD = 50.0
"""The largest standard deviation of numbers in [0, 100] (Popoviciu): used if none was measured."""

_Z = 1.96


def half_width(n: int, spread: float) -> float:
    """Return the expected half-width of the 95 % interval of a mean over n texts.

    Examples
    --------
    >>> round(half_width(100, 20.0), 2)
    3.92
    """
    return _Z * spread / math.sqrt(n)


def measured_spread() -> float:
    """Read the shipped attacks' records; return the largest standard deviation of F1 over texts."""
    found = []
    for path in sorted((ASSETS / "weights").glob("*/*/model.json")):
        try:
            training = read_record(path, training=dict)["training"]
            score = Score.of_record(training["held_out"], "token_set_f1")
        except (ArtifactError, KeyError, TypeError, ValueError):
            continue  # a damaged record is reported where it is opened
        found.append((score.ci95.high - score.ci95.low) / 2 / _Z * math.sqrt(score.n))
    return max(found, default=MOST_SPREAD)


def notes_on_size(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a warning for each number of targets in cells that gives wide intervals.

    Parameters
    ----------
    cells : sequence of mapping
        Of a study; those without `n_targets` attack no texts.
    """
    asked: dict[int, set[str]] = {}
    for cell in cells:
        if "n_targets" in cell and "names" not in cell:  # those are counted by name
            asked.setdefault(int(cell["n_targets"]), set()).add(str(cell.get("attack", "")))
    spread = measured_spread() if asked else MOST_SPREAD
    return [
        f"n = {n:,} texts at most{_for_attacks(asked[n], len(asked))}: a 95 % interval of F1 of up "
        f"to about ± {half_width(n, spread):.1f} points is to be expected, wider where several "
        "texts are of one document. Smaller differences will hardly be told apart."
        for n in sorted(asked)
        if half_width(n, spread) > WIDE
    ]


def _for_attacks(attacks: set[str], n_sizes: int) -> str:
    """Return " for ATTACKS" if several sample sizes have to be distinguished, else ""."""
    named = sorted(attacks - {""})
    return f" for {', '.join(named)}" if named and n_sizes > 1 else ""
