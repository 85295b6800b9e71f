"""How sure a study's figures can be, told before it runs: by how many texts it attacks.

The mean F1 of n texts has a 95 % interval of about ± 1.96 · s / √n, s being the spread of F1 from
text to text. s is read from what ships: each trained attack's record has the interval and the n of
its held-out score. Texts that come in documents are less sure than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.assets import ASSETS
from core.errors import ArtifactError
from core.results import Score
from core.store import read_record

__all__ = ["MOST_SPREAD", "WIDE", "half_width", "measured_spread", "notes_on_size"]

WIDE = 2.5
"""Points of half an interval from which a study says so: attacks differ by less in our tables."""

MOST_SPREAD = 50.0
"""Of numbers in [0, 100] (Popoviciu's inequality): what is taken where nothing was measured."""

_Z = 1.96


def half_width(n: int, spread: float) -> float:
    """Return half of the 95 % interval to be expected of a mean of n texts.

    Examples
    --------
    >>> round(half_width(100, 20.0), 2)
    3.92
    """
    return _Z * spread / math.sqrt(n)


def measured_spread() -> float:
    """Return the largest spread of F1 from text to text among the trained attacks that ship."""
    found = [_spread(score) for score in _records()]
    return max(found, default=MOST_SPREAD)


def _spread(score: Score) -> float:
    return (score.ci95.high - score.ci95.low) / 2 / _Z * math.sqrt(score.n)


def _records() -> Iterable[Score]:
    for path in sorted((ASSETS / "weights").glob("*/*/model.json")):
        try:
            training = read_record(path, training=dict)["training"]
            yield Score.of_record(training["held_out"], "token_set_f1")
        except (ArtifactError, KeyError, TypeError, ValueError):
            continue  # one that is damaged says nothing here, and is told of where it is opened


def notes_on_size(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each number of targets too small for narrow intervals, none else.

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
        f"n = {n:,} texts at most{_of(asked[n], len(asked))}: a 95 % interval of F1 of up to about "
        f"± {half_width(n, spread):.1f} points is to be expected, wider where several texts are of "
        "one document. Smaller differences will hardly be told apart."
        for n in sorted(asked)
        if half_width(n, spread) > WIDE
    ]


def _of(attacks: set[str], n_sizes: int) -> str:
    named = sorted(attacks - {""})
    return f" for {', '.join(named)}" if named and n_sizes > 1 else ""
